"""`python -m bench.peers.one SYSTEM WORKLOAD EFFORT FILE`: one workload, one system, figures into a file.

A process of its own, so that no system disturbs another. (Not to standard output: some systems write there.)
"""

import os
import sys
import traceback
from pathlib import Path

import msgspec

from bench.peers.systems import system_named
from bench.peers.tasks import no_op
from bench.peers.workloads import WORKLOADS, Effort, script

WARM_UP = 20
"""Tasks before the clock starts: some systems start their workers with the first ones."""


def main() -> None:
    name, workload_name, effort_text, file = sys.argv[1:]
    effort = msgspec.json.decode(effort_text, type=Effort)
    workload = WORKLOADS[workload_name]
    if workload.run is None:
        figures = script(name, effort)
        system = None
    else:
        system = system_named(name)(workload.workers)
        system.gather([system.submit(no_op) for _ in range(WARM_UP)])
        figures = workload.run(system, effort)
    Path(file).write_bytes(msgspec.json.encode(figures))
    if system is not None:
        system.close()


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # whoever failed may have threads that never end
