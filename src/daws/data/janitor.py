"""A process that removes folders when this process has ended, for clusters that have no process but their client's.

It is a shell that reads a pipe whose other end only this process has. The shell reads the end of the file when this
process is gone, in whatever way it ended. Fork servers do the same for clusters that have one.
"""

import os
import signal
from contextlib import suppress

_WAIT_AND_REMOVE = 'cat > /dev/null; rm -rf -- "$@"'


class Janitor:
    """`folders` are removed when this process ends without having dismissed it."""

    def __init__(self, *folders: str) -> None:
        self._owner = os.getpid()
        self._pid = -1
        theirs, self._ours = os.pipe()
        try:
            self._pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _WAIT_AND_REMOVE, "sh", *map(os.path.abspath, folders)],
                {"PATH": os.defpath},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setpgroup=0,  # no Ctrl-C of the owner's terminal
            )
        except OSError:  # without a shell the next session sweeps
            os.close(self._ours)
        finally:
            os.close(theirs)

    def dismiss(self) -> None:
        """The folders are gone already. Does nothing the second time, or in a forked child."""
        pid, self._pid = self._pid, -1
        if pid < 0 or os.getpid() != self._owner:
            return
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
        os.close(self._ours)
