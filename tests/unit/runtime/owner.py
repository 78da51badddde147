"""A client with several nodes that hangs, to be ended by a test: `python owner.py FIFO`; says where its files are."""

import sys

from daws.client.cluster import Cluster
from tests.unit.runtime.jobs import begin_and_hang, blob

if __name__ == "__main__":
    cluster = Cluster(1, nodes=2)
    held = [cluster.submit(blob, number, 1 << 20) for number in range(4)]
    assert [len(one.result(60)) for one in held] == [1 << 20] * 4
    print(cluster._folders.memory or "", cluster._folders.scratch, sep="\n", flush=True)
    hanging = [cluster.submit(begin_and_hang, f"{sys.argv[1]}{slot}") for slot in range(2)]
    for one in hanging:
        one.result()
