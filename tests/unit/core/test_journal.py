"""Journals: what was noted can be saved, loaded and replayed; what is no journal is refused in one line."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daws.core.effects import EffectType, StartRun
from daws.core.events import EventType, RunEnded, Started
from daws.core.journal import Journal, JournalError, replay
from daws.core.node import NodeConfig, NodeCore
from daws.model.errors import StrategyError, UsageError
from daws.model.task import CLIENT
from daws.strategy import parse_strategy
from daws.strategy.adapt.matrix import AdaptMatrix
from daws.strategy.place.daws import PlaceDaws
from daws.testing import members_of, ready
from daws.wire.messages import LoadQuery, Submission

MEMBERS = members_of(2)
BATCHES: list[list[EventType]] = [
    [Started(MEMBERS)],
    [Submission(CLIENT, 0, (ready(1), ready(2), ready(3))), LoadQuery(1)],
    [],
    [RunEnded(1, 1, 50)],
]


def recorded(effects: bool = True, seed: int = 3, strategy: str = "flds:t=0.3") -> Journal:
    journal = Journal(MEMBERS.infos[0], parse_strategy(strategy), NodeConfig(), seed, effects)
    core = NodeCore(journal.info, journal.strategy, journal.config, seed)
    for number, batch in enumerate(BATCHES):
        out: list[EffectType] = []
        core.step(number * 1000, batch, out)
        journal.note(number * 1000, batch, out)
    return journal


WHOLE = recorded().to_bytes()


def test_inputs_and_outputs_can_be_read():
    journal = recorded()
    assert list(journal.inputs()) == [(number * 1000, batch) for number, batch in enumerate(BATCHES)]
    started = [
        effect.ready.spec.id for effects in journal.outputs() for effect in effects if isinstance(effect, StartRun)
    ]
    assert started == [1, 2, 3]


@pytest.mark.parametrize("effects", [True, False])
@pytest.mark.parametrize("seed", [0, 3, -1, 1 << 80])
def test_a_saved_journal_is_the_same_and_replays(effects: bool, seed: int):
    journal = recorded(effects, seed)
    again = Journal.from_bytes(journal.to_bytes())
    assert (again.info, again.config, again.seed) == (journal.info, journal.config, seed)
    assert again.steps == journal.steps
    assert replay(journal) is None
    assert replay(again) is None


def test_a_strategy_composed_in_python_can_be_saved():
    composed = replace(parse_strategy("daws"), place=PlaceDaws(t=0.5), adapt=AdaptMatrix(t=0.001, period=100_000))
    journal = Journal(MEMBERS.infos[0], composed, NodeConfig(), 3)
    again = Journal.from_bytes(journal.to_bytes())
    assert (again.strategy.place, again.strategy.adapt) == (composed.place, composed.adapt)


def test_an_answer_that_nobody_could_read_back_is_refused():
    class Mine(PlaceDaws, frozen=True):
        pass

    journal = Journal(MEMBERS.infos[0], replace(parse_strategy("daws"), place=Mine()), NodeConfig(), 3)
    with pytest.raises(StrategyError, match=r"^place=Mine cannot be written down, it is not registered; .*$"):
        journal.to_bytes()


def test_the_digest_is_of_all_effects_and_times():
    assert recorded().digest == recorded(effects=False).digest
    assert recorded().digest != recorded(seed=4).digest


def test_effects_that_were_not_kept_cannot_be_read():
    with pytest.raises(UsageError, match="only their digest"):
        list(recorded(effects=False).outputs())


def test_a_difference_says_where_and_what():
    journal = recorded()
    out = [effect for effects in journal.outputs() for effect in effects if isinstance(effect, StartRun)]
    wrong = [msgspec.structs.replace(out[0], slot=7)]
    step = journal.steps[1]
    journal.steps[1] = msgspec.structs.replace(step, effects=msgspec.msgpack.encode(wrong))
    difference = replay(journal)
    assert difference is not None
    assert (difference.step, difference.now_ns) == (1, 1000)
    text = str(difference)
    assert "given Submission" in text and "slot=7" in text and "is now" in text


def test_a_difference_is_seen_by_the_digest_alone():
    journal = recorded(effects=False)
    journal.note(9999, [], [])
    journal.note(9999, [LoadQuery(1)], [])
    difference = replay(journal)
    assert difference is not None and "digest" in str(difference)


def test_other_versions_are_refused():
    with pytest.raises(JournalError, match="format '99'"):
        Journal.from_bytes(WHOLE.replace(b"daws-journal 2", b"daws-journal 99", 1))


def test_a_strategy_that_is_not_known_here_is_named():
    with pytest.raises(JournalError, match="cannot be replayed"):
        Journal.from_bytes(WHOLE.replace(b"flds:", b"flxx:", 1))


@pytest.mark.parametrize("data", [b"", b"\n", b"hello", b"daws-journal", b"daws-journal 2", b"daws-journal 2\n"])
def test_what_is_no_journal_is_refused(data: bytes):
    with pytest.raises(JournalError):
        Journal.from_bytes(data)


@given(st.integers(0, len(WHOLE) - 1))
def test_a_journal_that_is_cut_off_is_refused(length: int):
    with pytest.raises(JournalError) as caught:
        Journal.from_bytes(WHOLE[:length])
    assert "\n" not in str(caught.value)


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_damaged_journal_is_refused_or_says_the_same_effects(at: int, change: int):
    data = bytearray(WHOLE)
    data[at] ^= change
    try:
        journal = Journal.from_bytes(bytes(data))
    except JournalError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert journal.digest == recorded().digest


@given(st.binary(max_size=200))
def test_rubbish_is_refused(data: bytes):
    with pytest.raises(JournalError):
        Journal.from_bytes(b"daws-journal 2\n" + data)
