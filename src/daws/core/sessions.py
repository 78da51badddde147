"""Sessions whose graph grows task by task: what a live client submits, and what it holds.

A client holds every task that it can still ask for; objects of such a task stay where they were made, as if the client
were one of their readers, until it lets go. Runs hold what they spawn in the same way.
"""

from daws.core.calls import add_row, answers, ask, ask_later
from daws.core.effects import Send
from daws.core.node import NodeCore, handles
from daws.core.ready import accept, accept_all
from daws.core.staging import add_reader, release_made
from daws.model.task import Ready
from daws.wire.messages import LetGo, NewTasks, SubmissionTaken
from daws.wire.store import CLIENT_HOLDER, HELD, SHARD_BLOCK_BITS, UNKNOWN, AnswerType, Release, Submit

BATCHES_MAX = 1024
"""So many hand-outs are remembered, in case one of them comes twice."""


@handles(NewTasks)
def on_new_tasks(core: NodeCore, message: NewTasks) -> None:
    """Tasks without parents need no answer from the store to be queued: nobody else can know of them yet."""
    if core.leaving is not None and core.leaving.said:
        return  # who is as good as gone takes nothing on; the client, who hears nothing, asks another node
    core.out.append(Send(message.sender, SubmissionTaken(core.node, message.batch)))
    if core.batches is None:
        core.batches = set()
    if message.batch in core.batches:
        return
    if len(core.batches) >= BATCHES_MAX:
        core.batches = {batch for batch in core.batches if batch > message.batch - BATCHES_MAX // 2}
    core.batches.add(message.batch)
    core.urgent = True
    shard_count = core.shard_count
    ready: list[Ready] = []
    for row in message.tasks:
        add_row(core, (row.spec.id >> SHARD_BLOCK_BITS) % shard_count, row)
        if row.parents:
            for parent in row.parents:
                add_reader(core, parent, row.spec.id)
        else:
            ready.append(Ready(row.spec, 0, 0))
    accept_all(core, tuple(ready))


@answers(Submit)
def on_submit_answer(core: NodeCore, row: Submit, answer: AnswerType) -> None:
    if isinstance(answer, Ready):
        accept(core, answer)
    elif answer == UNKNOWN:
        ask_later(core, row)


@handles(LetGo)
def on_let_go(core: NodeCore, message: LetGo) -> None:
    for task in message.tasks:
        let_go(core, task)


def let_go(core: NodeCore, task: int) -> None:
    ask(core, task, Release(task, CLIENT_HOLDER))
    release_made(core, task, HELD)
