"""The ports of a node in a process of its own."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from daws.runtime import away
from daws.runtime.away import PeersAway
from tests.unit.runtime.test_transfer import files_in


def test_what_comes_when_the_loop_is_closed_is_nobodys_concern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The thread that fetched it printed a traceback when a cluster was closed."""
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(away, "accept_on", lambda loop, door, accept: door.close())
    peers = PeersAway(loop, 0, str(tmp_path), files_in(tmp_path / "here"), raised.append, raised.append)
    loop.close()
    peers.fetch([(1, 10, 7)], [])
    for thread in threading.enumerate():
        if thread.name == "daws-fetch-7":
            thread.join(30)
            assert not thread.is_alive()
    assert not raised
