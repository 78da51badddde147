"""The folders of a session: made at its start, gone at its end, and those of killed clients swept at the next start.

Each folder is private (0700) and its owner holds a lock (`flock`) on it as long as it lives. The kernel drops the lock
when the process is gone, in whatever way, so a process that gets the lock knows that the folder's owner is dead. Reused
pids, containers with other pids, and a second session that starts at the same moment cannot mislead it. A folder gets
its final name after it was locked; those that never got one are swept when they are an hour old. The pid in the name is
for people. If locks do not work (some network file systems) nothing is swept.
"""

import fcntl
import os
import re
import stat
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from daws.data.folders import remove_tree
from daws.data.limits import file_system_of, free_bytes
from daws.model.errors import UnavailableError

MEMORY_BASE = Path("/dev/shm")
MEMORY_BYTES_MIN = 128 * 1024 * 1024
"""A memory file system with less room than this (64 MB in many containers) is not worth having."""
UNBORN_S_MAX = 3600
MEMORY_FILE_SYSTEMS = frozenset(["tmpfs", "ramfs"])


class _Program:
    """Lives as long as the program."""


_program = _Program()
weakref.finalize(_program, int)
"""Functions that were registered last are called first when the program ends. With its first use `weakref.finalize`
registers the one that removes folders: here, so before the one that closes clusters, which wait for their tasks."""

_NAME = re.compile(r"(\.?)daws-(\d+)-\d+-[0-9a-f]{8}")


class SessionFolders:
    """`memory` (None if there is no room), `scratch` and `run` (a short path, for sockets) are this session's alone."""

    def __init__(self, memory_base: Path | None = None, scratch_base: Path | None = None) -> None:
        """Make the folders, and sweep those of killed sessions. The default bases are /dev/shm, and TMPDIR or another
        folder on disk."""
        scratch_base = scratch_base or default_scratch()
        memory_base = memory_base or default_memory()
        run_base = _runtime_base() or memory_base or scratch_base
        bases = list(dict.fromkeys(base for base in (memory_base, scratch_base, run_base) if base is not None))
        sweep(*bases)
        token = os.urandom(4).hex()
        made: dict[Path, tuple[Path, int]] = {}
        # Also runs when the interpreter exits, so that nothing stays behind an uncaught exception.
        self._finalizer = weakref.finalize(self, _remove, os.getpid(), made)
        try:
            for base in bases:
                made[base] = _make(base, token)
        except OSError as error:
            self._finalizer()
            message = f"cannot make a folder in {error.filename}: {error.strerror}; set TMPDIR to a folder with room"
            raise UnavailableError(message, retry=False) from error
        self.memory = made[memory_base][0] if memory_base else None
        self.scratch = made[scratch_base][0]
        self.run = made[run_base][0]

    def __repr__(self) -> str:
        state = "" if self._finalizer.alive else ", closed"
        return f"SessionFolders(memory={self.memory}, scratch={self.scratch}{state})"

    def all(self) -> list[str]:
        """Each of its folders once."""
        return [str(one) for one in dict.fromkeys((self.run, self.memory, self.scratch)) if one is not None]

    def node_folders(self, index: int) -> tuple[Path | None, Path]:
        """The memory folder (if any) and the scratch folder of one node."""
        return self.part(f"node-{index}")

    def part(self, name: str) -> tuple[Path | None, Path]:
        """Folders of this session under one name: in memory (if there is any) and on scratch."""
        found = (self.memory and self.memory / name, self.scratch / name)
        for folder in found:
            if folder is not None:
                folder.mkdir(mode=0o700, exist_ok=True)
        return found

    def close(self) -> None:
        """Remove the folders and all that is in them. Does nothing the second time, or in a forked child."""
        self._finalizer()

    def __enter__(self) -> "SessionFolders":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def default_memory() -> Path | None:
    """The folder /dev/shm, if it is in memory, ours to write, and has room."""
    base = MEMORY_BASE
    if not os.access(base, os.W_OK | os.X_OK) or file_system_of(base) not in MEMORY_FILE_SYSTEMS:
        return None
    return base if free_bytes(base) >= MEMORY_BYTES_MIN else None


def default_scratch() -> Path:
    """TMPDIR if it is set; else the usual one, or /var/tmp where /tmp is in memory and no help when that is full."""
    usual = Path(os.environ.get("TMPDIR") or "/tmp")
    if not os.access(usual, os.W_OK | os.X_OK):
        import tempfile  # dear to import, and it knows only of more unusual places

        usual = Path(tempfile.gettempdir())
    on_disk = Path("/var/tmp")
    if os.environ.get("TMPDIR") or file_system_of(usual) not in MEMORY_FILE_SYSTEMS:
        return usual
    if os.access(on_disk, os.W_OK | os.X_OK) and file_system_of(on_disk) not in MEMORY_FILE_SYSTEMS:
        return on_disk
    return usual


def _runtime_base() -> Path | None:
    name = os.environ.get("XDG_RUNTIME_DIR", "")
    with suppress(OSError):
        if name.startswith("/") and os.stat(name).st_uid == os.getuid() and os.access(name, os.W_OK | os.X_OK):
            return Path(name)
    return None


def sweep(*bases: Path) -> list[Path]:
    """Remove the folders of this user's sessions whose process is gone, and return them. Processes that outlive a
    client call it too."""
    gone = []
    for base in bases:
        for path in _folders(base):
            with suppress(OSError):
                fd = _lock(path)
                try:
                    remove_tree(path)
                    gone.append(path)
                finally:
                    os.close(fd)
    return gone


def _folders(base: Path) -> Iterator[Path]:
    """Folders in `base` that a session of this user made, unless they may be just about to get their name."""
    uid = os.getuid()
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if not match or int(match[2]) != uid:
                continue
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == uid
                if is_ours and (not match[1] or time.time() - status.st_mtime > UNBORN_S_MAX):
                    yield base / entry.name


def _make(base: Path, token: str) -> tuple[Path, int]:
    name = f"daws-{os.getuid()}-{os.getpid()}-{token}"
    unborn, path = base / f".{name}", base / name
    os.mkdir(unborn, 0o700)
    try:
        fd = _lock(unborn)
    except BlockingIOError:
        raise
    except OSError:
        fd = -1  # no locks here: no other process gets one either
    os.rename(unborn, path)
    return path, fd


def _lock(path: Path) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _remove(pid: int, made: dict[Path, tuple[Path, int]]) -> None:
    if os.getpid() != pid:  # a forked child has a copy of the session, but the folders are not its own
        return
    for path, fd in made.values():
        remove_tree(path)
        if fd >= 0:
            os.close(fd)
