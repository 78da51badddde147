"""Sessions whose graph grows task by task: what a live client submits, and what it holds.

A client holds every task that it can still ask for. Until it lets go, objects of such a task stay where they were made,
as if the client were one of their readers. Runs hold what they spawn in the same way.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from daws.core.config import Phase
from daws.core.effects import Send
from daws.core.handlers import handles
from daws.core.objects import drop_held, put_object, send_freed, unhold
from daws.core.placement import accept, accept_all, accept_plain
from daws.core.places import ends
from daws.core.store_calls import answers, ask, ask_all, ask_later
from daws.core.transfer import had_before
from daws.model.task import CLIENT, FIRST_SPAWNED_ID, Ready
from daws.wire.messages import NO_BATCH, LetGo, NewTasks, PlainTasks, SubmissionTaken
from daws.wire.store import ALL_READ, CLIENT_HOLDER, HELD, UNKNOWN, AnswerType, Release, Submit, Unheld

if TYPE_CHECKING:
    from daws.core.node import NodeCore


@handles(NewTasks)
def on_new_tasks(core: NodeCore, message: NewTasks) -> None:
    """Tasks without parents need no answer from the store to be queued: nobody else can know of them yet."""
    if core.leaving is not None and core.leaving.said:
        return  # who is as good as gone takes nothing on; the client, who hears nothing, asks another node
    if core.phase == Phase.JOINING and any(row.outputs for row in message.tasks):
        # The store does not name this node among the members yet, so readers would take the objects for lost. The
        # client sends them again.
        return
    if message.batch != NO_BATCH and not _is_new(core, message):
        return
    # A client writes objects in several places itself, when all of these have heard of them.
    ask_all(core, [row for row in message.tasks if not (row.outputs and len(row.outputs[0].places) > 1)])
    ready: list[Ready] = []
    for row in message.tasks:
        if row.outputs:
            put_object(core, row.spec.id, row.outputs)
        elif not row.parents:
            ready.append(Ready(row.spec, 0, 0))
    accept_all(core, tuple(ready))


@handles(PlainTasks)
def on_plain_tasks(core: NodeCore, message: PlainTasks) -> None:
    if core.leaving is not None and core.leaving.said:
        return
    if message.batch != NO_BATCH and not _is_new(core, message):
        return
    rows = message.rows(core.node)
    ask_all(core, rows)
    tasks = [*map(Ready, [row.spec for row in rows], repeat(0), repeat(0))]
    accept_plain(core, tasks, message.kinds[0] if len(message.kinds) == 1 else None)


def _is_new(core: NodeCore, message: NewTasks | PlainTasks) -> bool:
    """Acknowledge a message that may come twice. Is it the first one with its number?"""
    core.out.append(Send(message.sender, SubmissionTaken(core.node, message.batch)))
    return not had_before(core, message.batch)


@answers(Submit)
def on_submit_answer(core: NodeCore, row: Submit, answer: AnswerType) -> None:
    if isinstance(answer, Ready):
        accept(core, answer)
    elif answer == UNKNOWN:
        ask_later(core, row)
    elif answer is not None and row.outputs and row.spec.id in core.objects.made:
        drop_held(core, row.spec.id)  # it is forgotten already, or its session has ended: the message was late
    elif core.spawning.brought:
        core.on_function_answer(row, answer)


@handles(LetGo)
def on_let_go(core: NodeCore, message: LetGo) -> None:
    if message.readers:
        for task, readers in zip(message.tasks, message.readers, strict=False):
            _unhold(core, task, readers)
        return
    ask_all(core, [Release(task, CLIENT_HOLDER) for task in message.tasks])
    if message.sender == CLIENT:
        send_freed(core)  # a client that says it again waits until the store has heard of what is gone


def let_go(core: NodeCore, task: int) -> None:
    ask(core, task, Release(task, CLIENT_HOLDER))


@answers(Release)
def on_release_answer(core: NodeCore, row: Release, answer: AnswerType) -> None:
    """Let objects that were made here, and that the client does not hold any more, wait for their readers alone. This
    node may never have heard of some readers, which were submitted elsewhere after the objects had been made. A node
    that does not have the objects tells those that do."""
    if not isinstance(answer, Unheld):
        if row.holder == CLIENT_HOLDER and row.task in core.objects.made:
            drop_held(core, row.task)
        return
    if core.node not in answer.places:
        for place in answer.places:
            if place in core.members:
                core.out.append(Send(place, LetGo(core.node, (row.task,))))
        return
    if row.task in core.objects.made:
        _unhold(core, row.task, answer.readers)
    elif not answer.readers and not ends(core, row.task):
        # They were dropped here when nobody had to hear of it: by then nobody held them. The store is to know.
        ask(core, row.task, Release(row.task, ALL_READ, answer.attempt))


def _unhold(core: NodeCore, task: int, unheard: tuple[int, ...]) -> None:
    """Keep the objects of a task for its readers alone, which the store knows."""
    entry = core.objects.made.get(task)
    if entry is None:
        return
    readers = entry.readers
    if HELD in readers:
        # Among the readers of a spawned task may be its spawner, who waited for it, and has ended.
        known = readers if task < FIRST_SPAWNED_ID else ()
        unhold(core, task, (*known, *unheard))
