"""Many calls at once: `map`, `gather`, and futures in the order in which they end."""

import daws


def square(x: int) -> int:
    return x * x


with daws.Cluster(workers=2) as cluster:
    squares = cluster.map(square, range(10_000))  # several items per task
    print(squares[3], sum(squares))  # prints: 9 333283335000

    futures = {name: [cluster.submit(square, x) for x in some] for name, some in {"a": [1, 2], "b": [3]}.items()}
    print(cluster.gather(futures, progress=True))  # prints: {'a': [1, 4], 'b': [9]}

    for future in daws.as_completed(futures["a"]):
        assert future.done()
    done, not_done = daws.wait(futures["a"], timeout=10)
    print(len(done), len(not_done))  # prints: 2 0

    future = cluster.submit(square, 5)
    future.add_done_callback(lambda ended: print("heard of", ended.result()))  # prints: heard of 25
    daws.progress([future])
