"""Memory of arrays that is shared with the file of an object: one copy for the client and all workers.

A large array that becomes an object would exist twice: in the client's memory and in the object's file in memory. To
avoid that, its pages are exchanged, piece by piece. A piece is written to the file, and a *private* mapping of that
part of the file replaces the array's own pages. The array stays the same: it reads the same bytes, and when the client
writes, the kernel first gives the client a page of its own, so the file never changes.

The exchange also tells which pages have changed since. A page that is still the file's has not. The kernel knows which
are not (`/proc/self/pagemap`) and tells it in less than a millisecond for 200 MB; comparing takes 30.

The dangers, and why they do not occur:

- Another thread writes to the piece between its copy and its exchange, and that write is lost. Copy and exchange are
  made by two C calls without an interpreter in between, and both keep the interpreter's lock, so no Python code runs
  meanwhile. Code that writes without the lock (numpy in another thread) could. Nothing is therefore exchanged unless
  every other thread of Python is in one of a few functions that wait, or in code of daws.
- The memory is not plain memory: locked, pinned for a device, a file of the user's, of another allocator. Only arrays
  that own their memory are taken, and only if numpy's own allocator has it from glibc as a mapping of its own (its
  header says so). Nothing is taken while the process has locked or pinned memory. Freeing such memory unmaps it,
  whatever is mapped there; growing it falls back to a copy, since the kernel does not grow a range of several mappings.
- The file is cut or written again. Files of such objects are never reused, only removed (see `Segments.recycle`); the
  kernel keeps their pages as long as the array lives.
- The exchange fails halfway, because there is no more room. The exchanged pages stay, though the file is removed; the
  others stay as they are. Room for each piece is reserved before it is written.

If any of this does not hold, nothing is exchanged, and there are two copies. `DAWS_SHARE_PAGES=0` turns it off.
"""

import ctypes
import errno
import mmap
import os
import sys
from contextlib import suppress
from fcntl import ioctl
from functools import cache
from pathlib import Path
from struct import Struct
from threading import get_ident
from types import FrameType
from typing import Any

PAGE = mmap.PAGESIZE
PIECE_BYTES = 4 * 1024 * 1024
SHARE_BYTES_MIN = 4 * 1024 * 1024
"""Smaller arrays are cheap to have twice."""

_HEADER = Struct("QQ")
_IS_MMAPPED = 2
_FLAGS = 7
_SCAN = 0xC0606610
_SCAN_ARGUMENT = Struct("12Q")
_REGION = Struct("3Q")
_REGIONS_MAX = 256
_FILE, _PRESENT, _SWAPPED = 1 << 2, 1 << 3, 1 << 4
_MAP_FIXED = 0x10
_PRIVATE = mmap.MAP_PRIVATE | _MAP_FIXED
_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE
_WAITING = frozenset(
    [
        ("threading", "wait"),
        ("threading", "join"),
        ("threading", "_wait_for_tstate_lock"),
        ("selectors", "select"),
        ("concurrent.futures.thread", "_worker"),
        ("queue", "get"),
    ]
)
_HARMLESS = ("zmq", "ipykernel", "execnet", "daws")
_RUNNING = ("daws.workers.running", "daws.client.mapping", "daws.client.tasks", "daws.futures")
"""Ours that call functions of the user's."""


def owner_of(value: Any) -> Any:
    """The array that owns the memory of this one, or None if that is no array that owns memory."""
    numpy = sys.modules.get("numpy")
    while numpy is not None and isinstance(value, numpy.ndarray):
        if value.flags.owndata:
            return value
        value = value.base
    return None


def address_of(view: memoryview) -> int:
    """Where the bytes of a contiguous view are. They must be kept alive meanwhile."""
    found = (ctypes.c_size_t * 16)()  # a Py_buffer; its first field is the address
    _python().PyObject_GetBuffer(view, ctypes.byref(found), 0)
    address = found[0]
    _python().PyBuffer_Release(ctypes.byref(found))
    return address


def is_same(address: int, other: int, size: int) -> bool:
    return not _free().memcmp(address, other, size)


class Pages:
    """The pages of memory from `low` to `high` that were given to a file."""

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high

    def changed(self, low: int, high: int) -> list[tuple[int, int]]:
        """Where the client has pages of its own by now, between these addresses."""
        with open("/proc/self/pagemap", "rb", buffering=0) as file:
            return _scanned(file.fileno(), low, high)


