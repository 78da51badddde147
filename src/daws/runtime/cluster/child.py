"""The process that a fork of a private cluster's fork server becomes: its store, or a node.

The first message of the client says which. The process ends when the client closes the link or is gone."""

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import NoReturn

import uvloop

from daws.data.session import SessionFolders
from daws.logs import set_up_by_environment
from daws.model.errors import PeerError
from daws.runtime.cluster.children import framed
from daws.runtime.cluster.hosting import NodeHost
from daws.runtime.cluster.reach import PrivateReach
from daws.runtime.cluster.storing import serve_privately
from daws.wire.children import START, Broken, StartNode, StartStore, Up
from daws.wire.frames import FrameReader
from daws.workers.failures import failure_of
from daws.workers.sharedstreams import share_logs, share_streams


def main(link_fd: int) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = _run(socket(fileno=link_fd))
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run(link: socket) -> int:
    start = _first(link)
    if start is None:
        return 0
    set_up_by_environment()
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        if isinstance(start, StartStore):
            _be_store(loop, start, link)
        else:
            _be_node(loop, start, link)
    except Exception as error:
        link.setblocking(True)
        with suppress(OSError):
            link.sendall(framed(Broken(failure_of(error))))
        return 1
    return 0


def _first(link: socket) -> StartStore | StartNode | None:
    """None if the client is gone."""
    reader = FrameReader()
    while True:
        count = link.recv_into(reader.room)
        if not count:
            return None
        for frame in reader.arrived(count):
            (start,) = START.decode(frame)
            return start


def _watch(loop: asyncio.AbstractEventLoop, link: socket, closed: Callable[[], None]) -> None:
    """Call `closed` when the client has closed its side of the link."""

    def on_readable() -> None:
        loop.remove_reader(link.fileno())
        closed()

    loop.add_reader(link.fileno(), on_readable)


def _be_store(loop: asyncio.AbstractEventLoop, start: StartStore, link: socket) -> None:
    error: BaseException | None = None

    def on_exception(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        nonlocal error
        found = context.get("exception")
        error = error or (found if isinstance(found, BaseException) else PeerError(str(context)))
        loop.stop()

    loop.set_exception_handler(on_exception)
    serve_privately(loop, start)
    _watch(loop, link, loop.stop)
    link.sendall(framed(Up()))
    loop.run_forever()
    if error is not None:
        raise error


def _be_node(loop: asyncio.AbstractEventLoop, start: StartNode, link: socket) -> None:
    host = NodeHost(
        loop,
        PrivateReach(start.run, "node"),
        start.crew,
        "",
        start.limit_bytes or None,
        strategy=pickle.loads(start.strategy) if start.strategy else None,
        journal=start.journal,
        folders=GivenFolders(start.memory, start.scratch),
        opened=lambda node: link.sendall(framed(Up(node))),
    )

    def on_logged(what: int, text: bytes) -> None:
        """Take a line that a thread without a task has logged."""
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(host.on_printed, what, text)

    logs = None
    if start.crew.kind == "threads":
        share_streams()
        logs = share_logs(f"node-{start.crew.place}", on_logged)
    _watch(loop, link, host.stop)
    try:
        loop.run_until_complete(host.run())
    finally:
        if logs is not None:
            logs.tell_lost()


class GivenFolders(SessionFolders):
    """Folders of the client, which removes them."""

    def __init__(self, memory: str, scratch: str) -> None:
        self.memory = Path(memory) if memory else None
        self.scratch = Path(scratch)

    def __repr__(self) -> str:
        return f"GivenFolders(memory={self.memory}, scratch={self.scratch})"

    def close(self) -> None:
        """Do nothing."""
