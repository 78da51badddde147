"""Two kinds of workers: processes with a set-up function, and threads for tasks that only wait."""

import os

import daws


def set_up() -> None:
    os.environ["GREETING"] = "hello"


with daws.Cluster(workers=2, setup=set_up) as cluster:
    print(cluster.submit(os.getenv, "GREETING").result())  # prints: hello

with daws.Cluster(workers=2, kind="threads") as cluster:
    print(cluster.submit(os.getpid).result() == os.getpid())  # prints: True
