"""A process beside the store's that shortens its log, as the store sees it (`compact` is what it does).

It reads the old state and the calls since then from their files, as a restart would, and writes a new state. The store
goes on meanwhile without a pause, in a process that may have threads and is not forked.
"""

import logging
import subprocess
import sys

from daws.store.log.folder import Folder

_BOOT = "import sys; sys.path[:] = sys.argv[3:]; from daws.store.log.compact import main; main(*sys.argv[1:3])"


class Compaction:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.state_bytes = self._newest_bytes()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self, before: int) -> None:
        """Have all that was there before this log written as a state."""
        command = [sys.executable, "-I", "-c", _BOOT, str(self.folder.path), str(before), *sys.path]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        except OSError as error:
            logging.getLogger("daws").warning("the store's log cannot be shortened: %s", error)

    def has_ended(self) -> bool:
        """Whether it is over, well or not: if not, the old files still count, and a longer log is tried again."""
        assert self._process is not None
        code = self._process.poll()
        if code is None:
            return False
        self._process = None
        if code:
            logging.getLogger("daws").warning("the store's log in %s was not shortened", self.folder.path)
        self.state_bytes = self._newest_bytes()
        return True

    def wait(self) -> None:
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _newest_bytes(self) -> int:
        states = self.folder.numbers("state")
        return self.folder.state(states[-1]).stat().st_size if states else 0
