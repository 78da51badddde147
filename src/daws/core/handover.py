"""What was made here and is still needed goes to others before a node leaves: freed is not lost, but gone would be.

The leaver names such objects to some of those who stay. Who is named one fetches it, tells the store that it has it,
and keeps it from then on as if it had made it; the leaver lets go of it when it hears of that. Whoever does not answer
has been asked in vain: after some ticks the leaver asks another. Who reads such an object later is told of its new
place by the store, when the old one does not have it any more (see `remaking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daws.core.effects import DropObject, FetchObjects, Send
from daws.core.empty import EMPTY
from daws.core.events import NEVER_NS
from daws.core.handlers import handles
from daws.core.store_calls import answers, ask
from daws.model.task import NodeId, Transfer
from daws.wire.messages import HandOver, Kept
from daws.wire.store import OK, AddPlace, AnswerType

if TYPE_CHECKING:
    from daws.core.node import NodeCore

PATIENCE_TICKS = 8
ENTRIES_MAX = 256
"""So many tasks' objects are named to one node in one message."""


class Adoption:
    """Objects of one task that come from a node which is about to leave."""

    __slots__ = ("attempt", "lacks", "objects", "producer", "readers", "sender")

    def __init__(
        self, sender: NodeId, producer: int, attempt: int, readers: tuple[int, ...], objects: tuple[int, ...]
    ) -> None:
        self.sender = sender
        self.producer = producer
        self.attempt = attempt
        self.readers = readers
        self.objects = objects
        self.lacks: set[int] = set(objects)  # first to be here, then to be known to the store


# -- who leaves --------------------------------------------------------------------------------------------------------


def hand_over(core: NodeCore, takers: Sequence[NodeId]) -> None:
    """Name what is still needed to those who stay, and again to others if nobody has said that he has it."""
    handed: dict[int, int] = core.leaving.handed
    patience_ns = PATIENCE_TICKS * core.config.tick_ns
    named: dict[NodeId, list[tuple[int, int, tuple[int, ...], tuple[tuple[int, int], ...]]]] = {}
    for producer, (readers, _, objects) in core.made.items():
        if core.now_ns - handed.get(producer, -NEVER_NS) < patience_ns:
            continue
        if len(named) == len(takers) and len(named[takers[-1]]) >= ENTRIES_MAX:
            break
        handed[producer] = core.now_ns
        attempt = core.attempts.get(producer, 0) if core.attempts else 0
        sizes = tuple([(object_, core.objects.get(object_, 0)) for object_ in objects])
        taker = takers[len(handed) % len(takers)]
        named.setdefault(taker, []).append((producer, attempt, tuple(sorted(readers)), sizes))
    for taker, entries in named.items():
        core.out.append(Send(taker, HandOver(core.node, tuple(entries))))


@handles(Kept)
def on_kept(core: NodeCore, message: Kept) -> None:
    for producer in message.producers:
        if core.leaving is not None and producer in core.made:
            _let_go(core, producer)


def _let_go(core: NodeCore, producer: int) -> None:
    for object_ in core.made.pop(producer)[2]:
        if core.strays:
            core.strays.discard(object_)
        if core.objects.pop(object_, None) is not None:
            core.out.append(DropObject(object_))
    if core.attempts:
        core.attempts.pop(producer, None)


# -- who stays ---------------------------------------------------------------------------------------------------------


@handles(HandOver)
def on_hand_over(core: NodeCore, message: HandOver) -> None:
    if core.leaving is not None:
        return  # it will ask another
    wanted: list[Transfer] = []
    if core.fetching is None:
        core.fetching = {}
    if core.adopting is None:
        core.adopting = {}
    for producer, attempt, readers, sizes in message.entries:
        objects = tuple([object_ for object_, _ in sizes])
        if not core.adopting.keys().isdisjoint(objects):
            continue  # on its way, or the store has not answered yet
        adoption = Adoption(message.sender, producer, attempt, readers, objects)
        for object_, size_bytes in sizes:
            core.adopting[object_] = adoption
            if object_ not in core.objects and object_ not in core.fetching:
                core.fetching[object_] = []
                wanted.append((object_, size_bytes, message.sender))
        here = [object_ for object_ in objects if object_ in core.objects]
        for object_ in here:
            if core.copies and object_ in core.copies:
                core.copies[object_] += 1  # it stays until the others are here as well
        for object_ in here:
            arrived(core, object_)
    if wanted:
        core.out.append(FetchObjects(tuple(wanted)))


def arrived(core: NodeCore, object_: int) -> None:
    """An object that a leaver has named is here. When all of its task are, they are as good as made here."""
    assert core.adopting is not None
    adoption = core.adopting[object_]
    adoption.lacks.discard(object_)
    if adoption.lacks or any(one not in core.objects for one in adoption.objects):
        return
    adoption.lacks = set(adoption.objects)
    for one in adoption.objects:
        if core.copies and core.copies.pop(one, None) is not None:
            core.fresh.discard(one)
            core.copied_bytes -= core.objects[one]
    if core.made is EMPTY:
        core.made = {}
    producer = adoption.producer
    known = core.made.get(producer)  # made or put here as well, or adopted before
    readers = adoption.readers if known is None else tuple(dict.fromkeys((*known[0], *adoption.readers)))
    core.made[producer] = (readers, core.now_ns, adoption.objects)
    if adoption.attempt:
        if core.attempts is None:
            core.attempts = {}
        core.attempts[producer] = adoption.attempt
    for one in adoption.objects:
        ask(core, producer, AddPlace(producer, one, core.node))


def not_coming(core: NodeCore, object_: int) -> None:
    """It could not be fetched: the leaver will ask another."""
    adoption = core.adopting.get(object_) if core.adopting is not None else None
    if adoption is None:
        return
    _forget(core, adoption)
    for one in adoption.objects:
        if core.copies and one in core.copies:
            core.copies[one] -= 1
            if not core.copies[one]:
                del core.copies[one]
                core.fresh.discard(one)
                core.copied_bytes -= core.objects.pop(one)
                core.out.append(DropObject(one))


def _forget(core: NodeCore, adoption: Adoption) -> None:
    assert core.adopting is not None
    for object_ in adoption.objects:
        if core.adopting.get(object_) is adoption:
            del core.adopting[object_]


@answers(AddPlace)
def on_add_place_answer(core: NodeCore, row: AddPlace, answer: AnswerType) -> None:
    adoption = core.adopting.get(row.object) if core.adopting is not None else None
    if adoption is None:
        return
    if answer != OK:  # nobody needs it any more, or it is being made anew
        _forget(core, adoption)
        if row.task in core.made:
            _let_go(core, row.task)
    else:
        adoption.lacks.discard(row.object)
        if adoption.lacks:
            return
        _forget(core, adoption)
    core.out.append(Send(adoption.sender, Kept(core.node, (row.task,))))
