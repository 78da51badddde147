"""A graph with known answers: what every task makes follows from its number and what it reads, and can be computed
without any cluster.

Half of the objects are so large that nodes open a stream for them; of the others, half travel inside records, half on
the links between nodes. Every reader checks what it reads, byte for byte. Some tasks have their work done by two tasks
that they create, and wait for.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import daws

LARGE_BYTES = 80_000
SMALL_BYTES = (200, 30_000)
PARENTS_MAX = 3
NESTED = 25
"""One in so many tasks creates tasks."""
REACH = 40
"""A task reads from tasks up to so many before it: the graph is broad, and has chains that run through all of it."""


class Step(NamedTuple):
    """A task of the graph: its number, the tasks it reads, how many bytes it makes and how long it takes."""

    number: int
    parents: tuple[int, ...]
    size_bytes: int
    length_s: float


def graph_of(seed: int, tasks: int, length_s: float) -> list[Step]:
    """Parents come before their children."""
    random = Random(f"graph {seed}")
    steps = []
    for number in range(tasks):
        near = range(max(0, number - REACH), number)
        parents = random.sample(near, min(len(near), random.randint(0, PARENTS_MAX)))
        size_bytes = LARGE_BYTES if random.random() < 0.5 else random.choice(SMALL_BYTES)
        steps.append(Step(number, tuple(sorted(parents)), size_bytes, length_s * random.uniform(0.2, 1.8)))
    return steps


def answers_of(seed: int, steps: Sequence[Step]) -> list[str]:
    """What each task must have made, as a digest."""
    made: list[str] = []
    for step in steps:
        made.append(digest_of(content_of(seed, step.number, step.size_bytes, [made[one] for one in step.parents])))
    return made


def content_of(seed: int, number: int, size_bytes: int, read: Sequence[str]) -> bytes:
    start = hashlib.sha256(f"{seed} {number} {' '.join(read)}".encode()).digest()
    return (start * (size_bytes // len(start) + 1))[:size_bytes]


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def work(seed: int, step: tuple[int, int, float], runs: str, *read: bytes) -> bytes:
    """Run in workers. Appends a line to the file `runs`: so it is seen how often each task ran."""
    number, size_bytes, length_s = step
    with open(runs, "ab", buffering=0) as log:
        log.write(f"{number} {os.getpid()}\n".encode())
    digests = [digest_of(one) for one in read]
    if number % NESTED:
        return part(seed, number, size_bytes, length_s, digests, 0, size_bytes)
    here, middle = daws.current(), size_bytes // 2
    parts = [
        here.submit(part, seed, number, size_bytes, length_s / 2, digests, low, high)
        for low, high in ((0, middle), (middle, size_bytes))
    ]
    return b"".join(one.result() for one in parts)


def part(seed: int, number: int, size_bytes: int, length_s: float, read: list[str], low: int, high: int) -> bytes:
    """Of what a task makes, from one byte to before another."""
    time.sleep(length_s)
    return content_of(seed, number, size_bytes, read)[low:high]
