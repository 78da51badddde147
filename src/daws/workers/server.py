"""The fork server, seen by its owner. The module imports next to nothing, so that the server can be spawned first."""

import contextlib
import marshal
import os
import signal
import sys
from _socket import AF_UNIX, MSG_DONTWAIT, SCM_RIGHTS, SHUT_WR, SOCK_STREAM, SOL_SOCKET, socket, socketpair
from collections import deque
from struct import Struct

LINK_FD = 3
RECORD = Struct("=qqq")
"""A message on the link: one of the words below, the number of a worker, and a number that belongs to the word."""
FORK, KILL, SWEEP, BORN, GONE = range(5)

_BOOT = (
    "import marshal, os, sys\n"
    f"size = int.from_bytes(os.read({LINK_FD}, 4), 'little')\n"
    "first = b''\n"
    "while len(first) < size:\n"
    f"    part = os.read({LINK_FD}, size - len(first))\n"
    "    first += part or sys.exit()\n"  # the owner is gone
    "path, argv, folders, become = marshal.loads(first)\n"
    "sys.path[:], sys.argv[:] = path, argv\n"
    "from daws.workers.zygote import main\n"
    "main(folders, become)\n"
)


class ForkServer:
    """`folders` are removed with everything in them when this process lets go of the server, or ends without doing so.

    A fork calls `main` of the module `become` with its end of the link.
    """

    def __init__(self, *folders: str, become: str = "daws.workers.worker") -> None:
        self.folders = folders
        self.link, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        self._unsent: deque[tuple[bytes, socket | None]] = deque()
        self.early: dict[int, socket] = {}  # our end of the link of each worker that was not used yet, by number
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, *_flags(), "-c", _BOOT],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), LINK_FD),
                ],
                setpgroup=0,  # no Ctrl-C of the owner's terminal
            )
        except BaseException:
            self.link.close()
            raise
        finally:
            theirs.close()
        try:
            first = marshal.dumps((_path(), sys.argv, [*map(os.path.abspath, folders)], become))
            with contextlib.suppress(OSError):  # it is gone, which `receive` will say
                # The server reads already: a long path or argv may be larger than the buffer of the socket.
                self.link.sendall(len(first).to_bytes(4, "little") + first)
        except BaseException:  # Ctrl-C
            self.bury(kill=True)
            raise

    def hire(self, count: int) -> None:
        """Have the workers 1 to `count` forked while their owner imports the modules that it needs to talk to them."""
        for number in range(1, count + 1):
            self.early[number], theirs = socketpair(AF_UNIX, SOCK_STREAM)
            self.fork(number, theirs)

    def fork(self, number: int, link: socket) -> bool:
        """Have a process forked that gets `link`, which is closed here. Answered by (BORN, number, pid)."""
        self._unsent.append((RECORD.pack(FORK, number, 0), link))
        return self.send()

    def kill(self, number: int) -> bool:
        """End a worker with everything that it has started. Answered, as every other end, by (GONE, number, code)."""
        self._unsent.append((RECORD.pack(KILL, number, 0), None))
        return self.send()

    def sweep(self) -> bool:
        """End the commands that dead workers have left running."""
        self._unsent.append((RECORD.pack(SWEEP, 0, 0), None))
        return self.send()

    def send(self) -> bool:
        """Send what waits to be sent; False if that did not work for all of it."""
        while self._unsent:
            record, link = self._unsent[0]
            extra = [(SOL_SOCKET, SCM_RIGHTS, link.fileno().to_bytes(4, sys.byteorder))] if link is not None else []
            try:
                self.link.sendmsg([record], extra, MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:
                pass  # it is gone, which `receive` will say
            if link is not None:
                link.close()
            self._unsent.popleft()
        return True

    def receive(self) -> list[tuple[int, int, int]] | None:
        """The messages that have arrived; None when the server has ended."""
        try:
            data = self.link.recv(RECORD.size * 64, MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        return list(RECORD.iter_unpack(data[: len(data) // RECORD.size * RECORD.size]))

    def let_go(self) -> None:
        """Tell the server to end all workers, remove the folder and end; then `receive` returns None."""
        with contextlib.suppress(OSError):
            self.link.shutdown(SHUT_WR)

    def bury(self, kill: bool = False) -> None:
        """Free the resources of a server that has ended, or must end now."""
        if kill:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.link.close()
        for early in self.early.values():
            early.close()
        for _, link in self._unsent:
            if link is not None:
                link.close()
        self._unsent.clear()
        with contextlib.suppress(ChildProcessError):  # if another thread of this process waits for all children
            os.waitpid(self.pid, 0)


def end_group(pid: int) -> None:
    """Kill a worker and what its tasks have started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _path() -> list[str]:
    try:
        here = os.getcwd()
    except FileNotFoundError:  # it was removed, and nothing can be imported from there
        here = "/"
    return [os.fspath(entry) or here for entry in sys.path]


def _flags() -> list[str]:
    """The options of this interpreter that change what code means or where it is found."""
    flags = ["-O"] * sys.flags.optimize
    if sys.flags.isolated:
        flags.append("-I")
    if sys.flags.dont_write_bytecode:
        flags.append("-B")
    return flags
