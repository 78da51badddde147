"""What is believed of others, for how long, and how much of it."""

import pytest

from daws.core import peers
from daws.core.effects import StartRun
from daws.core.node import NodeCore
from daws.core.peers import LOAD_NEWS_NS, UNKNOWN
from daws.model.task import CLIENT
from daws.testing import Driver, ready
from daws.testing.build import object_at
from daws.wire.messages import LoadQuery, LoadReply, Offer, StealRequest, Submission, SubmissionTaken


def loads(core: NodeCore) -> list[int]:
    return [core.load_of(node) for node in (1, 2, 3)]


def test_loads_are_heard_and_forgotten():
    with Driver("albatross", members=4, cores=1) as node:
        assert loads(node.core) == [UNKNOWN] * 3
        node.give(LoadReply(1, 3, 7))
        node.give(StealRequest(2))
        assert loads(node.core) == [7, 0, UNKNOWN]
        node.give(LoadQuery(3), later_ns=LOAD_NEWS_NS)
        assert loads(node.core) == [7, 0, 0]
        node.give(LoadQuery(3), later_ns=1)
        assert loads(node.core) == [UNKNOWN, UNKNOWN, 0]
        node.drop(object)


def test_what_was_sent_there_counts_and_the_own_load_is_known():
    with Driver("albatross", members=4, cores=1) as node:
        node.give(Submission(CLIENT, 0, (ready(1, object_at(7, 2)), ready(2, object_at(7, 2)), ready(3), ready(4))))
        node.drop(SubmissionTaken)
        node.expect(StartRun)
        assert len(node.expect(Offer, to=2).tasks) == 2
        assert (node.core.load_of(2), node.core.load_of(0)) == (2, 2)


def test_who_weighs_no_loads_keeps_none():
    with Driver("mlb", members=4, cores=1) as node:
        node.give(LoadReply(1, 3, 7), StealRequest(2))
        assert node.core.peers.loads is None and node.core.load_of(1) == UNKNOWN
        node.drop(object)


def test_only_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(peers, "LOADS_MAX", 2)
    monkeypatch.setattr(peers, "HOLDERS_MAX", 2)
    with Driver("albatross", members=4, cores=1) as node:
        node.give(LoadReply(1, 0, 1), LoadReply(2, 0, 2), LoadReply(1, 0, 3), LoadReply(3, 0, 4))
        assert loads(node.core) == [3, UNKNOWN, 4]
        peers.sent_task(node.core, 2)
        assert loads(node.core) == [UNKNOWN, 1, 4]
    with Driver("data-diffusion", members=4, cores=1) as node:
        for object_ in (1, 2, 3):
            peers.note_handed(node.core, 1, ready(9, object_at(object_, 0)))
        assert list(node.core.peers.holders or ()) == [2, 3]


def test_the_index_knows_where_objects_were_made_and_who_was_handed_them():
    with Driver("data-diffusion", members=4, cores=1) as node:
        one = ready(
            9, object_at(1, 3, size_bytes=5000), object_at(2, 3, size_bytes=7000), object_at(4, 3, size_bytes=9)
        )
        peers.note_handed(node.core, 1, ready(8, object_at(2, 0, size_bytes=7000)))
        cached = [peers.cached_bytes(node.core, other, one) for other in range(4)]
        assert cached == [0, 7000, 0, 12_000]
        assert peers.most_cached_bytes(node.core, one) == 12_000
        far = ready(9, object_at(1, 77, size_bytes=5000), object_at(2, 77, size_bytes=7000))
        assert peers.most_cached_bytes(node.core, far) == 7000, "who is gone has nothing"
