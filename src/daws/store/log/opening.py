"""Opening a store: from a folder to the newest state, and then all calls since."""

import gc
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time_ns
from typing import TypeVar

import msgspec

from daws.model.errors import LogError
from daws.store.log.calls import LOG_BYTES_MIN, CallFiles
from daws.store.log.folder import Contents, Folder
from daws.store.log.frames import frame
from daws.store.log.logged import LoggedCall, LoggedStore, StoreSettings, carry_out, go_on, set_up
from daws.store.log.state import DECODER, Restoring
from daws.store.memory.store import MemoryStore

_CALLS = msgspec.msgpack.Decoder(list[LoggedCall])
Decoded = TypeVar("Decoded")


class Reading:
    """A store on its way back into memory. Nothing but the unfinished end of the last log is changed on disk."""

    def __init__(self, folder: Folder, store: MemoryStore | None, durable: bool) -> None:
        self.folder = folder
        self.durable = durable
        self.store = store  # None until the first file names its settings
        self.settings = StoreSettings()
        self.rows = 0
        self.now_ns = 0
        self.last_is_empty = False

    def read_state(self, number: int) -> None:
        path = self.folder.state(number)
        file = Contents(path, may_be_cut=False)
        restoring = Restoring(self._begin(path, file.settings()))
        for payload in file.parts():
            restoring.add(_decoded(DECODER, payload, path))
        if not restoring.is_whole:
            raise LogError(f"{path} is not whole; bring it back from a copy")
        self.now_ns = restoring.now_ns

    def read_log(self, number: int, is_last: bool, is_closed: bool) -> None:
        path = self.folder.log(number)
        file = Contents(path, may_be_cut=is_last and not is_closed)
        self._begin(path, file.settings())
        self.last_is_empty = True
        for payload in file.parts():
            self.last_is_empty = False
            self._carry_out(_decoded(_CALLS, payload, path))
        if file.lost_bytes:
            logging.getLogger("daws.store").warning(
                "%s: the last %s bytes were never finished and are cut off", path, f"{file.lost_bytes:,}"
            )
        if not file.is_sealed:
            if not is_last or is_closed:
                raise LogError(f"{path} has lost its end; bring it back from a copy")
            _settle(path, file.whole_bytes, self.durable)

    def _carry_out(self, calls: list[LoggedCall]) -> None:
        assert self.store is not None
        self.rows += carry_out(self.store, calls)
        if calls:
            self.now_ns = max(self.now_ns, calls[-1].now_ns)

    def _begin(self, path: Path, settings: StoreSettings) -> MemoryStore:
        if self.store is None:
            self.store = MemoryStore(settings.shard_count)
        if settings.shard_count != self.store.shard_count:
            raise LogError(
                f"{path} has {settings.shard_count} shards, and {self.store.shard_count} were asked for; "
                f"open it with as many as it has"
            )
        set_up(self.store, settings)
        self.settings = settings
        return self.store


def _settle(path: Path, whole_bytes: int, durable: bool) -> None:
    """Make the part that was read safe and seal it, because the next calls build on it."""
    with open(path, "r+b") as file:
        file.truncate(whole_bytes)
        file.seek(whole_bytes)
        file.write(frame(b"", whole_bytes))
        file.flush()
        if durable:
            os.fsync(file.fileno())


def _decoded(decoder: "msgspec.msgpack.Decoder[Decoded]", payload: memoryview, path: Path) -> Decoded:
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LogError(f"{path} has something in it that this daws cannot read: {error}") from error


def read(folder: Folder, store: MemoryStore | None = None, before: int | None = None, durable: bool = True) -> Reading:
    """Read all of a folder, or only what was there before a certain log, which is not the last one then."""
    reading = Reading(folder, store, durable)
    state, logs = folder.newest()
    is_closed = before is None and folder.check_closed(logs)
    with _no_garbage():
        if state:
            reading.read_state(state)
        for number in logs:
            if before is None or number < before:
                is_last = before is None and number == logs[-1]
                reading.read_log(number, is_last, is_last and is_closed)
    return reading


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Switch the garbage collector off for a while. Only live objects are made, and searching them takes a third of the
    time."""
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.enable()


class _Nowhere:
    """The log of a store that is being filled from a log: it drops all calls."""

    def check(self) -> None: ...

    def append(self, call: LoggedCall) -> None: ...


def open_store(
    path: str | os.PathLike[str],
    settings: StoreSettings,
    now_ns: int | None = None,
    durable: bool = True,
    log_bytes_min: int = LOG_BYTES_MIN,
) -> tuple[LoggedStore, CallFiles]:
    """The store in a folder, as it was or new, and its log. Raises LogError if the folder cannot be used."""
    if now_ns is None:
        now_ns = time_ns()
    store = LoggedStore(settings, _Nowhere())
    folder = Folder(path)
    lock = folder.lock()
    try:
        folder.tidy()
        state, logs = folder.newest()
        reading = read(folder, store, durable=durable)
        number = logs[-1] + (not reading.last_is_empty) if logs else state or 1
        folder.forget_closed()
        store.log = files = CallFiles(folder, lock, settings, number, durable, log_bytes_min)
    except OSError as error:
        os.close(lock)
        raise LogError(f"cannot keep a store in {folder.path}: {error.strerror}; name another folder") from error
    except BaseException:
        os.close(lock)
        raise
    store.ahead_ns = max(0, reading.now_ns - now_ns)
    go_on(store, settings, now_ns + store.ahead_ns)
    return store, files
