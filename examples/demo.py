"""A workflow live on all cores of this machine, and beside it what the simulator says of the same run.

Run it with `make demo`. It leaves `demo.png` in the current folder, or writes the file named as its only argument.
"""

import sys
from pathlib import Path

from daws.cli.run import carry_out
from daws.client.cluster import Cluster
from daws.formats import read_workflow
from daws.model.graph import Graph
from daws.runs.summary import Summary, summarise
from daws.runs.timeline import Timeline
from daws.sim.cluster import cluster_of
from daws.sim.plot import Panel, check_target, draw_panels, panel_from, panel_of
from daws.sim.profiles import profile
from daws.sim.simulate import Result, Settings, simulate
from daws.strategy import parse_strategy
from daws.workflows.emulation import Emulation

WORKFLOW = Path(__file__).parent / "mosaic.json"
TIME_SCALE = 1.0
STRATEGY = "daws"
WIDER = (2, 4, 8, 16)


def main() -> None:
    target = check_target(Path(sys.argv[1] if len(sys.argv) > 1 else "demo.png"))
    graph = read_workflow(str(WORKFLOW)).graph.scaled(TIME_SCALE)
    live, live_panel = run_live(graph)
    simulated, simulated_panel = run_simulated(graph, live.cores_total, until_s=live.makespan_s)
    print(table(live, simulated))
    print(what_if(graph, live.cores_total))
    heading = f"A mosaic of images on {live.cores_total} workers: busy ones over time"
    draw_panels([live_panel, simulated_panel], target, heading, columns=1, size=(8.0, 5.6), time_label="time in s")
    print(f"\nThe picture is in {target}. Next: daws run examples/{WORKFLOW.name} --trace trace.json")


def run_live(graph: Graph) -> tuple[Summary, Panel]:
    """Run the workflow on all cores: tasks sleep for their recorded time, and read and write real bytes."""
    with Cluster(strategy=STRATEGY, timeline=Timeline()) as cluster:
        print(
            f"{WORKFLOW.name}: {graph.task_count} tasks that read {graph.input_bytes / 1e9:.1f} GB and write "
            f"{graph.output_bytes / 1e9:.1f} GB,\nlive on {cluster.workers} workers of this machine …\n",
            flush=True,
        )
        emulation = Emulation(cluster, graph)
        if not carry_out(emulation):
            raise KeyboardInterrupt
        if emulation.failed is not None:
            raise emulation.failed[1]
    start_ns, end_ns, _ = emulation.columns()
    summary = summarise(graph, start_ns, end_ns, 1, cluster.workers, STRATEGY)
    shown = f"live: {summary.makespan_s:.1f} s", start_ns.tolist(), end_ns.tolist(), summary.cores_total
    return summary, panel_from(*shown, summary.utilization, summary.makespan_s)


def run_simulated(graph: Graph, workers: int, until_s: float = 0.0) -> tuple[Result, Panel]:
    settings = Settings(costs=profile("local"))
    result, kernel = simulate(graph, cluster_of(1, workers), parse_strategy(STRATEGY), settings)
    return result, panel_of(result, kernel, f"simulated: {result.makespan_s:.1f} s", max(until_s, result.makespan_s))


def table(live: Summary, simulated: Result) -> str:
    rows = [
        ("", "live", "simulated"),
        ("makespan", f"{live.makespan_s:.2f} s", f"{simulated.makespan_s:.2f} s"),
        ("efficiency", f"{live.efficiency:.1%}", f"{simulated.efficiency:.1%}"),
        ("utilization", f"{live.utilization:.1%}", f"{simulated.utilization:.1%}"),
    ]
    off = simulated.makespan_s / live.makespan_s - 1
    return (
        "\n".join(f"  {name:<12}{one:>10}  {other:>10}" for name, one, other in rows)
        + f"\n\nThe simulator is {off:+.1%} off. No schedule could take less than {live.bound_s:.2f} s."
    )


def what_if(graph: Graph, workers: int) -> str:
    """Simulate the same workflow on machines that are not here."""
    lines = ["", "What would more workers bring? The simulator says:", ""]
    for times in WIDER:
        result, _ = run_simulated(graph, workers * times)
        lines.append(f"  {workers * times:>4} workers {result.makespan_s:>7.2f} s {result.efficiency:>7.0%} efficiency")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
