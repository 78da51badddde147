"""The session of a client whose process has the store and the only node, too.

Between these three no message, call or row can get lost, and none of them ends without the others. The node writes the
tasks that it is handed, nothing is repeated or kept until it is safe, and the store tells each end once. The session
passes on what it is given, many tasks at a time, and sets no timer.
"""

from typing import TYPE_CHECKING

from daws.core.effects import Send
from daws.core.session_events import PlainTasksSubmitted, TasksCancelled, TasksLetGo, TasksSubmitted
from daws.model.task import CLIENT
from daws.wire.messages import NO_BATCH, CancelOrder, LetGo, MessageType, NewTasks, PlainTasks

if TYPE_CHECKING:
    from daws.core.session import SessionCore


def _send(core: "SessionCore", message: MessageType) -> None:
    core.out.append(Send(core.members.nodes[0], message))


def on_submitted(core: "SessionCore", now_ns: int, event: TasksSubmitted) -> None:
    _send(core, NewTasks(CLIENT, NO_BATCH, tuple(event.rows)))


def on_plain_submitted(core: "SessionCore", now_ns: int, event: PlainTasksSubmitted) -> None:
    _send(core, PlainTasks(CLIENT, NO_BATCH, event.tasks, event.kinds, event.payloads))


def on_cancelled(core: "SessionCore", now_ns: int, event: TasksCancelled) -> None:
    _send(core, CancelOrder(CLIENT, core.hand_outs.next_number(), tuple(event.tasks)))


def on_let_go(core: "SessionCore", now_ns: int, event: TasksLetGo) -> None:
    _send(core, LetGo(CLIENT, tuple(event.tasks)))
