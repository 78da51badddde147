"""What the tasks of these tests do. Workers import this file, so it imports little."""

import os
import signal
import time

BLOB_BYTES = 16_000


def add(*numbers: int) -> int:
    return sum(numbers)


def blob(number: int, size_bytes: int = BLOB_BYTES) -> bytes:
    """Too large to travel inside records."""
    return bytes([number]) * size_bytes


def mix(*blobs: bytes) -> bytes:
    return bytes([sum(one[0] for one in blobs)]) * len(blobs[0])


def first(one: bytes) -> int:
    return one[0]


def which_node(path: str, count: int) -> int:
    """Waits until so many nodes run this; whoever runs it is a child of its node's fork server."""
    node = os.getppid()
    open(os.path.join(path, str(node)), "w").close()
    while len(os.listdir(path)) < count:
        time.sleep(0.001)
    return node


def begin_and_hang(path: str) -> None:
    with open(path, "w"):
        time.sleep(1000)


def begin_once_and_hang(path: str, number: int) -> int:
    """Until there is a second file."""
    open(path, "w").close()
    while not os.path.exists(f"{path}.go"):
        time.sleep(0.001)
    return number


class Deadly:
    def __reduce__(self) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""


def die_half_way() -> tuple[bytes, Deadly]:
    """Its first result is written when its worker dies of the second."""
    return bytes(1_000_000), Deadly()


def slow_blob(number: int, size_bytes: int = BLOB_BYTES) -> bytes:
    """Too long to be sent ahead."""
    time.sleep(0.002)
    return blob(number, size_bytes)
