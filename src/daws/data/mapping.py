"""Files mapped into memory, read-only, without holding a file descriptor.

`mmap.mmap` keeps a descriptor for each mapping before Python 3.13, so a client that holds a few thousand results would
run out of them. There the system call is made through ctypes (which is imported late: small objects are read).
"""

import mmap
import os
import sys
import weakref
from functools import cache
from typing import Any

POPULATE_BYTES_MAX = 64 * 1024 * 1024
"""Up to this size all pages are entered at once: faster than a fault per 64 kB. Larger files are often read in part."""


def map_file(fd: int, size: int) -> memoryview:
    """All `size` bytes of an open file. They stay mapped as long as the view, or anything made from it, lives."""
    flags = mmap.MAP_SHARED | (mmap.MAP_POPULATE if size <= POPULATE_BYTES_MAX else 0)
    if sys.version_info >= (3, 13):
        return memoryview(mmap.mmap(fd, size, flags=flags, prot=mmap.PROT_READ, trackfd=False))
    import ctypes

    map_, unmap = _calls()
    address = map_(None, size, mmap.PROT_READ, flags, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot map {size} bytes: {os.strerror(error)}")
    # A ctypes type is made for each length: round up, so that there are few. What lies behind `size` is never shown.
    memory = (ctypes.c_char * (1 << size.bit_length())).from_address(address)
    weakref.finalize(memory, unmap, address, size).atexit = False
    return memoryview(memory).cast("B").toreadonly()[:size]


@cache
def _calls() -> tuple[Any, Any]:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc.mmap, libc.munmap
