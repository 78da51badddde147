"""A process beside the store's that shortens its log, as the store sees it (`compact` is the work itself).

The process reads the old state and the calls since then from their files, as a restart would, and writes a new state.
The store continues meanwhile without a pause. Its process may have threads, so it is not forked.
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
        """Start to write everything before this log as a state."""
        command = [sys.executable, "-I", "-c", _BOOT, str(self.folder.path), str(before), *sys.path]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        except OSError as error:
            logging.getLogger("daws.store").warning("the store's log cannot be shortened: %s", error)

    def has_ended(self) -> bool:
        """Whether the process has ended, successfully or not. If it failed, the old files stay valid, and a longer log
        triggers another try."""
        assert self._process is not None
        code = self._process.poll()
        if code is None:
            return False
        self._process = None
        if code:
            logging.getLogger("daws.store").warning("the store's log in %s was not shortened", self.folder.path)
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
