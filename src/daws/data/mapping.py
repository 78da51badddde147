"""Files mapped into memory without holding a file descriptor: read-only or *private*.

A write to a private mapping stays within the process that writes, and costs a copy of the pages that it touches.

`mmap.mmap` keeps a descriptor for each mapping before Python 3.13, so a client that holds a few thousand results would
run out of them. There the system call is made through ctypes (which is imported late: small objects are read).
"""

import mmap
import os
import sys
import weakref
from contextlib import suppress
from functools import cache
from typing import Any

POPULATE_BYTES_MAX = 64 * 1024 * 1024
"""Up to this size all pages are entered at once: faster than a fault per 64 kB. Larger files are often read in part."""
_POPULATE_READ = 22
"""MADV_POPULATE_READ: enter all pages as they are. MAP_POPULATE would copy those of a private mapping."""


def map_file(fd: int, size: int, private: bool = False, populate: bool = True) -> memoryview:
    """All `size` bytes of an open file. They stay mapped as long as the view, or anything made from it, lives."""
    populate = populate and size <= POPULATE_BYTES_MAX
    flags = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED | (mmap.MAP_POPULATE if populate else 0)
    protection = mmap.PROT_READ | mmap.PROT_WRITE if private else mmap.PROT_READ
    if sys.version_info >= (3, 13):
        mapped = mmap.mmap(fd, size, flags=flags, prot=protection, trackfd=False)
        if private and populate:
            with suppress(OSError):
                mapped.madvise(_POPULATE_READ)
        return memoryview(mapped)
    import ctypes

    map_, unmap, advise = _calls()
    address = map_(None, size, protection, flags, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot map {size} bytes: {os.strerror(error)}")
    # A ctypes type is made for each length: round up, so that there are few. What lies behind `size` is never shown.
    memory = (ctypes.c_char * (1 << size.bit_length())).from_address(address)
    weakref.finalize(memory, unmap, address, size).atexit = False
    if private and populate:
        advise(address, size, _POPULATE_READ)
    view = memoryview(memory).cast("B")[:size]
    return view if private else view.toreadonly()


@cache
def _calls() -> tuple[Any, Any, Any]:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc.mmap, libc.munmap, libc.madvise
