"""What a fork of the cluster's fork server becomes: the store, or a node. The client's first frame says which."""

import asyncio
import os
import signal
import sys
from socket import socket
from typing import NoReturn

import uvloop

from daws.model.errors import PeerError
from daws.runtime.nodeprocess import NodeServer
from daws.runtime.storeprocess import StoreServer
from daws.runtime.talk import BEGIN, BeStore, ToFork
from daws.wire.frames import FrameReader


def main(link_fd: int) -> NoReturn:
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _run(socket(fileno=link_fd))
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(link: socket) -> None:
    begin = _first(link)
    if begin is None:
        return
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    if isinstance(begin, BeStore):
        StoreServer(loop, begin, link)
        loop.run_forever()
        return
    node = NodeServer(loop, begin, link)
    started = loop.create_task(node.start())
    try:
        loop.run_forever()
    finally:
        started.cancel()
        loop.run_until_complete(node.close())


def _first(link: socket) -> ToFork | None:
    """The client says who we are and then waits for us, so nothing comes behind that frame; None if it is gone."""
    reader = FrameReader()
    while True:
        count = link.recv_into(reader.room)
        if not count:
            return None
        for frame in reader.arrived(count):
            messages = BEGIN.decode(frame)
            if len(messages) != 1:
                raise PeerError(f"{len(messages)} beginnings at once")
            return messages[0]
