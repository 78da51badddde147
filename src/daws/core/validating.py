"""Copies of which the task has ended elsewhere: whoever commits tells all other runs to stop, but that may get lost.

A node that has copies therefore asks the store about them now and then, if `replicate` says so (ADAGE's validator). The
same question is asked about tasks that read what was made here, see `objects.audit_in_time`, and about those that a run
has created, see `outliving`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.effects import VALIDATE
from daws.core.handlers import fires
from daws.core.membership import look_at_owner
from daws.core.objects import drop_held, release_for
from daws.core.places import places
from daws.core.replicas import timer_fired, validate_later
from daws.core.store_calls import answers, ask
from daws.model.states import FINAL, REMAKING
from daws.model.task import FIRST_SPAWNED_ID, NOBODY, REPLICA
from daws.wire.store import DONE, AnswerType, Inspect, OwnedBy, Owners, Story

if TYPE_CHECKING:
    from daws.core.node import NodeCore

ROWS_MAX = 256
"""The largest number of copies that are asked about at once."""


@fires(VALIDATE)
def validate(core: NodeCore) -> None:
    """The timer has fired, which was set with the first copy: ask about all that are here, and again after a while."""
    timer_fired(core)
    copies = {ready.spec.id: None for _, ready in places(core) if ready.mode & REPLICA}
    for task in list(copies)[:ROWS_MAX]:
        ask(core, task, Inspect(task, brief=True))
    if copies:
        validate_later(core)


@answers(Inspect)
def on_inspect_answer(core: NodeCore, row: Inspect, answer: AnswerType) -> None:
    """Has this task ended without our having been told? (As a reader, a remake that nobody claimed is none.)"""
    story = answer if isinstance(answer, Story) else None
    ended = answer == DONE or (story is not None and story.state in FINAL)
    if ended or (story is not None and story.state == REMAKING and story.owner == NOBODY):
        release_for(core, row.task)
    if answer == DONE and row.task in core.objects.made and row.task < FIRST_SPAWNED_ID:
        drop_held(core, row.task)
    if ended and story is not None:  # of one that is not there yet, or not any more, the store may say so as well
        core.hear_of_end(row.task)
    if ended and core.replicas.count:
        for ready in [ready for _, ready in places(core) if ready.spec.id == row.task and ready.mode & REPLICA]:
            core.call_off(row.task, ready.attempt)
    if story is not None and not ended and core.keeping is not None:
        look_at_owner(core, story.owner)


@answers(Owners)
def on_owners_answer(core: NodeCore, row: Owners, answer: AnswerType) -> None:
    assert isinstance(answer, OwnedBy)
    for node in answer.nodes:
        look_at_owner(core, node)
