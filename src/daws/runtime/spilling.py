"""Spilling while a node goes on: a thread that copies objects to disk as long as there is too little room for them.

The thread lives only as long as it is needed. When nothing can be spilled (all objects are being read, or the disk is
full), it retries from time to time.
"""

import logging
from threading import Event, Lock, Thread

from daws.data.files import ObjectFiles

AGAIN_S = 0.2


class Spiller:
    """The thread that spills objects. Any thread may call `look`, whenever a water mark of `files` was crossed."""

    def __init__(self, files: ObjectFiles) -> None:
        self._files = files
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_closed = Event()

    def look(self) -> None:
        with self._lock:
            if self._thread is None and self._is_needed():
                self._thread = Thread(target=self._spill, name="daws-spill", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop spilling. Return when nothing is written any more."""
        self._is_closed.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _is_needed(self) -> bool:
        return self._files.is_high and self._files.segments.has_memory and not self._is_closed.is_set()

    def _spill(self) -> None:
        while True:
            with self._lock:  # so that the next `look` sees whether there is a thread
                if not self._is_needed():
                    self._thread = None
                    return
            try:
                freed = self._files.make_room(stop=self._is_closed)
            except OSError as error:
                logging.getLogger("daws.node").warning("objects cannot be spilled: %s", error)
                freed = 0
            if not freed:
                self._is_closed.wait(AGAIN_S)
