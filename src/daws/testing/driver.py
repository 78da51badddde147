"""A driver that carries nothing out: it records what one node wants, and insists that the test looks at all of it.

Every event and every effect goes through the codec on its way, and the node's invariants are checked after each step,
so a test gets both for free. Timers are set aside in `timers`; everything else must be taken by `expect` before the
test ends.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from daws.core import invariants
from daws.core.effects import CallStore, EffectType, FetchObjects, Send, SetTimer
from daws.core.events import EventType, Started, StoreAnswered, TimerFired
from daws.core.node import SECOND_NS, NodeConfig, NodeCore
from daws.model.cluster import Members
from daws.model.task import NodeId, ObjectTransfer
from daws.store.port import Store
from daws.strategy import parse_strategy
from daws.strategy.decisions import Strategy
from daws.testing.build import members_of
from daws.wire.store import AnswerType

E = TypeVar("E")

_encode = msgspec.msgpack.encode
_events = msgspec.msgpack.Decoder(list[EventType])
_effects = msgspec.msgpack.Decoder(list[EffectType])


class Driver:
    """Node 0 of a cluster (or another one), started, with nothing to do.

    with Driver(cores=2) as node:
        node.give(Submission(CLIENT, 0, (ready(5),)))
        node.expect(StartRun, task=5)
    """

    def __init__(
        self,
        strategy: Strategy | str = "mlb",
        members: Members | int = 3,
        cores: int = 2,
        node: NodeId = 0,
        config: NodeConfig | None = None,
        seed: int = 1,
    ) -> None:
        self.members = members_of(members, cores) if isinstance(members, int) else members
        info = self.members.info(node)
        assert info is not None, f"node {node} is not among {self.members.nodes}"
        chosen = parse_strategy(strategy) if isinstance(strategy, str) else strategy
        self.core = NodeCore(info, chosen, config or NodeConfig(lease_ns=8 * SECOND_NS), seed)
        self.now_ns = 0
        self.effects: list[EffectType] = []
        self.timers: dict[int, int] = {}
        self.give(Started(self.members))

    def __enter__(self) -> "Driver":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.nothing_left()

    def give(self, *events: EventType, later_ns: int = 0) -> None:
        """One step with these events."""
        self.now_ns += later_ns
        batch = _events.decode(_encode(events))
        assert batch == list(events), "what was given is not what arrives"
        out: list[EffectType] = []
        self.core.step(self.now_ns, batch, out)
        arrived = _effects.decode(_encode(out))
        assert arrived == out, "what the node said is not what arrives"
        invariants.check(self.core)
        for effect in arrived:
            if isinstance(effect, SetTimer):
                self.timers[effect.timer] = effect.at_ns
            else:
                self.effects.append(effect)

    def fire(self, timer: int) -> None:
        """Let time pass until a timer fires."""
        self.now_ns = max(self.now_ns, self.timers.pop(timer))
        self.give(TimerFired(timer))

    def expect(self, kind: type[E], **fields: Any) -> E:
        """Take the first effect (or message) of this kind that has these fields; `task` finds a run by its task."""
        for index, effect in enumerate(self.effects):
            found = effect.message if isinstance(effect, Send) and kind is not Send else effect
            if isinstance(found, kind) and all(_has(found, effect, name, value) for name, value in fields.items()):
                del self.effects[index]
                return found
        wanted = ", ".join(f"{name}={value}" for name, value in fields.items())
        raise AssertionError(f"no {kind.__name__}({wanted}) among {self.effects or 'nothing'}")

    def expect_fetch(self, object_: int | None = None, source: NodeId | None = None) -> ObjectTransfer:
        """Take the first transfer of this object, or from this place; others of the same effect stay."""
        for index, effect in enumerate(self.effects):
            if not isinstance(effect, FetchObjects):
                continue
            for one in effect.wanted:
                if object_ in (None, one.object) and source in (None, one.source):
                    left = tuple([other for other in effect.wanted if other is not one])
                    self.effects[index : index + 1] = [FetchObjects(left)] if left else []
                    return one
        raise AssertionError(f"nobody fetches {object_} from {source}: {self.effects or 'nothing'}")

    def expect_rows(self, *rows: Any) -> CallStore:
        """Take the first call to the store, which has exactly these rows."""
        call = self.expect(CallStore)
        assert list(call.rows) == list(rows), f"the call has {call.rows}"
        return call

    def answer(self, call: CallStore, *answers: AnswerType) -> None:
        """Let the store answer a call."""
        self.give(StoreAnswered(call.token, list(answers)))

    def serve(self, store: Store) -> None:
        """Let a store answer all calls, and those that follow, until there are none."""
        while any(isinstance(effect, CallStore) for effect in self.effects):
            call = self.expect(CallStore)
            self.answer(call, *store.apply(call.shard, call.rows, self.now_ns))

    def drop(self, kind: type) -> int:
        """Take all effects (or messages) of a kind without looking at them; how many there were."""
        kept = [
            effect
            for effect in self.effects
            if not isinstance(effect.message if isinstance(effect, Send) and kind is not Send else effect, kind)
        ]
        count = len(self.effects) - len(kept)
        self.effects = kept
        return count

    def nothing_left(self) -> None:
        """Everything that the node wanted was looked at."""
        assert not self.effects, f"nobody asked about {_shown(self.effects)}"


def _has(found: Any, effect: EffectType, name: str, value: Any) -> bool:
    if name == "task" and hasattr(found, "ready"):
        return bool(found.ready.spec.id == value)
    if name == "to":
        return bool(getattr(effect, "to", None) == value)
    return hasattr(found, name) and bool(getattr(found, name) == value)


def _shown(effects: Sequence[EffectType]) -> str:
    return "\n  ".join(map(str, effects))
