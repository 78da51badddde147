"""Tasks that write down, one line each, when they have ended."""

import os

SIZE = 2_000_000


def note(log: str, what: str) -> None:
    """One line by one system call, so that lines of several processes stand one after the other."""
    where = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(where, f"{what}\n".encode())
    finally:
        os.close(where)


def make(log: str, name: str) -> bytearray:
    note(log, name)
    return bytearray(SIZE)


def follow(log: str, name: str, *before: bytearray) -> bytearray:
    note(log, name)
    return bytearray(before[0])
