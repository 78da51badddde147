"""The other side of `tests.sim.mutants`: runs seeds against mutants, each mutant in a process of its own.

Requests come as lines of JSON on standard input, answers go to standard output. This process has loaded what no mutant
changes and nothing of the package; it forks for each request, which is several times as fast as a fresh interpreter.
"""

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

import msgspec.msgpack  # noqa: F401 (here rather than once for every mutant)
import numpy as np  # noqa: F401

SEED_S_MAX = 60
"""No seed takes as long as a second: a mutant that hangs within one event has been noticed after so many."""


def hunt(folder: str, seeds: Sequence[int], wanted: int, more: int) -> dict[str, Any]:
    """Run seeds with the package in this folder, until `wanted` have failed or `more` did not after the first that did.

    Each that failed comes with what it saw and how many seconds that took.
    """
    sys.path.insert(0, folder)
    package = importlib.import_module("daws")
    assert str(package.__file__).startswith(folder), package.__file__
    faults = importlib.import_module("tests.sim.faults")
    signal.signal(signal.SIGALRM, _too_long)
    caught: list[tuple[int, str, float]] = []
    tried = 0
    for seed in seeds:
        if len(caught) >= wanted or (caught and not more):
            break
        more -= bool(caught)
        tried += 1
        began_s = time.monotonic()
        signal.alarm(SEED_S_MAX)
        outcome = faults.try_seed(seed)
        signal.alarm(0)
        if isinstance(outcome, faults.Failure):
            caught.append((seed, outcome.message, time.monotonic() - began_s))
    return {"caught": caught, "tried": tried}


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"not done after {SEED_S_MAX} s")


def serve(request: str) -> str:
    """In a child: whatever goes wrong there goes wrong there."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = hunt(**json.loads(request))
        except BaseException as error:
            answer = {"caught": [], "tried": 0, "message": f"does not even start: {type(error).__name__}: {error}"}
        with os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answered = pipe.read()
    os.waitpid(child, 0)
    return answered or json.dumps({"caught": [], "tried": 0, "message": "its process died"})


if __name__ == "__main__":
    for line in sys.stdin:
        print(serve(line), flush=True)
