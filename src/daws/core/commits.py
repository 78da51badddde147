"""Finish and satisfy: a run is committed once, and its children are told."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from daws.core.effects import Send
from daws.core.lengths import learn_size
from daws.core.objects import (
    add_object,
    add_stray,
    begin_finishing,
    drop_made,
    end_finishing,
    keep_made,
    large_objects,
    own_copies,
    release_inputs,
    release_made,
)
from daws.core.outbox import spread_stop, tell_children, told, wake
from daws.core.placement import accept, accept_told
from daws.core.store_calls import add_end, answers, ask_later
from daws.core.unsafe import when_safe
from daws.model.task import INLINE_BYTES, Input, NodeId, Ready
from daws.wire.messages import NO_ANSWER, StopOrder
from daws.wire.store import (
    CANCELLED,
    DONE,
    FAILED,
    HELD,
    UNKNOWN,
    AnswerType,
    Committed,
    Estate,
    Finish,
    FinishSmall,
    Resume,
    Satisfy,
    Stopped,
)

if TYPE_CHECKING:
    from daws.core.node import NodeCore


def finish(
    core: NodeCore,
    ready: Ready,
    sizes: tuple[int, ...],
    error: str,
    values: tuple[bytes, ...] = (),
    failure: bytes = b"",
) -> None:
    """A run ended: ask the store to commit it. Its objects are here from now on."""
    spec = ready.spec
    task = spec.id
    if ready.inputs:
        begin_finishing(core, ready)
    outputs: tuple[Input, ...] = ()
    made = spec.outputs
    if made and not error:
        here = core.here or core.only_here()
        if spec.planned and spec.home != core.node:
            add_stray(core, [one for one, size in zip(made, sizes, strict=True) if size > INLINE_BYTES])
        if len(made) == 1:  # most tasks of most graphs
            size = sizes[0]
            outputs = (Input(made[0], size, task, here, values[0] if values else b""),)
            if size > INLINE_BYTES:
                add_object(core, made[0], size)
                learn_size(core, spec.kind, size)
        else:
            each = zip(made, sizes, values or (b"",) * len(made), strict=True)
            outputs = tuple([Input(object_, size, task, here, value) for object_, size, value in each])
            large = [(one.object, one.size_bytes) for one in outputs if one.size_bytes > INLINE_BYTES]
            for object_, size in large:
                add_object(core, object_, size)
            learn_size(core, spec.kind, sum([size for _, size in large]))
    row = Finish(task, ready.attempt, core.node, outputs, error, failure)
    add_end(core, task, row, not spec.leaf or bool(error))


@answers(FinishSmall)
def on_finish_small_answer(core: NodeCore, row: FinishSmall, answer: AnswerType) -> None:
    on_finish_answer(core, row.in_full(), answer)


@answers(Finish)
def on_finish_answer(core: NodeCore, row: Finish, answer: AnswerType) -> None:
    task = row.task
    ready = end_finishing(core, task) if task in core.objects.finishing else None
    if core.executors.waits_until_ns:
        core.schedule_soon()  # an executor may have been kept for what follows
    if type(answer) is Committed:
        if ready is not None:
            if core.keeping is None:
                release_inputs(core, ready)
            else:
                when_safe(core, partial(release_inputs, core, ready))
        if answer.rivals:
            stop_rivals(core, answer.rivals, task, row.attempt)
        readers = answer.readers or answer.children
        if answer.held:
            readers = (*readers, HELD)
        if row.outputs:
            # A store that forgets may let a first attempt run twice.
            if core.objects.copies and (row.attempt or core.keeping is not None):
                own_copies(core, [one.object for one in row.outputs])
            if not readers:
                drop_made(core, row.outputs)  # nobody reads them and nobody holds them
            elif objects := large_objects(row.outputs):
                keep_made(core, task, readers, objects, row.attempt)
        if answer.stop is not None:
            spread_stop(core, task, answer.stop)
        if answer.ready:
            accept_told(core, answer.ready)
        if answer.children:
            tell_children(core, answer.key, answer.mark, task, answer.children, row.outputs, answer.needs)
        return
    copies = core.objects.copies
    if task not in core.objects.made:  # else a newer run of it has won here, and made the same objects
        drop_made(core, tuple([one for one in row.outputs if one.object not in copies]))  # a copy of what won stays
    if isinstance(answer, Estate):
        accept_told(core, answer.ready)  # the run was committed once, and made these ready
    elif isinstance(answer, Stopped):
        if ready is not None:
            when_safe(core, partial(release_inputs, core, ready))  # failed for good: it reads nothing any more
        spread_stop(core, task, answer)


def stop_rivals(core: NodeCore, rivals: tuple[NodeId, ...], task: int, attempt: int) -> None:
    """Tell other nodes that run the same task to stop. The message may get lost: the store refuses a second commit
    anyway."""
    for rival in rivals:
        if rival in core.members:
            core.out.append(Send(rival, StopOrder(core.node, task, NO_ANSWER, attempt)))


@answers(Satisfy)
def on_satisfy_answer(core: NodeCore, row: Satisfy, answer: AnswerType) -> None:
    if answer.__class__ is Ready:
        if row.need:
            core.accept_once_more(answer)
        else:
            accept(core, answer)
    elif answer == UNKNOWN:
        ask_later(core, row)
        return
    elif answer in (CANCELLED, FAILED, DONE):
        release_made(core, row.parent, row.task)
    if isinstance(answer, Resume):
        wake(core, row.task, row.intent, answer.node)
    else:
        told(core, row.intent)
