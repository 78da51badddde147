"""How much there is: memory of this machine or container, room in a file system, and what kind it is."""

import errno
import os
import resource
from contextlib import suppress
from pathlib import Path

from daws.model.errors import UnavailableError

OBJECTS_SHARE = 0.3
"""The share of memory that objects may take unless the user says otherwise; tasks need the rest."""

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


FILES_MIN = 256
FILES_SPARE = 64
FILES_PER_WORKER = 3  # its link, its bell and its cursor
TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


def check_open_files(workers: int) -> None:
    """Raise an error if this process may not open enough files for this many workers, or workers not enough for
    themselves."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max(FILES_MIN, FILES_SPARE + FILES_PER_WORKER * workers)
    if allowed != resource.RLIM_INFINITY and allowed < needed:
        who, cure = (f"{workers:,} workers need", " or have fewer workers") if workers else ("a node needs", "")
        raise UnavailableError(
            f"only {allowed:,} files may be open at one time, and {who} {needed:,}; raise the limit "
            f"(ulimit -n {needed}){cure}",
            retry=False,
        )


def with_cure(error: OSError) -> str:
    """The error's message, with a cure if one is known."""
    said = error.strerror or str(error)
    if error.errno in TOO_MANY_FILES:
        return f"{said}; raise the limit (ulimit -n)"
    return f"{said}; make room there, or set TMPDIR to a larger disk" if error.errno == errno.ENOSPC else said


def free_bytes(folder: str | Path) -> int:
    """Room for files of ordinary users."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def memory_bytes() -> int:
    """The machine's memory, or the container's limit if that is smaller."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # absent, or "max"
            found = min(found, int(Path(name).read_text()))
    return found


def default_limit_bytes(memory: str | Path | None, scratch: str | Path, nodes: int = 1) -> int:
    """The room that the objects of one of `nodes` nodes of this machine may take in their folder."""
    if memory is None:
        return int(0.9 * free_bytes(scratch)) // nodes
    return int(min(OBJECTS_SHARE * memory_bytes(), 0.8 * free_bytes(memory))) // nodes


def file_system_of(path: str | Path) -> str:
    """The type of the file system that holds `path`, such as "tmpfs" or "ext4"; empty if that cannot be known."""
    path = os.path.realpath(path)
    best, kind = "", ""
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, mount, found, *_ = line.split(" ")
            mount = mount.replace("\\040", " ")
            inside = path == mount or path.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best):  # the last one hides those before it
                best, kind = mount, found
    return kind
