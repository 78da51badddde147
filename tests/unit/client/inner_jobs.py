"""Tasks that submit tasks. A module of their own, because workers import it and should not have to import pytest."""

import os
import time
from pathlib import Path

import daws


def fibonacci(n: int) -> int:
    if n < 2:
        return n
    here = daws.current()
    one, other = here.submit(fibonacci, n - 1), here.submit(fibonacci, n - 2)
    return one.result() + other.result()


def total(n: int) -> int:
    """It waits for the last of its tasks alone, which reads what the others make."""
    here = daws.current()
    return here.submit(sum, [here.submit(abs, -one) for one in range(n + 1)]).result()


def depth(n: int) -> int:
    return 0 if not n else daws.current().submit(depth, n - 1).result() + 1


def divide(one: int, other: int) -> float:
    return one / other


def touch(path: str) -> None:
    Path(path).touch()


def attempt(path: str) -> int:
    """Says that it was here, and how often somebody was."""
    with open(path, "a") as file:
        file.write("x")
    return os.path.getsize(path)


def end_worker(code: int | None) -> None:
    """At once, or (without a code) never."""
    if code is None:
        time.sleep(600)
    os._exit(code or 0)
