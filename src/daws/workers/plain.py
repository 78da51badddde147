"""Stands in for `daws.data.codec` until that is here: the same names, plain pickle, no buffers beside the stream."""

import os
import pickle
from typing import Any

from daws.workers.errors import SerializeError


class Packed:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size_bytes = len(data)

    def write_to(self, fd: int) -> int:
        with open(fd, "wb", closefd=False) as file:
            return file.write(self.data)


def dumps(value: object, what: str = "the value") -> bytes:
    try:
        data = pickle.dumps(value, 5)
        if b"__main__" not in data:
            return data
    except Exception:
        pass
    try:
        import cloudpickle

        found: bytes = cloudpickle.dumps(value)
        return found
    except Exception as error:
        raise SerializeError(f"{what} of type {type(value).__name__} cannot be pickled: {error}") from error


def encode(value: object, inline_bytes_max: int, what: str = "the value") -> bytes | Packed:
    data = dumps(value, what)
    return data if len(data) <= inline_bytes_max else Packed(data)


def loads(buffer: bytes | memoryview) -> Any:
    return pickle.loads(buffer)


def load_file(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        return pickle.load(file)
