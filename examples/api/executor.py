"""A cluster for programs that know `concurrent.futures`: only the import changes."""

from concurrent.futures import as_completed

from daws.futures import Executor

with Executor(max_workers=2) as executor:
    print(list(executor.map(pow, range(5), range(5), chunksize=2)))  # prints: [1, 1, 4, 27, 256]
    futures = [executor.submit(abs, -x) for x in range(3)]
    print(sorted(future.result() for future in as_completed(futures)))  # prints: [0, 1, 2]
