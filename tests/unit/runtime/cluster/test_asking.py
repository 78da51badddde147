"""Tools get answers, or say why they get none, and send nobody after a cure that is none."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from daws.core.effects import CallStore
from daws.core.events import StoreAnswered
from daws.model.errors import UnavailableError
from daws.model.session import SESSION_BITS
from daws.model.task import FROM_OUTSIDE, Input, TaskSpec
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.runtime.cluster import asking
from daws.runtime.cluster.asking import SessionInfo, Tool, ask
from daws.wire.cluster import AskCluster, Refused
from daws.wire.session import Count, Depart
from daws.wire.store import REFUSED, TO_END, AttachSession, Cancel, DetachSession, FindHeld, Finish, Submit
from tests.unit.runtime.cluster.conftest import Party, Site

T = TypeVar("T")


class ToolLink:
    """The link of a tool to the server of a site."""

    def __init__(self, site: Site, tool: Tool) -> None:
        self.party = Party(site.server, "client")
        self.tool = tool

    def send(self, word: Any) -> None:
        self.party.tells(word)
        said, self.party.said = self.party.said, []
        asyncio.get_running_loop().call_soon(self.tool.on_store, said)


class Node:
    """A node that a tool dials."""

    def __init__(self, answers: bool = True) -> None:
        self.heard: list[Any] = []
        self.is_open = True
        self._answers = answers

    async def dial(self, address: str, decoder: Any, received: Callable[[Any], None], lost: Any) -> "Node":
        self.address, self._received = address, received
        return self

    def send(self, word: Any) -> None:
        self.heard.append(word)
        if self._answers and isinstance(word, Count):
            self._received([])

    def abort(self) -> None:
        self.is_open = False


def asked(site: Site, question: Callable[[Tool], Awaitable[T]], node: Node | None = None) -> T:
    """The answer to a question of a tool."""

    async def answer() -> T:
        tool = Tool(cast(Any, SimpleNamespace(dial=(node or Node()).dial)))
        tool._link = cast(Any, ToolLink(site, tool))
        tool.cluster = await tool._ask(AskCluster())
        return await question(tool)

    return asyncio.run(answer())


def test_nodes_and_sessions_are_listed(site: Site, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(asking, "FindHeld", lambda session, start: FindHeld(session, start, 2))
    _, number = site.node()
    _, attached = site.client("night", kept=True)
    _, quiet = site.client("quiet")
    _, ending = site.client("ending")
    site.server.store.session_leases[quiet.session] = 0
    base = attached.session << SESSION_BITS
    rows: list[Any] = [Submit(TaskSpec(base + at, 1, outputs=(base + at,)), (), number) for at in range(5)]
    rows += [Finish(base + at, 0, number, (Input(base + at, 1, base + at, (), b"v"),)) for at in range(2)]
    rows += [Finish(base + 2, 0, number, (), "no"), Cancel(base + 3, number)]
    function = base + 9
    made = (Input(function, 4, function, (), b"code"),)
    rows.append(Submit(TaskSpec(function, FROM_OUTSIDE, outputs=(function,)), (), -1, made))
    rows += [AttachSession(b"x" * 16, session=ending.session, why=TO_END)]
    site.server.store.apply(0, rows, site.server._clock.now_ns())
    assert asked(site, asking.members).nodes == (number,)
    night, other = asked(site, asking.sessions)
    assert night == SessionInfo("night", True, True, night.since_s, 1, 2, 2), "functions are not counted"
    assert (other.name, other.kept, other.attached, other.waiting) == ("quiet", False, False, 0)


def test_a_session_is_ended_though_its_client_is_there(site: Site):
    client, attached = site.client("night", kept=True)
    asked(site, partial(asking.end_session, name="night"))
    client.tells(CallStore(5, 0, [AttachSession(client.nonce, session=attached.session)]))
    assert client.hears(StoreAnswered) == [StoreAnswered(5, [REFUSED])]
    assert not asked(site, asking.sessions), "it is about to end"
    site.look(3)
    assert not site.server.store.sessions
    with pytest.raises(UnavailableError, match="there is no session 'night'; 'daws sessions' lists"):
        asked(site, partial(asking.end_session, name="night"))


def test_a_session_is_ended_that_nobody_uses(site: Site):
    client, attached = site.client("night", kept=True)
    client.tells(CallStore(5, 0, [DetachSession(client.nonce, attached.session, True)]))
    asked(site, partial(asking.end_session, name="night"))
    site.look(3)
    assert not site.server.store.sessions


def test_a_node_is_told_to_leave_and_has_heard_it(site: Site):
    _, number = site.node()
    node = Node()
    asked(site, partial(asking.drain, node=number, within_s=5.0), node)
    assert node.heard == [Depart(5.0), Count()] and node.address == "a:1" and not node.is_open
    with pytest.raises(UnavailableError, match="there is no node 99; 'daws nodes' lists"):
        asked(site, partial(asking.drain, node=99, within_s=5.0))


def test_a_node_that_does_not_answer_cannot_be_drained(site: Site, monkeypatch: pytest.MonkeyPatch):
    _, number = site.node()
    monkeypatch.setattr(asking, "NODE_S", 0.0)
    node = Node(answers=False)
    with pytest.raises(UnavailableError, match=f"node {number} does not answer; try again"):
        asked(site, partial(asking.drain, node=number, within_s=5.0), node)
    assert not node.is_open


def test_a_tool_whose_store_is_silent_refuses_or_goes_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(asking, "ANSWER_S", 0.0)

    async def work(act: Callable[[Tool], None]) -> None:
        tool = Tool(cast(Any, None))
        tool._link = cast(Any, SimpleNamespace(send=lambda word: act(tool)))
        tool._on_lost()  # nothing waits yet
        await tool._ask(AskCluster())

    for act, why in (
        (lambda tool: None, "did not answer in time"),
        (lambda tool: tool.on_store([Refused("not you")]), "not you"),
        (lambda tool: tool._on_lost(), "closed the connection"),
    ):
        with pytest.raises(UnavailableError, match=why):
            asyncio.run(work(act))


def test_only_who_finds_nobody_is_told_to_start_a_node(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as door:
        init_cluster(tmp_path / "lab", ClusterConfig(name="lab", port=door.getsockname()[1]))
        rude = threading.Thread(target=lambda: door.accept()[0].close())
        rude.start()
        with pytest.raises(UnavailableError, match="closed the connection") as hung_up:
            ask(tmp_path / "lab", asking.members)
        rude.join()
    assert "daws node" not in str(hung_up.value)
    with pytest.raises(UnavailableError, match="Connection refused; 'daws node' starts it"):
        ask(tmp_path / "lab", asking.members)
