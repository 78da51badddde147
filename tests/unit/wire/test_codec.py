"""Whatever travels or is kept in a journal can be read back: every row, answer, message, event and effect."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daws.core.effects import EffectType
from daws.core.events import EventType
from daws.model.cluster import Members
from daws.model.context import AnyOf, Label
from daws.model.task import FIRST_SPAWNED_ID, Ready, TaskSpec, spawned_id
from daws.wire.messages import MessageType
from daws.wire.store import AnswerType, Committed, RowType, outbox_key

UNIONS: dict[str, Any] = {
    "row": RowType,
    "answer": AnswerType,
    "message": MessageType,
    "event": EventType,
    "effect": EffectType,
}
_ids = st.one_of(st.integers(-2, 300), st.integers(FIRST_SPAWNED_ID, 2 * FIRST_SPAWNED_ID - 1))


def values_of(kind: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    """Values of any type that stands in a struct of ours."""
    inspect = msgspec.inspect
    if isinstance(kind, inspect.UnionType):
        return st.one_of([values_of(one) for one in kind.types])
    if isinstance(kind, inspect.StructType):
        return st.builds(kind.cls, **{field.name: values_of(field.type) for field in kind.fields})
    if isinstance(kind, inspect.VarTupleType):
        return st.lists(values_of(kind.item_type), max_size=2).map(tuple)
    if isinstance(kind, inspect.TupleType):
        return st.tuples(*map(values_of, kind.item_types))
    if isinstance(kind, inspect.ListType):
        return st.lists(values_of(kind.item_type), max_size=2)
    if isinstance(kind, inspect.LiteralType):
        return st.sampled_from(kind.values)
    simple: dict[type, st.SearchStrategy[Any]] = {
        inspect.IntType: _ids,
        inspect.StrType: st.text(max_size=5),
        inspect.BoolType: st.booleans(),
        inspect.FloatType: st.floats(0, 10),
        inspect.BytesType: st.binary(max_size=5),
        inspect.NoneType: st.none(),
    }
    return simple[type(kind)]


@pytest.mark.parametrize(
    "name, kind",
    [(name, kind) for name, union in UNIONS.items() for kind in get_args(union)],
    ids=lambda one: getattr(one, "__name__", one),
)
@settings(max_examples=8)
@given(data=st.data())
def test_what_is_written_is_read_back(name: str, kind: type, data: st.DataObject):
    value = data.draw(values_of(msgspec.inspect.type_info(kind)))
    kinds: Any = list[UNIONS[name]]  # type: ignore[valid-type]
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode([value]), type=kinds)
    assert decoded == [value]
    assert type(decoded[0]) is type(value)


@given(parent=_ids, attempt=st.integers(0, 1 << 20), number=st.integers(0, 1 << 30), verb=st.integers(0, 3))
def test_intents_of_spawned_tasks_fit_into_64_bits(parent: int, attempt: int, number: int, verb: int):
    name = spawned_id(parent, attempt, number)
    assert FIRST_SPAWNED_ID <= name < 2 * FIRST_SPAWNED_ID
    key = outbox_key(name, verb)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Committed(key)), type=Committed) == Committed(key)
    assert key < 1 << 63


def test_members_are_the_same_after_a_journey_with_what_they_remember():
    members = Members(3, ())
    assert len(members.nodes) == 0
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(members), type=Members) == members


def test_contexts_keep_their_kind():
    for context in (Label("gpu"), AnyOf((Label("gpu", 1, 2),)), None):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(context), type=Label | AnyOf | None) == context


def test_a_ready_task_is_told_from_other_answers():
    ready = Ready(TaskSpec(1), 0, 0)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(ready), type=AnswerType) == ready