def exchange(fd: int, offset: int, address: int, size: int) -> Pages:
    """Write `size` bytes of memory to a file at `offset`, and map the whole pages among them from there.

    `offset` and `address` must be at the same place in their pages, and `may_exchange` must have returned True.
    """
    low, high = -(-address // PAGE) * PAGE, (address + size) // PAGE * PAGE
    view = (ctypes.c_char * size).from_address(address)
    _write_all(fd, memoryview(view).cast("B")[: low - address], offset)
    readable = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    write, map_ = _locked().pwrite, _locked().mmap
    try:
        at = low
        while at < high:
            piece, where = min(PIECE_BYTES, high - at), offset + at - address
            # No bytecode between the two calls: the second is made with as many bytes as the first has written.
            os.posix_fallocate(fd, where, piece)  # so that there is room for all that is written
            noted: dict[str, int] = {}
            written = map(noted.setdefault, ("written",), map(write, (fd,), (at,), (piece,), (where,)))
            (mapped,) = map(map_, (at,), written, (_PROTECTION,), (_PRIVATE,), (readable,), (where,))
            if mapped != at or noted["written"] != piece:
                _restore(readable, where, at, noted["written"])
                raise OSError(errno.ENOMEM, f"cannot share {piece} bytes of memory with a file")
            at += piece
    finally:
        os.close(readable)
    _write_all(fd, memoryview(view).cast("B")[high - address :], offset + high - address)
    return Pages(low, high)


def may_exchange(owner: Any, address: int, size: int) -> bool:
    """Are these bytes of an array's memory of a kind that can be exchanged, and is it certain that no thread writes
    there now?"""
    if size < SHARE_BYTES_MIN or not _is_possible() or not _is_default_allocated(owner):
        return False
    start, owned = owner.__array_interface__["data"][0], owner.nbytes
    if not start <= address <= address + size <= start + owned:
        return False
    try:
        return _is_plain(start, owned) and not _is_locked() and _are_others_waiting()
    except (OSError, ValueError):
        return False


def _restore(readable: int, offset: int, address: int, size: int) -> None:
    """Repair a failed mapping, which may have left a hole: map memory there again, with the bytes that were written."""
    if size <= 0:
        return
    mapped = _locked().mmap(address, size, _PROTECTION, _PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if mapped == address:
        room = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
        while room:
            count = os.preadv(readable, [room], offset)
            room, offset = room[count:], offset + count


def _write_all(fd: int, view: memoryview, offset: int) -> None:
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written


def _scanned(fd: int, low: int, high: int) -> list[tuple[int, int]]:
    low, high = low // PAGE * PAGE, -(-high // PAGE) * PAGE
    found: list[tuple[int, int]] = []
    room = bytearray(_REGION.size * _REGIONS_MAX)
    vector = ctypes.addressof((ctypes.c_char * len(room)).from_buffer(room))
    while low < high:
        head = _SCAN_ARGUMENT.pack(
            96, 0, low, high, 0, vector, _REGIONS_MAX, 0, _FILE, _FILE, _PRESENT | _SWAPPED, _PRESENT | _SWAPPED
        )
        argument = bytearray(head)
        try:
            count = ioctl(fd, _SCAN, argument, True)
        except OSError:
            return found + _read_entries(fd, low, high)
        found += [_REGION.unpack_from(room, _REGION.size * one)[:2] for one in range(count)]
        low = _SCAN_ARGUMENT.unpack(argument)[4]
    return found


def _read_entries(fd: int, low: int, high: int) -> list[tuple[int, int]]:
    """The changed pages like `_scanned`, for kernels before 6.7."""
    import numpy

    room = bytearray((high - low) // PAGE * 8)
    if os.preadv(fd, [room], low // PAGE * 8) != len(room):
        raise OSError("the kernel does not tell of all pages")
    kinds = numpy.frombuffer(room, numpy.uint64) >> numpy.uint64(61)  # present, swapped, of a file
    pages = numpy.flatnonzero((kinds > 1) & (kinds & numpy.uint64(1) == 0))
    return [(low + int(page) * PAGE, low + int(page + 1) * PAGE) for page in pages]


def _is_plain(start: int, size: int) -> bool:
    """Is it a mapping of glibc's own for a single allocation, and still private memory throughout?"""
    header = start - _HEADER.size
    ranges = _mappings(header // PAGE * PAGE, start + size)
    if not ranges or not ranges[0][2]:
        return False
    before, length = _HEADER.unpack(ctypes.string_at(header, _HEADER.size))
    if not length & _IS_MMAPPED:
        return False
    block, end = header - before, header + (length & ~_FLAGS)
    return not block % PAGE and not end % PAGE and start + size <= end <= start + size + 2 * PAGE


def _mappings(low: int, high: int) -> list[tuple[int, int, bool]]:
    """The mappings between two addresses, without a gap: (begin, end, is anonymous). Nothing if some of it is neither
    private memory nor memory that was exchanged before."""
    found = []
    at = low
    for line in Path("/proc/self/maps").read_text().splitlines():
        bounds, rights, _, _, inode, *name = line.split(None, 5)
        begin, _, end = bounds.partition("-")
        first, last = int(begin, 16), int(end, 16)
        if last <= at:
            continue
        if first > at or at >= high:
            break
        is_anonymous = inode == "0" and not name
        is_ours = bool(name) and name[0].startswith("/dev/shm/daws-")
        if rights != "rw-p" or not (is_anonymous or is_ours):
            return []
        found.append((first, last, is_anonymous))
        at = last
    return found if at >= high else []


def _is_locked() -> bool:
    """Is any memory of this process locked or pinned?"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(("VmLck:", "VmPin:")) and line.split()[1] != "0":
            return True
    return False


def _are_others_waiting() -> bool:
    """Is every other thread in a function that waits, or in one that touches no arrays of the user's?"""
    here = get_ident()
    return all(thread == here or _is_harmless(frame) for thread, frame in sys._current_frames().items())


def _is_harmless(frame: FrameType | None) -> bool:
    """A thread that is there writes to no array: it waits, or it is in code of ours, or of a notebook's kernel, and in
    nothing but the standard library below that."""
    if frame is not None and (_module_of(frame), frame.f_code.co_name) in _WAITING:
        return True
    while frame is not None:
        name = _module_of(frame)
        package = name.partition(".")[0]
        if package not in sys.stdlib_module_names or package == "__main__":
            return package in _HARMLESS and name not in _RUNNING
        frame = frame.f_back
    return False


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_default_allocated(owner: Any) -> bool:
    numpy = sys.modules["numpy"]
    core = getattr(numpy, "_core", None) or numpy.core
    return type(owner).__module__ == "numpy" and core.multiarray.get_handler_name(owner) == "default_allocator"


@cache
def _is_possible() -> bool:
    """Linux with glibc's own allocator and its files; the interpreter has a lock; memory is not counted strictly."""
    if os.environ.get("DAWS_SHARE_PAGES") == "0" or sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.gnu_get_libc_version  # noqa: B018
        used = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
        if used != ctypes.cast(libc.malloc, ctypes.c_void_p).value:
            return False
        return Path("/proc/sys/vm/overcommit_memory").read_text().strip() != "2" and _can_tell_changed()
    except (OSError, AttributeError, ValueError):
        return False


def _can_tell_changed() -> bool:
    """Try it out on a page of each kind."""
    fd = os.memfd_create("daws-pages", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, 4 * PAGE)
        tried = mmap.mmap(fd, 4 * PAGE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(fd)
    tried[0], tried[3 * PAGE] = tried[PAGE], 1
    low = address_of(memoryview(tried))
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        expected = [(low, low + PAGE), (low + 3 * PAGE, low + 4 * PAGE)]
        is_told = _scanned(file.fileno(), low, low + 4 * PAGE) == expected
        with suppress(ImportError):
            is_told = is_told and _read_entries(file.fileno(), low, low + 4 * PAGE) == expected
    return is_told


@cache
def _python() -> Any:
    python = ctypes.PyDLL(None)
    python.PyObject_GetBuffer.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    python.PyBuffer_Release.argtypes = [ctypes.c_void_p]
    python.PyBuffer_Release.restype = None
    return python


@cache
def _free() -> Any:
    """The C library, for calls that release the interpreter's lock."""
    libc = ctypes.CDLL(None)
    libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return libc


@cache
def _locked() -> Any:
    """The C library, for calls that keep the interpreter's lock."""
    libc = ctypes.PyDLL(None, use_errno=True)
    libc.pwrite.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
    libc.pwrite.restype = ctypes.c_ssize_t
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mmap.restype = ctypes.c_void_p
    return libc
