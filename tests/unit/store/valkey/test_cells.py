"""Records as bytes: what was written is read, and equal states are equal bytes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from daws.model.states import DONE, READY, WAITING
from daws.model.task import Input, Needs, TaskSpec
from daws.store.memory.record import Rare, Record
from daws.store.memory.store import HeldIntent
from daws.store.valkey.cells import STAMP_BYTES, Intents, is_left_by, pack, unpack
from daws.wire.store import SATISFY, STOP

STAMP = b"stampst8"
numbers = st.integers(0, 2**61)
nodes = st.integers(0, 2**50)
inputs = st.lists(st.builds(Input, numbers, numbers, numbers, st.lists(nodes).map(tuple), st.binary(max_size=9))).map(
    tuple
)


@st.composite
def rares(draw: st.DrawFn) -> Rare:
    rare = Rare()
    rare.announced = draw(st.booleans())
    rare.error = draw(st.text(max_size=5))
    rare.failure = draw(st.binary(max_size=5))
    rare.cause = draw(st.integers(-1, 2**61))
    rare.history = draw(st.lists(st.tuples(numbers, numbers, nodes), max_size=2))
    rare.holders = draw(st.sets(numbers))
    rare.replicas = draw(st.lists(nodes, max_size=2).map(tuple))
    rare.spawned = draw(st.dictionaries(numbers, st.lists(numbers).map(tuple)))
    rare.waiters = draw(st.lists(st.tuples(numbers, numbers), max_size=2).map(tuple))
    return rare


records = st.builds(
    Record,
    st.builds(TaskSpec, numbers, inputs=st.lists(numbers).map(tuple), needs=st.builds(Needs), payload=st.binary()),
    st.sampled_from([WAITING, READY, DONE]),
    nodes,
    st.one_of(st.lists(numbers), st.lists(numbers).map(tuple)),
    st.one_of(st.none(), st.integers(-5, 2**61), st.lists(numbers).map(tuple), st.sets(numbers)),
    inputs,
    inputs,
    numbers,
    numbers,
    st.booleans(),
    st.booleans(),
    st.one_of(st.none(), rares()),
)
every_kind_of_intents: st.SearchStrategy[Intents] = st.one_of(
    st.just({}),
    st.just({SATISFY: HeldIntent(3, None, 7)}),
    st.just({STOP: HeldIntent(4, (1, 2), 2**62), SATISFY: HeldIntent(3, ((1, 0), (2, 9)), 8)}),
)


def shown(record: Record) -> object:
    rare = record.rare
    return (
        *(getattr(record, name) for name in record.__struct_fields__ if name not in ("rare", "children")),
        list(record.children),
        None if rare is None else [getattr(rare, name) for name in Rare.__slots__],
    )


@settings(max_examples=40)
@given(records, every_kind_of_intents)
def test_what_was_written_is_read(record: Record, intents: Intents):
    packed = pack(record, intents)
    again, intents_again = unpack(STAMP + packed)
    assert again is not None
    assert shown(again) == shown(record)
    assert intents_again == intents
    assert pack(again, intents_again) == packed, "equal states are equal bytes"


@settings(max_examples=40)
@given(records, every_kind_of_intents, nodes)
def test_whom_a_cell_would_be_left_by(record: Record, intents: Intents, stranger: int):
    cell = STAMP + pack(record, intents)
    replicas = record.rare.replicas if record.rare is not None else ()
    for node in (record.owner, *replicas, 3, 4, stranger):
        owns = node == record.owner and record.state == READY
        holds = any(node == intent.holder for intent in intents.values())
        assert is_left_by(cell, node) == (owns, node in replicas, holds)


def test_a_retired_task_leaves_its_stamp():
    assert pack(None, {}) == b""
    assert unpack(STAMP) == (None, {})
    assert len(STAMP) == STAMP_BYTES
    assert is_left_by(STAMP, 1) == (False, False, False)
