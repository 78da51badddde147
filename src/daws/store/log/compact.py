"""The compaction of a log: an old state and the calls since then become a new state, which is valid once it is
renamed."""

import os
import sys
from pathlib import Path

import msgspec

from daws.model.errors import LogError
from daws.store.log.folder import Folder, opening
from daws.store.log.frames import frame
from daws.store.log.logged import StoreSettings
from daws.store.log.opening import read
from daws.store.log.state import parts_of
from daws.store.memory.store import MemoryStore

SYNC_BYTES = 4 * 1024 * 1024
"""The state is synced in steps that a disk does quickly, because the store's own fsyncs have to wait for them."""


def compact(folder: Folder, before: int) -> None:
    reading = read(folder, before=before)
    assert reading.store is not None
    unfinished = folder.unfinished(folder.state(before))
    try:
        write_state(unfinished, reading.store, reading.settings, reading.now_ns)
        os.rename(unfinished, folder.state(before))
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    folder.sync()


def write_state(path: Path, store: MemoryStore, settings: StoreSettings, now_ns: int) -> None:
    encode = msgspec.msgpack.Encoder().encode
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(opening(settings))
        unsafe = 0
        for part in parts_of(store, now_ns):
            unsafe += file.write(frame(encode(part), 0))
            if unsafe > SYNC_BYTES:
                unsafe = 0
                file.flush()
                os.fdatasync(file.fileno())
        file.flush()
        os.fsync(file.fileno())


def main(path: str, before: str) -> None:
    """Compact in a process of its own, with low priority."""
    os.nice(10)
    try:
        compact(Folder(path), int(before))
    except (LogError, OSError) as error:
        sys.exit(f"daws: {error}")
