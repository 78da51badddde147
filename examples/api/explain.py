"""Where a task ran and why, and another strategy while the cluster runs."""

import daws


def make(size: int) -> bytes:
    return bytes(size)


def measure(data: bytes) -> int:
    return len(data)


with daws.Cluster(workers=1, nodes=2, strategy="mlb", explain=True) as cluster:
    made = cluster.submit(make, 1_000_000)
    anywhere = cluster.submit(measure, made)
    anywhere.result()
    print(anywhere.explain())  # shared: whoever was idle might have taken it, wherever its megabyte was

    cluster.use_strategy("mdl")  # from now on, whatever reads data stays with it
    at_home = cluster.submit(measure, made)
    at_home.result()
    why = at_home.explain()
    print(why)
    print("threshold of `place`:", why.reasons["place"]["threshold"])  # prints: threshold of `place`: 0.0
