"""The process of a worker: how it gets its link and its bell, and how it ends."""

import atexit
import os
import signal
import sys
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, socket
from typing import NoReturn

from daws.wire.worker import ORDERS, Prepare

LINK_FD, BELL_FD = 240, 241  # out of the way of tasks that close what they see
FD_BYTES = 4


def take_bell(link: socket) -> None:
    """Receive the bell, which comes with the first byte on the link."""
    data, extra, _, _ = link.recvmsg(1, CMSG_SPACE(FD_BYTES), MSG_CMSG_CLOEXEC)
    if not data:
        end_group()
    bell = int.from_bytes(extra[0][2][:FD_BYTES], sys.byteorder)
    os.dup2(bell, BELL_FD, inheritable=False)
    os.close(bell)


def first_order(link: socket) -> Prepare:
    """The order that comes in a frame of its own before all others."""
    head = _exactly(link, 4)
    (prepare,) = ORDERS.decode(_exactly(link, int.from_bytes(head, "little")))
    if not isinstance(prepare, Prepare):
        raise TypeError(f"the first order is {prepare!r}")
    return prepare


def _exactly(link: socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = link.recv(count - len(data))
        if not more:
            end_group()
        data += more
    return data


def end_process(code: int) -> NoReturn:
    """Run exit handlers, write the output, and end."""
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def end_group() -> NoReturn:
    """End this worker, whose owner is gone, and all processes that its tasks have started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def end_copy(error: BaseException) -> NoReturn:
    """An exception leaves the task in a copy that the task itself has forked."""
    if not isinstance(error, SystemExit):
        sys.excepthook(type(error), error, error.__traceback__)
        os._exit(1)
    os._exit(error.code if isinstance(error.code, int) else 0 if error.code is None else 1)
