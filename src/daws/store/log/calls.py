"""The calls of one store on their way to disk.

Calls are counted. `position` is how many were logged, `safe` how many of them survive any crash. The thread of the
store appends and takes; another thread may write, because waiting for a disk takes long.
"""

import errno
import logging
import os
from collections import deque
from collections.abc import Iterator
from threading import Lock

import msgspec

from daws.model.errors import StoreFullError
from daws.store.log.compaction import Compaction
from daws.store.log.folder import Folder
from daws.store.log.logged import LoggedCall, StoreSettings
from daws.store.log.segment import Segment

LOG_BYTES_MIN = 64 * 1024 * 1024
"""A shorter log is not worth a new state."""
LOG_SHARE = 2.0
"""The length that the log may reach, as a multiple of the state that it continues, before both become a new state."""
FRAME_ROWS = 512
"""The number of rows in a frame. Replay is fastest when the data that it reads at once fits into the processor's
cache."""
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


def _in_frames(calls: list[LoggedCall]) -> Iterator[list[LoggedCall]]:
    some: list[LoggedCall] = []
    rows = 0
    for call in calls:
        some.append(call)
        rows += len(call.rows)
        if rows >= FRAME_ROWS:
            yield some
            some, rows = [], 0
    if some:
        yield some


class CallFiles:
    """The log files of a store. With `durable`, safe calls survive a crash of the machine; else of the process only."""

    def __init__(
        self,
        folder: Folder,
        lock: int,
        settings: StoreSettings,
        number: int,
        durable: bool,
        log_bytes_min: int = LOG_BYTES_MIN,
    ) -> None:
        self.folder = folder
        self.durable = durable
        self.position = 0
        self.safe = 0
        self.trouble: StoreFullError | None = None
        self._settings = settings
        self._lock_file = lock
        self._number = number
        self._segment = Segment(folder, number, settings, durable)
        self._log_bytes_min = log_bytes_min
        self._compaction = Compaction(folder)
        self._fresh: list[LoggedCall] = []
        self._taken: deque[tuple[list[LoggedCall], int]] = deque()
        self._written = 0  # the position up to which calls are in the segment, saved or not
        self._writing = Lock()
        self._encode = msgspec.msgpack.Encoder().encode
        self._closed = False

    # -- the store's thread ------------------------------------------------------------------------------------------

    def check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def append(self, call: LoggedCall) -> None:
        self._fresh.append(call)
        self.position += 1

    def take(self) -> None:
        """Hand all calls logged so far to the next `write`."""
        if self._fresh:
            self._taken.append((self._fresh, self.position))
            self._fresh = []

    def sync(self) -> int:
        """Make all calls logged so far safe, here and now. Returns `safe`."""
        self.take()
        self.write()
        return self.safe

    def close(self) -> None:
        """Make everything safe, and release the folder."""
        if self._closed:
            return
        self._closed = True
        try:
            self.sync()
            self._segment.seal(self.durable)
            self.folder.note_closed(self._number, self._segment.safe_bytes, self.durable)
        finally:
            self._compaction.stop()
            self._segment.close()
            os.close(self._lock_file)

    def abandon(self) -> None:
        """Give up as if the process had been killed: unwritten calls are lost. For tests, and for stores that cannot go
        on."""
        self._closed = True
        self._compaction.stop()
        self._segment.close()
        os.close(self._lock_file)

    # -- any thread --------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Save the calls that were taken. Raises StoreFullError if that fails; nothing is lost then, and a retry may
        succeed."""
        with self._writing:
            while self._taken:
                calls, position = self._taken.popleft()
                for some in _in_frames(calls):
                    self._segment.add(self._encode(some))
                self._written = position
            try:
                self._segment.save(self.durable)
            except OSError as error:
                self.trouble = self._say(error)
                raise self.trouble from error
            self.safe = self._written
            self.trouble = None
            self._tend()

    def _say(self, error: OSError) -> StoreFullError:
        if error.errno in _NO_ROOM:
            what, cure = "there is no room for", "make room there, and it goes on by itself"
        else:
            what, cure = f"{error.strerror} when writing", "see to that disk; it goes on by itself when writing works"
        return StoreFullError(f"{what} the store's log in {self.folder.path}: nothing is changed until then; {cure}")

    # -- a log that became long --------------------------------------------------------------------------------------

    def shorten(self) -> None:
        """Begin to turn the log into a new state, unless that is under way. This needs no answer and does not block."""
        with self._writing:
            self._shorten()

    def wait_until_short(self) -> None:
        """Wait until a running compaction has ended."""
        self._compaction.wait()
        with self._writing:
            self._tend()

    def _tend(self) -> None:
        compaction = self._compaction
        if compaction.is_running:
            if compaction.has_ended():
                self.folder.tidy()
        elif self._segment.safe_bytes >= max(self._log_bytes_min, int(LOG_SHARE * compaction.state_bytes)):
            self._shorten()

    def _shorten(self) -> None:
        if self._compaction.is_running:
            return
        try:
            self._segment.seal(durable=True)
            following = Segment(self.folder, self._number + 1, self._settings)
        except OSError as error:  # try again later
            logging.getLogger("daws.store").warning("the store's log cannot be shortened: %s", error)
            return
        self._segment.close()
        self._segment = following
        self._number += 1
        self._compaction.start(self._number)
