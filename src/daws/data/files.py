"""The objects of one node: write-once files under the object's id, in memory while there is room, else on disk.

An object's path never changes. When memory gets scarce, the least recently used objects that no run reads are
*spilled*. The file is copied to scratch, and a symbolic link takes its name in one step, so a reader can open the path
before, during and after. Spilled objects stay on disk; the kernel caches them anyway. Memory that a reader still maps
is free only when the reader releases it; it is not counted here.

Small objects may be *held*: they are bytes of this process, and get a file when their path is asked for. An object that
is made and read in this process never gets one.

Any thread may call. Copies and writes happen outside the lock, in the thread that asked for them.
"""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from threading import Event, Lock
from typing import Any

from daws.data.codec import Packed, WholeFile, load_private, loads, pack
from daws.data.envelope import MAGIC, opened
from daws.data.limits import default_limit_bytes
from daws.data.mapping import map_file
from daws.data.outside import PLAIN_MODE
from daws.data.segments import NO_ROOM, Segments
from daws.model.errors import DamagedObjectError, UnavailableError

HIGH_WATER = 0.8
LOW_WATER = 0.6
FREE_SHARE = 8
"""Free segments may take at most this fraction (one part in …) of the limit."""
HELD_BYTES_MAX = 256 * 1024
"""Files of larger objects are worth their system calls: their memory is used again, and mapped instead of copied."""


class _Entry:
    __slots__ = ("held", "is_damaged", "is_doomed", "is_raw", "is_spilled", "pins", "size_bytes")

    def __init__(self, size_bytes: int, is_spilled: bool, is_raw: bool, held: bytes | None = None) -> None:
        self.size_bytes = size_bytes
        self.is_spilled = is_spilled
        self.is_raw = is_raw  # a file that a command has made
        self.held = held  # what would be in its file, if it has none
        self.is_damaged = False  # found out while pinned: as good as gone
        self.is_doomed = False  # dropped while pinned
        self.pins = 0


