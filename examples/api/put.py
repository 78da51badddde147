"""A large object for many tasks: it is written once, and workers map it into memory without a copy."""

import numpy as np

import daws


def row_sum(table: np.ndarray, row: int) -> float:
    return float(table[row].sum())


with daws.Cluster(workers=2) as cluster:
    table = cluster.put(np.arange(1_000_000.0).reshape(1000, 1000))
    sums = [cluster.submit(row_sum, table, row) for row in range(1000)]
    print(sum(cluster.gather(sums)))  # prints: 499999500000.0
