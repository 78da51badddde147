"""`python -m bench.scale`: a hundred live nodes on this machine, beside what the simulator says of them.

    python -m bench.scale                                  a bag of 100 ms tasks, dealt evenly, for 20 s
    python -m bench.scale --length-ms 50 --submit one --seconds 60
    python -m bench.scale --workload fan-in                or bot, pipeline, fan-out, all-pairs
    python -m bench.scale --kill                           of 50 nodes some are killed in the middle of 10,000 tasks
    python -m bench.scale --all                            everything, into docs/scale.md (about 14 minutes)

Nodes are processes of their own with thread executors, by mutual TLS over loopback; the store is a process with its log
on disk. The clock starts with the first submission, when all nodes have joined, and stops when the client knows of the
last end.
"""

import argparse
import json
import os
import sys

from bench.scale import page
from bench.scale.cases import (
    BAG_MS,
    BAG_S,
    DAG_MS,
    EVEN,
    GRAPH_S,
    KILLED_NODES,
    KILLED_TASKS,
    NODES,
    ONE,
    all_pairs,
    bag,
    cases_of,
    dag,
    killed_case,
)
from bench.scale.ground import Ground
from bench.scale.killing import Loss, Round, kill_some
from bench.scale.runs import Case, Figures, run
from daws.net.config import LEASE_S

WORKLOADS = ("bag", "bot", "pipeline", "fan-out", "fan-in", "all-pairs")


def main() -> int:
    given = arguments()
    found: list[Figures] = []
    loss: Loss | None = None
    settings: list[str] = []
    cases = chosen(given)
    if cases:
        with Ground(given.nodes or NODES, given.executors, given.lease_s) as ground:
            settings.append(setting(ground))
            say(settings[-1])
            for case in cases:
                found.append(run(ground, case))
                say(told(found[-1]))
    if given.all or given.kill:
        with Ground(given.nodes or KILLED_NODES, given.executors, given.lease_s) as ground:
            settings.append(setting(ground))
            say(settings[-1])
            loss = kill_some(ground, killed_case(given.tasks), told=lambda one: say(told_of_round(one)))
    text = page.tables(found, loss, settings)
    if given.json:
        print(json.dumps({"runs": [one.as_json() for one in found], "killed": loss and loss.as_json()}))
    else:
        print(text)
    if given.all:
        page.write(text)
    good = all(one.is_good for one in found) and (loss is None or loss.is_good)
    say("" if good else "some aims are not reached")
    return 0 if good else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, help=f"default: {NODES}, and {KILLED_NODES} where some are killed")
    parser.add_argument("--executors", type=int, default=2, help="of each node (default: 2)")
    parser.add_argument("--workload", choices=WORKLOADS, default="bag")
    parser.add_argument("--length-ms", type=float, help="of the tasks (default: 100 for a bag, else 200)")
    parser.add_argument("--submit", choices=("even", "one"), default="even", help="of a bag: to whom")
    parser.add_argument("--seconds", type=float, help=f"of work (default: 20; with --all {BAG_S:g} and {GRAPH_S:g})")
    parser.add_argument("--lease-s", type=float, default=LEASE_S, help=f"default: {LEASE_S:g}")
    parser.add_argument("--kill", action="store_true", help="kill nodes in the middle of a graph instead")
    parser.add_argument("--tasks", type=int, default=KILLED_TASKS, help=f"of that graph (default: {KILLED_TASKS})")
    parser.add_argument("--all", action="store_true", help="everything, and write docs/scale.md")
    parser.add_argument("--json", action="store_true", help="on stdout, instead of tables")
    return parser.parse_args()


def chosen(given: argparse.Namespace) -> list[Case]:
    slots = (given.nodes or NODES) * given.executors
    if given.all:
        return list(cases_of(slots, given.seconds or BAG_S, given.seconds or GRAPH_S).values())
    if given.kill:
        return []
    seconds = given.seconds or 20.0
    length_ms = given.length_ms or (BAG_MS if given.workload == "bag" else DAG_MS)
    if given.workload == "bag":
        name = f"bag of {length_ms:g} ms, {'dealt evenly' if given.submit == 'even' else 'all to one node'}"
        return [bag(name, slots, length_ms, seconds, EVEN if given.submit == "even" else ONE, 0.0, "")]
    if given.workload == "all-pairs":
        return [all_pairs(slots, seconds, length_ms)]
    return [dag(given.workload, slots, seconds, "", length_ms)]


def setting(ground: Ground) -> str:
    return (
        f"{ground.nodes} nodes of {ground.executors} thread executors on a machine with {os.cpu_count()} processors, "
        f"leases of {ground.lease_s:g} s; all had joined after {ground.joined_s:.0f} s."
    )


def told(one: Figures) -> str:
    return (
        f"{one.name}: {one.makespan_s:.1f} s, {one.efficiency:.1%} efficient, {one.off:+.1%} beside the simulator; "
        f"{one.node_us:.0f} + {one.store_us:.0f} + {one.client_us:.0f} µs of nodes, store and client for a task"
    )


def told_of_round(one: Round) -> str:
    how_long = f"{one.killed_s:.1f} s instead of {one.undisturbed_s:.1f} s"
    return f"a node was killed: {how_long}; it was missed after {one.detected_s:.1f} s, and {one.rerun} tasks ran again"


def say(text: str) -> None:
    if text:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