class ObjectFiles:
    """The object folder of one node."""

    def __init__(
        self,
        memory: str | Path | None,
        scratch: str | Path,
        limit_bytes: int | None = None,
        on_pressure: Callable[[], None] | None = None,
    ) -> None:
        """Keep objects in these folders. `on_pressure` is called when `is_high` has changed, by the thread that changed
        it."""
        self.segments = Segments(memory, scratch)
        self.limit_bytes = default_limit_bytes(memory, scratch) if limit_bytes is None else limit_bytes
        self.used_bytes = 0
        """The bytes of objects in memory (on disk, if there is no memory file system)."""
        self.spilled_bytes = 0
        self.on_pressure = on_pressure
        self.on_damage: Callable[[int, str], None] = lambda object_id, why: None
        """Called, in any thread, when a file that is to be given away turns out to be damaged."""
        self.is_high = False
        """Has the high water mark been passed, and the low one not since?"""
        self._lock = Lock()
        self._entries: dict[int, _Entry] = {}  # the least recently used first
        self._numbers = count()
        self._objects = f"{self.segments.home}/objects"
        self._spilled = f"{self.segments.scratch}/spilled"
        for folder in (self._objects, self._spilled):
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)

    def __repr__(self) -> str:
        spilled = f", {self.spilled_bytes:,} spilled" if self.spilled_bytes else ""
        return f"ObjectFiles({len(self)} objects, {self.used_bytes:,} of {self.limit_bytes:,} bytes{spilled})"

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, object_id: int) -> bool:
        entry = self._entries.get(object_id)
        return entry is not None and not entry.is_damaged

    # What comes in. The first to come stays: objects are written once, and runs of one task may make them twice.

    def put(self, object_id: int, value: object) -> int:
        """Write a value; returns its size. May have to wait for the disk when memory is full."""
        return self.put_packed(object_id, pack(value, f"object {object_id}"))

    def put_packed(self, object_id: int, packed: Packed) -> int:
        """Write a value that is pickled already, or a file that comes from elsewhere."""
        packed = packed.as_file(object_id)
        size = packed.size_bytes
        is_full = self.used_bytes + size > self.limit_bytes
        if is_full and self.segments.has_memory:
            self.make_room(size)
            is_full = self.used_bytes + size > self.limit_bytes
        # In memory, programs can often not be started: such file systems are mounted without that right.
        path = self.segments.write(packed, object_id, in_scratch=is_full or bool(packed.mode & 0o111))
        self.adopt(object_id, path, size, packed.is_raw)
        return size

    def adopt(self, object_id: int, path: str, size_bytes: int, is_raw: bool = False) -> None:
        """Take in a file that `Segments.write` made, here or in a worker. Never waits for a disk."""
        if os.path.dirname(path) not in self.segments.folders_new:
            raise UnavailableError(f"object {object_id}: {path} was not written in a folder of this node", retry=False)
        with self._lock:
            if self._is_here(object_id):
                os.unlink(path)
                return
            is_spilled = self._give_path(object_id, path)
            self._enter(object_id, _Entry(size_bytes, is_spilled, is_raw))
        self._tell()

    @property
    def held_bytes_max(self) -> int:
        """Objects up to this size had better be held. Where there is no memory file system, none: they could not be
        spilled."""
        return HELD_BYTES_MAX if self.segments.has_memory else 0

    def hold(self, object_id: int, content: bytes) -> None:
        """Take in a small object without a file, as what would be in that. Never waits for a disk."""
        with self._lock:
            if self._is_here(object_id):
                return
            self._enter(object_id, _Entry(len(content), False, not content.startswith(MAGIC), content))
        self._tell()

    def link(self, object_id: int, path: str, size_bytes: int, is_raw: bool = False) -> None:
        """Take in an object of another node of this machine: a second name for its file if possible, else a copy."""
        failure: OSError | None = None
        for folder in self.segments.folders_new:
            new = f"{folder}/link-{os.getpid()}-{next(self._numbers)}"
            try:
                os.link(os.path.realpath(path), new)
            except OSError as error:
                failure = error
            else:
                return self.adopt(object_id, new, size_bytes, is_raw)
        if isinstance(failure, FileNotFoundError):
            raise UnavailableError(f"object {object_id} is not at {path} any more", retry=True) from failure
        with open(path, "rb") as file:
            content = file.read()
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        self.put_packed(object_id, WholeFile([content], len(content), is_raw, mode))

    def discard(self, path: str) -> None:
        """Remove a file that was written to be adopted, but is not needed any more."""
        if os.path.dirname(path) in self.segments.folders_new:
            with suppress(FileNotFoundError):
                os.unlink(path)

    def discard_of(self, pid: int) -> int:
        """Remove the unreported files of a dead worker; returns their number. Adopt the reported ones first."""
        count = 0
        for folder in self.segments.folders_new:
            with suppress(FileNotFoundError):  # at the end of a session its folders may have gone first
                for name in os.listdir(folder):
                    if name.startswith(f"{pid}-"):
                        self.discard(f"{folder}/{name}")
                        count += 1
        return count

    # What goes out.

    def path(self, object_id: int) -> str:
        """Where the object is, for readers; pin it while they open it. Counts as a use."""
        with self._lock:
            entry = self._touch(object_id)
        if entry.held is not None:
            self._write_held(object_id, entry, entry.held)
        return self._path(object_id)

    def held(self, object_id: int) -> bytes | None:
        """The object as it is, if it has no file. Counts as a use."""
        with self._lock:
            return self._touch(object_id).held

    def content(self, object_id: int) -> bytes | None:
        """The whole content of the object's file; None if it is on disk (so this never waits for one) or has an unusual
        mode.

        A file with an unusual mode (executable, or readable by other users) is more than its bytes. The call counts as
        a use. A damaged file is treated as gone, as with `open`.
        """
        with self._lock:
            entry = self._touch(object_id)
            if entry.held is not None:
                return entry.held
            if entry.is_spilled or not self.segments.has_memory:
                return None
        with open(self.open(object_id), "rb", buffering=0) as file:
            if entry.is_raw and stat.S_IMODE(os.fstat(file.fileno()).st_mode) != self._usual_mode:
                return None
            return file.readall()

    def where(self, object_id: int) -> str:
        """The path that the object has, or would have."""
        return self._path(object_id)

    def value(self, object_id: int) -> Any:
        """The object's value, for one reader: arrays in it point into the file, can be changed without changing that,
        and stay good when it is dropped."""
        held = self.held(object_id)
        if held is not None:
            return loads(opened(memoryview(held), object_id), copy=True)
        self.pin(object_id)
        try:
            return load_private(self._path(object_id), object_id)
        finally:
            self.unpin(object_id)

    def open(self, object_id: int) -> int:
        """A descriptor of the object's file, to send it; the object must be pinned. A damaged file is noticed here,
        reported to `on_damage`, and refused as if it were gone. (The only known fact about a file that a command made
        is its size.)"""
        entry, path = self._entry(object_id), self._path(object_id)
        fd = -1
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            size = os.fstat(fd).st_size
            if size != entry.size_bytes:
                raise DamagedObjectError(f"it has {size:,} bytes and should have {entry.size_bytes:,}")
            if not entry.is_raw:
                opened(map_file(fd, size), object_id)
        except (DamagedObjectError, FileNotFoundError) as error:
            if fd >= 0:
                os.close(fd)
            self.on_damage(object_id, said_of(error))
            raise UnavailableError(f"object {object_id} is damaged here", retry=True) from error
        return fd

    def mode(self, object_id: int, fd: int | None = None) -> int:
        """The permission bits of a file that a command made, which is open here or held; 0 if it is no such file."""
        if not self._entry(object_id).is_raw:
            return 0
        return self._usual_mode if fd is None else stat.S_IMODE(os.fstat(fd).st_mode)

    def size_bytes(self, object_id: int) -> int:
        return self._entry(object_id).size_bytes

    def pin(self, object_id: int) -> None:
        """A run reads the object: neither spill nor drop it until it is unpinned as often."""
        with self._lock:
            self._touch(object_id).pins += 1

    def unpin(self, object_id: int) -> None:
        with self._lock:
            entry = self._entries.get(object_id) or self._entry(object_id)
            entry.pins -= 1
            if entry.pins == 0 and entry.is_damaged:
                del self._entries[object_id]
            elif entry.pins == 0 and entry.is_doomed:
                self._remove(object_id)
        self._tell()

    def give_up(self, object_id: int) -> str:
        """Give up a file that is damaged or gone. Readers that have opened it keep it, new ones find nothing.

        Returns its path, or nothing if the object is not here or has been given up.
        """
        with self._lock:
            entry = self._entries.get(object_id)
            if entry is None or entry.is_damaged:
                return ""
            path = self._path(object_id)
            for file in (path, f"{self._spilled}/{object_id:x}") if entry.is_spilled else (path,):
                with suppress(OSError):
                    os.unlink(file)
            self._account(-entry.size_bytes, entry.is_spilled)
            entry.is_damaged = True
            if not entry.pins:
                del self._entries[object_id]
        self._tell()
        return path

    def drop(self, object_id: int) -> None:
        """Forget the object; its file goes when the last pin is gone. Unknown objects are gone already."""
        with self._lock:
            entry = self._entries.get(object_id)
            if entry is None or entry.is_damaged:
                return
            if entry.pins:
                entry.is_doomed = True
                return
            self._remove(object_id)
        self._tell()

    # Memory.

    def pressure(self) -> float:
        """How full it is: 0 empty, 1 at the limit. Slow producers above `HIGH_WATER`, and `make_room`."""
        return min(1.0, self.used_bytes / self.limit_bytes) if self.limit_bytes > 0 else 1.0

    def make_room(self, size_bytes: int = 0, stop: Event | None = None) -> int:
        """Spill until that much fits below the low water mark; returns bytes freed. Waits for the disk: use a thread.

        Frees less than asked for when all else is pinned, the disk is full, or it is told to `stop`.
        """
        if not self.segments.has_memory:
            return 0
        freed = self.segments.empty()
        aim = max(0, int(self.limit_bytes * LOW_WATER) - size_bytes)
        with self._lock:
            candidates = list(self._entries)
        for object_id in candidates:
            if self.used_bytes <= aim or (stop is not None and stop.is_set()):
                break
            try:
                freed += self._spill(object_id)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                break
        self._tell()
        return freed

    def _spill(self, object_id: int) -> int:
        with self._lock:
            entry = self._entries.get(object_id)
            if entry is None or entry.pins or entry.is_spilled or entry.is_damaged:
                return 0
            entry.pins += 1  # against dropping and a second spill
        copy = f"{self.segments.folders_new[-1]}/spill-{os.getpid()}-{next(self._numbers)}"
        held = entry.held
        try:
            if held is None:
                import shutil  # dear, and most sessions never spill

                shutil.copyfile(self._path(object_id), copy)
                shutil.copymode(self._path(object_id), copy)
            else:
                Path(copy).write_bytes(held)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(copy)
            self.unpin(object_id)
            if not os.path.exists(self._path(object_id)):
                return 0  # it is gone, which its next reader will find out
            raise
        with self._lock:
            if object_id not in self or self._entries[object_id] is not entry:  # it was given up meanwhile
                os.unlink(copy)
            else:
                self._link_spilled(object_id, copy)
                entry.is_spilled, entry.held = True, None
                self._account(-entry.size_bytes, False)
                self._account(entry.size_bytes, True)
        self.unpin(object_id)
        return entry.size_bytes

    def _write_held(self, object_id: int, entry: _Entry, held: bytes) -> None:
        mode = self._usual_mode if entry.is_raw else Packed.mode
        path = self.segments.write(WholeFile([held], len(held), entry.is_raw, mode), object_id)
        with self._lock:
            if (
                entry.held is None or self._entries.get(object_id) is not entry
            ):  # somebody was faster, or it was dropped
                os.unlink(path)
                return
            entry.held = None
            entry.is_spilled = self._give_path(object_id, path)
            self._account(-entry.size_bytes, False)
            self._account(entry.size_bytes, entry.is_spilled)

    @cached_property
    def _usual_mode(self) -> int:
        """The permission bits that programs' new files have here, unless they say otherwise."""
        path = f"{self.segments.folders_new[0]}/usual-{os.getpid()}-{next(self._numbers)}"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PLAIN_MODE)
        try:  # to ask for the umask would change it for other threads
            return stat.S_IMODE(os.fstat(fd).st_mode)
        finally:
            os.close(fd)
            os.unlink(path)

    def _is_here(self, object_id: int) -> bool:
        """Has another thread brought the object before?"""
        entry = self._entries.get(object_id)
        if entry is None or entry.is_damaged:
            return False
        entry.is_doomed = False  # dropped, then made again while it still has readers
        return True

    def _enter(self, object_id: int, entry: _Entry) -> None:
        """Enter an object. It may replace a damaged one that still has readers."""
        known = self._entries.get(object_id)
        if known is not None:
            entry.pins = known.pins
        self._entries[object_id] = entry
        self._account(entry.size_bytes, entry.is_spilled)

    def _give_path(self, object_id: int, path: str) -> bool:
        """Let the object's path lead to a file that was written for it; says whether that is on disk."""
        is_spilled = self.segments.has_memory and not path.startswith(self.segments.home + "/")
        if is_spilled:
            self._link_spilled(object_id, path)
        else:
            os.rename(path, self._path(object_id))
        return is_spilled

    def _link_spilled(self, object_id: int, path: str) -> None:
        """The object is in scratch under `path`: let its own path lead there."""
        target = f"{self._spilled}/{object_id:x}"
        link = f"{self.segments.folders_new[0]}/to-{os.getpid()}-{next(self._numbers)}"
        os.rename(path, target)
        os.symlink(target, link)
        os.rename(link, self._path(object_id))

    def _path(self, object_id: int) -> str:
        return f"{self._objects}/{object_id:x}"

    def _entry(self, object_id: int) -> _Entry:
        entry = self._entries.get(object_id)
        if entry is None or entry.is_damaged:
            raise UnavailableError(
                f"object {object_id} is not on this node: never written here, or dropped", retry=True
            )
        return entry

    def _touch(self, object_id: int) -> _Entry:
        entry = self._entry(object_id)
        del self._entries[object_id]
        self._entries[object_id] = entry
        return entry

    def _remove(self, object_id: int) -> None:
        entry = self._entries.pop(object_id)
        path = self._path(object_id)
        with suppress(FileNotFoundError):  # it is not missed
            if entry.held is not None:
                pass  # it never had a file
            elif entry.is_spilled:
                os.unlink(path)
                os.unlink(f"{self._spilled}/{object_id:x}")
            else:
                self.segments.recycle(path, self.limit_bytes // FREE_SHARE)
        self._account(-entry.size_bytes, entry.is_spilled)

    def _account(self, size_bytes: int, is_spilled: bool) -> None:
        if is_spilled:
            self.spilled_bytes += size_bytes
        else:
            self.used_bytes += size_bytes

    def _tell(self) -> None:
        """Call back when a water mark was crossed; outside the lock, so that the callee may call us."""
        with self._lock:
            was_high = self.is_high
            self.is_high = is_high = self.pressure() > (LOW_WATER if was_high else HIGH_WATER)
        if is_high is not was_high and self.on_pressure is not None:
            self.on_pressure()


def said_of(error: Exception) -> str:
    """The fault of the file of an object, as a part of a sentence."""
    return "its file is gone" if isinstance(error, FileNotFoundError) else str(error)


def read_and_drop(
    bring: Callable[[], object], files: ObjectFiles, object_: int, read: Callable[[str, int], Any] = load_private
) -> Any:
    """Bring an object here, read its file and drop it again; the mapped memory stays.

    Another thread that wants the same object may have dropped it in between. Then it is brought once more.
    """
    while True:
        bring()
        try:
            files.pin(object_)
        except UnavailableError:
            continue
        try:
            return read(files.path(object_), object_)
        finally:
            files.unpin(object_)
            files.drop(object_)
