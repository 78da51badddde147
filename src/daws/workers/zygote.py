"""The fork server: a small process without threads that forks workers for its owner, and outlives it to clean up.

Workers are never forks of the owner, which has threads and much memory. This process imports the modules that they need
once. It ends when its owner closes the link or is gone, in whatever way; then it ends all workers with everything that
their tasks have started, and removes the session's folder.

The messages on the link are in `server`.
"""

import contextlib
import gc
import os
import select
import signal
import sys
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, socket
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn

from daws.data.folders import remove_tree
from daws.workers.server import BORN, FORK, GONE, KILL, LINK_FD, RECORD, SWEEP, end_group
from daws.workers.system import adopt_orphans, die_with_parent

FD_BYTES = 4
WARM_UP_MS = 200
"""The quiet time after the loss of a worker before the server warms up for the next ones. (Earlier no new workers are
expected, and the first tasks would miss the 8 ms of a processor that it takes.)"""


class Zygote:
    def __init__(self, link: socket, wake_fd: int, alarm_fd: int, become: Callable[[int], object]) -> None:
        self._link = link
        self._become = become
        self._wake_fd = wake_fd
        self._alarm_fd = alarm_fd
        self._workers: dict[int, int] = {}  # pid: number
        self._has_lost = False

    def serve(self) -> None:
        """Serve the owner until it is gone."""
        poll = select.poll()
        poll.register(self._link, select.POLLIN)
        poll.register(self._wake_fd, select.POLLIN)
        is_warm = False
        while True:
            # A server that was started early has time to get ready before the first order; later only if that is of
            # use.
            may_warm_up = not is_warm and (self._has_lost or not self._workers)
            ready = poll.poll((WARM_UP_MS if self._workers else 0) if may_warm_up else None)
            if not ready:
                _warm_up()
                is_warm = True
            for fd, _ in ready:
                if fd == self._wake_fd:
                    os.read(fd, 4096)
                    self._reap()
                elif not self._obey():
                    return

    def _obey(self) -> bool:
        """One record of the owner; False when there will be no more."""
        try:
            data, extra, _, _ = self._link.recvmsg(RECORD.size, CMSG_SPACE(FD_BYTES), MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return False
        if len(data) < RECORD.size:
            return False
        what, number, _ = RECORD.unpack(data)
        if what == FORK:
            self._fork(number, int.from_bytes(extra[0][2][:FD_BYTES], sys.byteorder))
        elif what == KILL:
            for pid, known in self._workers.items():
                if known == number:
                    end_group(pid)
        elif what == SWEEP:
            self._sweep()
        return True

    def _fork(self, number: int, fd: int) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(fd)
            self._tell(GONE, number, error.errno or 1)
            return
        if not pid:
            self._become_worker(fd, parent)
        with contextlib.suppress(OSError):  # it has done so itself, and is perhaps gone already
            os.setpgid(pid, pid)
        os.close(fd)
        self._workers[pid] = number
        self._tell(BORN, number, pid)

    def _become_worker(self, fd: int, parent: int) -> NoReturn:
        try:
            os.setpgid(0, 0)
            die_with_parent()
            if os.getppid() != parent:
                os._exit(1)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            _leave_sigterm_to_owner()
            self._link.close()
            os.close(self._wake_fd)
            os.close(self._alarm_fd)
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write("500")  # when memory runs out, a worker goes before the owner does
            self._become(fd)
        finally:
            os._exit(1)

    def _reap(self) -> None:
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            number = self._workers.pop(ended.si_pid, None)
            if number is not None:
                self._has_lost = True
                end_group(ended.si_pid)  # all that its tasks have started, before another process can get the number
            _, status = os.waitpid(ended.si_pid, 0)
            if number is not None:
                self._tell(GONE, number, os.waitstatus_to_exitcode(status))

    def _sweep(self) -> None:
        """End the commands of dead workers: programs that lead a group of their own, and are children of ours now."""
        session = os.getsid(0)
        with contextlib.suppress(OSError):
            for pid in _children():
                if pid not in self._workers and os.getpgid(pid) == pid and os.getsid(pid) == session:
                    end_group(pid)

    def _tell(self, what: int, number: int, value: int) -> None:
        with contextlib.suppress(OSError):  # the owner may be gone, which the next look at the link will show
            self._link.sendall(RECORD.pack(what, number, value))

    def end(self) -> None:
        """End all workers, and everything that they have started."""
        for pid in self._workers:
            end_group(pid)
        while _end_children():
            pass


def _leave_sigterm_to_owner() -> None:
    """Have a worker survive SIGTERM: batch systems and service managers send it to all processes, and the owner of the
    workers decides what it means. Programs and processes that tasks start obey it as ever."""
    only = {signal.SIGTERM}
    before: list[set[int | signal.Signals]] = []

    def block() -> None:
        before.append(signal.pthread_sigmask(signal.SIG_BLOCK, only))  # else a child may get one before it obeys

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before.pop())

    def obey() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        unblock()

    signal.signal(signal.SIGTERM, lambda *_: None)  # other than SIG_IGN, this ends with exec
    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=obey)


def main(folders: list[str], become: str) -> NoReturn:
    _open_outputs()
    link = socket(fileno=LINK_FD)
    os.set_inheritable(LINK_FD, False)
    os.closerange(LINK_FD + 1, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # the server ends when its owner does
        signal.signal(number, signal.SIG_IGN)
    wake_fd, alarm_fd = os.pipe()
    os.set_blocking(alarm_fd, False)
    signal.set_wakeup_fd(alarm_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    adopt_orphans()
    forked: Callable[[int], object] = import_module(become).main
    gc.collect()
    gc.freeze()
    zygote = Zygote(link, wake_fd, alarm_fd, forked)
    is_over = False
    try:
        zygote.serve()
        is_over = True
    finally:
        zygote.end()
        if is_over:  # otherwise the owner will start another one
            for folder in folders:
                remove_tree(folder)
        os._exit(0)


def _open_outputs() -> None:
    """An owner without standard output or error: programs of tasks expect to have them, and not to find something else
    there that was opened next."""
    for fd in (1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)  # which becomes the lowest number that is free


def _end_children() -> bool:
    """Kill and reap all children, those included whose parents have ended; False when there are none."""
    try:
        children = _children()
    except OSError:
        return False
    for pid in children:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        return False
    return True


def _children() -> list[int]:
    """All children that were not waited for: their process numbers are not reused, dead or alive."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(word) for word in file.read().split()]


def _warm_up() -> None:
    """Import modules that the first workers had to import themselves, for workers that are forked later."""
    import ctypes  # noqa: F401
    import traceback  # noqa: F401

    import cloudpickle  # noqa: F401

    gc.collect()
    gc.freeze()
