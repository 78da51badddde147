"""When something goes wrong: exceptions come back, others are not affected, and cancelling really stops."""

import os
import time

import daws


def careless(x: int) -> float:
    return 1 / x


with daws.Cluster(workers=2) as cluster:
    futures = [cluster.submit(careless, x) for x in (1, 0, 2)]
    print(cluster.gather(futures, errors="return"))  # prints: [1.0, ZeroDivisionError('division by zero'), 0.5]
    print(cluster.gather(futures, errors="skip"))  # prints: [1.0, 0.5]

    try:
        cluster.submit(os._exit, 7).result()
    except daws.TaskKilledError as error:
        print(error)  # prints: its worker exited with code 7

    sleeper = cluster.submit(time.sleep, 1000)
    sleeper.cancel()
    try:
        sleeper.result()
    except daws.TaskCancelledError:
        print("cancelled:", sleeper.cancelled())  # prints: cancelled: True

    try:
        cluster.submit(len, (x for x in range(3)))
    except daws.UsageError as error:
        print(error)  # prints: argument 1 cannot be pickled
