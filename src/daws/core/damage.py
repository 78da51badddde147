"""Objects whose files turn out to be damaged, or gone: they are lost here, as if this node had never had them.

A task that was to read such an object looks for it at its other places, or has it made again (`fetching`, `remake`). A
run that found out had not begun, so it comes back as if it had been recalled; it is nobody's failure. Only a run that
has created tasks by then, and reads what one of them has made, has to run anew as if its worker had died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.events import RunEnded, RunLacks, RunRecalled
from daws.core.handlers import HANDLERS, handles
from daws.core.objects import count_damage

if TYPE_CHECKING:
    from daws.core.node import NodeCore

LACKS_MAX = 8
"""How often a task may find objects damaged on one node. After that, making them again there does not help."""


@handles(RunLacks)
def on_run_lacks(core: NodeCore, event: RunLacks) -> None:
    task = event.task
    run = core.executors.running.get(task)
    if run is None or run.number != event.run:
        return
    count = count_damage(core, task, LACKS_MAX)
    text = f"ObjectLost: task {task} finds object {event.object} damaged or missing on node {core.node}"
    if count >= LACKS_MAX:
        text += f", {count} times in a row; check the memory, the disk and the network of that machine"
        HANDLERS[RunEnded](core, RunEnded(task, event.run, 0, error=text))
    elif run.spawned or all(one.object != event.object for one in run.ready.inputs):
        error = text + "; submit it again"
        HANDLERS[RunEnded](core, RunEnded(task, event.run, 0, error=error, retry=True, waited=True))
    else:
        HANDLERS[RunRecalled](core, RunRecalled(task, event.run))
