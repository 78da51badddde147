"""The client of a chaos run, in a process of its own so that it can be killed: submits the graph, or goes on where the
one before it was, and writes down a digest of every result.

python -m tests.chaos.client CLUSTER SESSION SEED TASKS LENGTH_S RUNS ANSWERS
"""

import json
import os
import sys

import daws
from tests.chaos.work import digest_of, graph_of, work


def main() -> None:
    folder, session, seed_text, tasks, length_s, runs, answers = sys.argv[1:]
    seed = int(seed_text)
    steps = graph_of(seed, int(tasks), float(length_s))
    with daws.connect(folder, session=session, keep=True, timeout=60) as cluster:
        futures = cluster.futures()  # of the client before us, in the order of the steps
        for step in steps[len(futures) :]:
            read = [futures[one] for one in step.parents]
            made = (step.number, step.size_bytes, step.length_s)
            futures.append(cluster.options(retries=2).submit(work, seed, made, runs, *read))
        digests = [digest_of(future.result()) for future in futures]
        partial = f"{answers}.{os.getpid()}"
        with open(partial, "w") as file:
            json.dump(digests, file)
        os.rename(partial, answers)


if __name__ == "__main__":
    main()
