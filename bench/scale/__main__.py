import argparse, json, sys
from bench.scale.ground import Ground
from bench.scale.runs import run
from daws.workloads import parse_workload

p = argparse.ArgumentParser()
p.add_argument("--nodes", type=int, default=100)
p.add_argument("--executors", type=int, default=2)
p.add_argument("--length-ms", type=float, default=100)
p.add_argument("--seconds", type=float, default=20)
p.add_argument("--strategy", default="daws")
p.add_argument("--workload", default="bot")
a = p.parse_args()
tasks = int(a.seconds * a.nodes * a.executors * 1000 / a.length_ms)
with Ground(a.nodes, a.executors, 6.0) as ground:
    print("joined", round(ground.joined_s, 1), "s", "MB", round(ground.memory_mb(), 1), flush=True)
    if a.workload == "bot":
        w = f"bot:tasks={tasks},length-ms={a.length_ms},spread=constant"
    else:
        w = a.workload.format(tasks=tasks)
    graph = parse_workload(w).build(a.nodes, a.executors, 0)
    for k, v in run(ground, graph, a.strategy).items():
        print(k, round(v, 3))
    print("MB", round(ground.memory_mb(), 1))
