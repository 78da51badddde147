"""What the store has committed, read from its own files when all is over."""

from collections import Counter
from pathlib import Path

from daws.store.log.folder import Folder
from daws.store.log.opening import read
from daws.wire.store import logged_task


def committed(folder: Path) -> Counter[int]:
    """How often each task was committed. Commits that are not the first of a task add to no log, if all is well."""
    store = read(Folder(folder)).store
    assert store is not None
    return Counter(logged_task(row) for shard in store.shards for row in shard.log)
