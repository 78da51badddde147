"""The reader of workflow files: it recognises a format by the content of a file, and unpacks gzip.

No other module of this package opens files for reading. The number of bytes that are read is limited, because ten
kilobytes of gzip can become ten gigabytes of zeros.
"""

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from daws.formats.dax import read_dax
from daws.formats.values import shown
from daws.formats.wfformat import read_wfformat
from daws.formats.workflow import Workflow
from daws.model.errors import WorkflowError

CHUNK_BYTES = 1 << 20
FILE_BYTES_MAX = 1 << 30
GZIP_MAGIC = b"\x1f\x8b"
UTF8_MARK = b"\xef\xbb\xbf"
# The first letter of XML in encodings of two bytes, with and without a mark.
WIDE_XML = (b"\xff\xfe<\x00", b"\xfe\xff\x00<", b"<\x00", b"\x00<")
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_workflow(path: str | Path) -> Workflow:
    """The workflow in a DAX or WfFormat file, packed with gzip or not.

    WorkflowError in one line that begins with the path, and the line or JSON path where there is one.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            return _read(name, file)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise WorkflowError(f"{name}: the gzip data is damaged: {error}") from None
    except ValueError as error:  # a NUL in the path
        raise WorkflowError(f"{shown(name)} cannot be read: {error}") from None
    except OSError as error:
        raise WorkflowError(f"{name}: cannot be read: {error.strerror or error}") from None


def _read(name: str, file: BinaryIO) -> Workflow:
    packed = file.peek(2)[:2] == GZIP_MAGIC  # type: ignore[attr-defined]  # open() gives a buffered reader
    chunks = _chunks(name, gzip.GzipFile(fileobj=file) if packed else file)
    first = next(chunks, b"").removeprefix(UTF8_MARK)
    begin = first.lstrip()
    if not begin:
        raise WorkflowError(f"{name}: the file is empty")
    if begin.startswith((b"{", b"[")):
        return read_wfformat(name, b"".join((first, *chunks)))
    if begin.startswith((b"<", *WIDE_XML)):
        # Nothing may stand before an XML declaration, but something does now and then.
        whole = _joined(begin if begin.startswith(b"<?xml") else first, chunks)
        # A mark says more than a declaration, which stays as it was when a shell writes UTF-16.
        return read_dax(name, whole, "utf-16" if first.startswith(WIDE_MARKS) else None)
    if begin.startswith(WIDE_MARKS):
        return read_wfformat(name, _narrow(name, b"".join((first, *chunks))))
    raise WorkflowError(
        f"{name}: neither DAX nor WfFormat: it begins with {shown(begin[:20].decode('latin-1'))}, not with < or {{"
    )


def _narrow(name: str, text: bytes) -> bytes:
    """A text in UTF-16, which Windows likes to write, as UTF-8, which JSON needs."""
    try:
        return text.decode("utf-16").encode()
    except UnicodeError:
        raise WorkflowError(f"{name}: it begins as UTF-16, but is not; save it as UTF-8") from None


def _joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _chunks(name: str, file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    total = 0
    while chunk := file.read(CHUNK_BYTES):
        total += len(chunk)
        if total > FILE_BYTES_MAX:
            raise WorkflowError(f"{name}: more than {FILE_BYTES_MAX >> 20:,} MiB; files as large as this are not read")
        yield chunk
