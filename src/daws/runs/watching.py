"""A strategy that is watched: it decides as before, and reports the numbers that each decision about a task compared.

It wraps answers and needs no support of the core, so runs that are not watched pay nothing. A node with a watched
strategy does the same as one with the strategy itself.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from daws.model.cluster import Members
from daws.model.task import INLINE_BYTES, NodeId, Ready
from daws.strategy import parse_strategy
from daws.strategy.decisions import Assign, Balance, Newcomer, Order, Place, Reasons, Strategy, View
from daws.strategy.registry import answer_name
from daws.strategy.rng import SplitMix64
from daws.wire.messages import Offer
from daws.wire.notes import Decided, FactType, Handed, Sent

INT_MAX = (1 << 63) - 1
Tell = Callable[[FactType], None]


class StrategyWatch:
    """The reports of one node's strategy."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.asked: tuple[NodeId, tuple[tuple[NodeId, int], ...]] = (-1, ())  # last target, and its candidates
        self._offers: dict[int, Handed] = {}  # by task that has not been claimed yet

    def over(self, strategy: Strategy) -> Strategy:
        """The same strategy, watched."""
        return msgspec.structs.replace(
            strategy,
            place=WatchedPlace(strategy.place, self),
            order=WatchedOrder(strategy.order, self),
            balance=WatchedBalance(strategy.balance, self),
        )

    def under(self, strategy: Strategy) -> Strategy:
        """The strategy that a watched one was made of."""
        bare = {name: getattr(strategy, name).answer for name in ("place", "order", "balance")}
        return msgspec.structs.replace(strategy, **bare)

    def read(self, text: str) -> Strategy:
        """A strategy that is named while the node runs."""
        return self.over(parse_strategy(text))

    def offered(self, offer: Offer) -> None:
        """Another node offers tasks; those that are claimed will be asked about."""
        chosen, loads = self.asked
        for ready in offer.tasks:
            task = ready.spec.id
            known = loads if chosen == offer.sender else ()
            self._offers[task] = Handed(task, -1, 0, offer.sender, offer.why, known)

    def decided(self, view: View, ready: Ready, decision: str, answer: object, reasons: Reasons) -> None:
        task = ready.spec.id
        handed = self._offers.pop(task, None)
        if handed is not None:
            self.tell(Handed(task, view.node, view.now_ns, handed.sender, handed.why, handed.loads))
        self.tell(Decided(task, view.node, view.now_ns, decision, answer_name(decision, answer), reasons))

    def sent(self, node: NodeId, slot: int, ready: Ready, now_ns: int) -> None:
        sizes = [(one.size_bytes, one.size_bytes > INLINE_BYTES and node not in one.places) for one in ready.inputs]
        moved = sum([size for size, is_moved in sizes if is_moved])
        read = sum([size for size, _ in sizes])
        self.tell(Sent(ready.spec.id, node, now_ns, slot, ready.attempt, read, moved))


class _Watched:
    """All that is not watched is the answer's own."""

    def __init__(self, answer: Any, watch: StrategyWatch) -> None:
        self.answer = answer
        self.watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.answer, name)


class WatchedPlace(_Watched):
    answer: Place
    plain_is_neutral = False  # so that it is asked about every task
    explain: Any

    def choose(self, view: View, ready: Ready, rng: Any) -> int:
        reasons = reasons_of(self.answer.explain, view, ready, SplitMix64(rng.state))
        choice = self.answer.choose(view, ready, rng)
        self.watch.decided(view, ready, "place", self.answer, reasons | {"choice": choice})
        return choice


class WatchedOrder(_Watched):
    answer: Order
    plain_is_neutral = False
    explain: Any
    needs_ranks: Any

    def key(self, view: View, ready: Ready) -> float:
        key = self.answer.key(view, ready)
        reasons = reasons_of(self.answer.explain, view, ready)
        self.watch.decided(view, ready, "order", self.answer, reasons | {"choice": key})
        return key


class WatchedBalance(_Watched):
    answer: Balance
    mode: Any
    asks_load: Any
    follows_rumours: Any
    from_head: Any
    wish: Any
    start_poll_ns: Any
    start_neighbours: Any
    targets: Any
    amount: Any
    after_success: Any
    after_failure: Any
    explain: Any

    def pick(self, view: View, loads: list[tuple[NodeId, int]]) -> NodeId:
        chosen = self.answer.pick(view, loads)
        self.watch.asked = chosen, tuple(loads)
        return chosen


class WatchedAssign(_Watched):
    """The client's part: which node a new task is handed to."""

    answer: Assign
    plan: Any
    explain: Any

    def __init__(self, answer: Assign, tell: Tell, now_ns: Callable[[], int]) -> None:
        self.answer = answer
        self.tell = tell
        self.now_ns = now_ns

    def home(self, newcomer: Newcomer, members: Members, seed: int) -> NodeId:
        home = self.answer.home(newcomer, members, seed)
        held: dict[NodeId, int] = {}
        for one in newcomer.inputs:
            for place in one.places:
                held[place] = held.get(place, 0) + one.size_bytes
        reasons = {"number": newcomer.number, "members": len(members), "held_bytes": held, "choice": home}
        answer = answer_name("assign", self.answer)
        self.tell(Decided(newcomer.number, home, self.now_ns(), "assign", answer, reasons))
        return home


def reasons_of(explain: Callable[..., Reasons], *about: object) -> Reasons:
    """The reasons of an answer, in values that can be sent. If `explain` raises, the reasons say so, and the run goes
    on."""
    try:
        return {str(name): _plain(value) for name, value in explain(*about).items()}
    except Exception as error:
        return {"explain": f"raised {type(error).__name__}: {error}"}


def _plain(value: object) -> Any:
    if value is None or type(value) in (bool, str):
        return value
    if isinstance(value, int) and -INT_MAX <= value <= INT_MAX:
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key if type(key) in (int, str) else repr(key): _plain(one) for key, one in value.items()}
    return repr(value)
