"""Objects of a node that leaves: those that are still needed go to other nodes before it leaves, so that none is lost.

The leaver names such objects to some of the nodes that stay. A node that is named an object fetches it, tells the store
that it has it, and keeps it from then on as if it had made it. The leaver lets go of the object when it hears of that.
If a node does not answer, the leaver asks another one after some ticks. A task that reads such an object later learns
its new place from the store, when the old place does not have it any more (see `remake`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daws.core.effects import Send
from daws.core.events import NEVER_NS
from daws.core.fetching import fetch_for_keeping
from daws.core.handlers import handles
from daws.core.objects import adopt_made, let_go_of_made, pin_copy, unpin_copy
from daws.core.store_calls import answers, ask
from daws.model.task import NodeId, ObjectTransfer
from daws.wire.messages import HandOver, Kept
from daws.wire.store import OK, AddPlace, AnswerType

if TYPE_CHECKING:
    from daws.core.node import NodeCore

PATIENCE_TICKS = 8
ENTRIES_MAX = 256
"""The largest number of tasks whose objects are named to one node in one message."""


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
    for producer, made in core.objects.made.items():
        if core.now_ns - handed.get(producer, -NEVER_NS) < patience_ns:
            continue
        if len(named) == len(takers) and len(named[takers[-1]]) >= ENTRIES_MAX:
            break
        handed[producer] = core.now_ns
        attempt = core.objects.attempts.get(producer, 0)
        sizes = tuple([(object_, core.objects.sizes.get(object_, 0)) for object_ in made.objects])
        taker = takers[len(handed) % len(takers)]
        named.setdefault(taker, []).append((producer, attempt, tuple(sorted(made.readers)), sizes))
    for taker, entries in named.items():
        core.out.append(Send(taker, HandOver(core.node, tuple(entries))))


@handles(Kept)
def on_kept(core: NodeCore, message: Kept) -> None:
    for producer in message.producers:
        if core.leaving is not None and producer in core.objects.made:
            let_go_of_made(core, producer)


# -- who stays ---------------------------------------------------------------------------------------------------------


class Adoptions:
    """Objects of nodes that leave, which this node is about to keep: by object."""

    __slots__ = ("of",)

    def __init__(self) -> None:
        self.of: dict[int, Adoption] = {}

    def arrived(self, core: NodeCore, object_: int) -> None:
        """An object is here. When all objects of its task are, they count as made here."""
        adoption = self.of[object_]
        adoption.lacks.discard(object_)
        if adoption.lacks or any(one not in core.objects.sizes for one in adoption.objects):
            return
        adoption.lacks = set(adoption.objects)
        producer = adoption.producer
        adopt_made(core, producer, adoption.attempt, adoption.readers, adoption.objects)
        for one in adoption.objects:
            ask(core, producer, AddPlace(producer, one, core.node))

    def failed(self, core: NodeCore, object_: int) -> None:
        """An object could not be fetched: the node that leaves will ask another."""
        adoption = self.of.get(object_)
        if adoption is not None:
            self.forget(adoption)
            for one in adoption.objects:
                unpin_copy(core, one)

    def forget(self, adoption: Adoption) -> None:
        for object_ in adoption.objects:
            if self.of.get(object_) is adoption:
                del self.of[object_]


@handles(HandOver)
def on_hand_over(core: NodeCore, message: HandOver) -> None:
    if core.leaving is not None:
        return  # it will ask another
    if core.adoptions is None:
        core.adoptions = Adoptions()
    adoptions, sizes_here = core.adoptions, core.objects.sizes
    wanted: list[ObjectTransfer] = []
    for producer, attempt, readers, sizes in message.entries:
        objects = tuple([object_ for object_, _ in sizes])
        if not adoptions.of.keys().isdisjoint(objects):
            continue  # on its way, or the store has not answered yet
        adoption = Adoption(message.sender, producer, attempt, readers, objects)
        adoptions.of.update(dict.fromkeys(objects, adoption))
        wanted += [ObjectTransfer(object_, size_bytes, message.sender) for object_, size_bytes in sizes]
        here = [object_ for object_ in objects if object_ in sizes_here]
        for object_ in here:
            pin_copy(core, object_)
        for object_ in here:
            adoptions.arrived(core, object_)
    fetch_for_keeping(core, wanted)


@answers(AddPlace)
def on_add_place_answer(core: NodeCore, row: AddPlace, answer: AnswerType) -> None:
    adoptions = core.adoptions
    adoption = adoptions.of.get(row.object) if adoptions is not None else None
    if adoptions is None or adoption is None:
        return
    if answer != OK:  # nobody needs it any more, or it is being made anew
        adoptions.forget(adoption)
        if row.task in core.objects.made:
            let_go_of_made(core, row.task)
    else:
        adoption.lacks.discard(row.object)
        if adoption.lacks:
            return
        adoptions.forget(adoption)
    core.out.append(Send(adoption.sender, Kept(core.node, (row.task,))))
