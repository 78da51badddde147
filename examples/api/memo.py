"""Results of earlier runs are reused while nothing has changed that they were made of."""

import daws


@daws.task(memo=True)
def squared(x: int) -> int:
    return x * x


@daws.task(memo=True)
def added(*numbers: int) -> int:
    return sum(numbers)


def run(count: int) -> None:
    with daws.Cluster(workers=2, memo="results") as cluster:
        total = added(*[squared(x) for x in range(count)])
        print(total.result(), f"({cluster.memo.reused} reused, {cluster.memo.ran} ran)")


run(4)  # prints: 14 (0 reused, 5 ran)
run(4)  # prints: 14 (5 reused, 0 ran)
run(5)  # prints: 30 (4 reused, 2 ran)
