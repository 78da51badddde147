"""Another strategy, while the node runs.

Tasks that wait here are placed and queued by the new strategy, as if they had just become ready. Tasks that run, wait
for their inputs or are on their way to another node go on as it was decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.events import NewStrategy
from daws.core.handlers import handles
from daws.core.lifelines import forget_others
from daws.core.placement import accept_all, enqueue
from daws.core.queues import is_doomed
from daws.core.tuning import begin_period
from daws.model.task import REPLICA

if TYPE_CHECKING:
    from daws.core.node import NodeCore


@handles(NewStrategy)
def on_new_strategy(core: NodeCore, event: NewStrategy) -> None:
    forget_others(core)
    core.go_by(core.read_strategy(event.text), core.tuning.stall_since)
    begin_period(core)
    core.close_lane()
    core.search.end_round()  # one under the old strategy asked for something else
    waiting = [*core.queues.dedicated.oldest_first(), *core.queues.shared.oldest_first()]
    core.queues.forget_all()
    core.schedule_soon()
    if core.queues.doomed:
        waiting = [ready for ready in waiting if not is_doomed(core, ready)]
    accept_all(core, tuple([ready for ready in waiting if not ready.mode & REPLICA]))
    for ready in waiting:
        if ready.mode & REPLICA:
            enqueue(core, ready, False)  # a copy is never moved
