"""What a workload needs of a system. Adapters import their library when they start, never before."""

from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, ClassVar

from bench.peers.tasks import deepest, increment_all, make_array, read_arrays, run_true

Parents = Sequence[tuple[int, ...]]
"""A graph: for each task, the tasks before it that it reads."""

GRAPHS = frozenset({"pipeline", "tree", "random"})
TINY = GRAPHS | {"futures", "argument", "map", "trip", "script", "memory"}
EVERYTHING = TINY | {"objects", "spin-1ms", "spin-10ms", "sleep-10ms", "commands"}


class System:
    """One system with its workers running. Tasks are submitted one by one; `gather` waits for all and gives results."""

    name: ClassVar[str]
    library: ClassVar[str]  # what must be importable
    package: ClassVar[str | None] = (
        None  # what it is called where versions are kept; None comes with Python or this project
    )
    settings: ClassVar[str]  # in words, for the report
    does: ClassVar[frozenset[str]] = EVERYTHING
    keeps_graph: ClassVar[bool] = True  # futures may be arguments, and the system waits for them
    one_process: ClassVar[bool] = False  # tasks run on threads of the client: nothing is sent anywhere
    is_peer: ClassVar[bool] = True
    pending_count: ClassVar[int] = 5_000  # so many futures tell what one of them takes
    chunks: ClassVar[tuple[int | None, ...]] = (100, 1_000, 10_000)  # to try in `map`; None is the system's own choice
    unseen_bytes_per_object: ClassVar[int] = 0  # copies that the kernel does not count, as when written to a mapping

    def __init__(self, workers: int) -> None:
        raise NotImplementedError

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        raise NotImplementedError

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        return [future.result() for future in futures]

    def close(self) -> None:
        raise NotImplementedError

    def map(self, items: Sequence[int], chunk: int | None) -> int:
        """The sum of all items, each made one larger by a task: here by hand, some items per task."""
        assert chunk is not None
        parts = [items[low : low + chunk] for low in range(0, len(items), chunk)]
        return sum(map(sum, self.gather([self.submit(increment_all, list(part)) for part in parts])))

    def run_graph(self, parents: Parents, sinks: Sequence[int]) -> list[int]:
        """How deep the sinks of the graph lie."""
        if not self.keeps_graph:
            return self._drive(parents, sinks)
        futures: list[Any] = []
        for above in parents:
            futures.append(self.submit(deepest, *[futures[one] for one in above]))
        return self.gather([futures[sink] for sink in sinks])

    def objects(self, makers: int, pairs: Sequence[tuple[int, int]]) -> list[float]:
        """Arrays are made by tasks and read in pairs by others; without a graph they go through the client."""
        arrays: list[Any] = [self.submit(make_array, number) for number in range(makers)]
        if not self.keeps_graph:
            arrays = self.gather(arrays)
        return self.gather([self.submit(read_arrays, arrays[one], arrays[two]) for one, two in pairs])

    def commands(self, count: int) -> None:
        """Start a program so many times. Whoever has no commands of its own starts them from a function."""
        codes = self.gather([self.submit(run_true) for _ in range(count)])
        assert codes == [0] * count

    def _drive(self, parents: Parents, sinks: Sequence[int]) -> list[int]:
        """The client keeps the graph, and submits what has become ready. Needs futures with callbacks."""
        missing = [len(above) for above in parents]
        children: list[list[int]] = [[] for _ in parents]
        for task, above in enumerate(parents):
            for one in above:
                children[one].append(task)
        depths = [0] * len(parents)
        ended: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        ready = deque(task for task, count in enumerate(missing) if not count)
        left = len(parents)
        while left:
            while ready:
                task = ready.popleft()
                future = self.submit(deepest, *[depths[one] for one in parents[task]])
                future.add_done_callback(lambda done, task=task: ended.put((task, done)))
            task, done = ended.get()
            depths[task] = done.result()
            left -= 1
            for child in children[task]:
                missing[child] -= 1
                if not missing[child]:
                    ready.append(child)
        return [depths[sink] for sink in sinks]
