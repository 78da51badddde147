"""The options of a task: retries, a time limit, several outputs, requirements, priority."""

import time

import daws


def divide(a: int, b: int) -> tuple[int, int]:
    return a // b, a % b


with daws.Cluster(workers=2) as cluster:
    quotient, rest = cluster.options(outputs=2, retries=1).submit(divide, 17, 5)
    print(quotient.result(), rest.result())  # prints: 3 2

    slow = cluster.options(timeout=0.1).submit(time.sleep, 1000)
    print(slow.exception())  # prints: time limit of 0.1 s

    wide = cluster.options(cores=2, memory=500_000_000, priority=5).submit(sum, [1, 2, 3])
    print(wide.result())  # prints: 6
