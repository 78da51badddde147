"""The error of a task whose worker process ended under it."""

import logging
from signal import SIGKILL

from daws.logs import about
from daws.model.errors import TaskKilledError, TaskTimeoutError
from daws.model.task import NodeId, TaskSpec
from daws.wire.worker import MEMORY, TIMEOUT, Died
from daws.workers.programs import signal_name

OUTPUT_SHOWN = 2000
log = logging.getLogger("daws.worker")


def death_of(
    who: str, spec: TaskSpec, report: Died, node: NodeId, attempt: int = 1, blamed: str = ""
) -> TaskKilledError:
    """Say how the worker ended, here and in the log; `blamed` names the run that ended it, if it was another one."""
    if report.why == TIMEOUT:
        how = f"it ran longer than its time limit of {spec.timeout_ns / 1e9:g} s on node {node} and was stopped"
    elif report.why == MEMORY:
        limit = spec.needs.memory_bytes if spec.needs is not None else 0
        how = f"it used more memory on node {node} than the {limit:,} bytes that it may, and was stopped"
    elif report.code < 0:
        how = f"its worker was killed by {signal_name(-report.code)} on node {node}"
        if report.code == -SIGKILL and not blamed:
            how += ", as the system does where memory runs out"
    else:
        how = f"its worker exited with code {report.code} on node {node}"
    if blamed:
        how += f" under {blamed}"
    if report.waited:
        how += " while it waited for other tasks"
    if attempt > 1:
        how += f" (attempt {attempt})"
    last = report.output.decode(errors="replace").strip()
    kind = TaskTimeoutError if report.why == TIMEOUT else TaskKilledError
    error = kind(f"{who}: {how}" + (f"; the last it wrote: {last[-OUTPUT_SHOWN:]}" if last else ""))
    log.info("%s", error, extra=about(node=node, task=spec.id))
    return error
