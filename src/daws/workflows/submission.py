"""A graph on its way through a cluster: tasks are submitted parents first, and watched until the last has ended.

Futures are dropped as soon as all who read them are submitted, so that objects go when their readers are done.
"""

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any

import numpy as np

from daws.client.cluster import Cluster
from daws.client.future import Future
from daws.client.options import OUTPUTS_MAX, PRIORITY_MAX
from daws.model.cluster import ExecutorClass, Members, NodeInfo
from daws.model.columns import Int64s
from daws.model.context import format_context
from daws.model.graph import Graph
from daws.model.task import RAISED
from daws.runs.timeline import Timeline
from daws.strategy.decisions import Order, raised_ranks

PERIOD_S = 0.1
NEWS_S = 5.0
TASKS_PER_TICK = 4096


class GraphSubmission:
    """Subclasses say what a task is by `_call`. The cluster must have a timeline.

    `ended` tasks have ended well, with `ended_ns` of work; `failed` is the first that did not, and why. After a failure
    no task begins any more, unless the submission is to `keep_going` with all that do not need what failed.
    """

    def __init__(self, cluster: Cluster, graph: Graph, ignore_needs: bool = False, keep_going: bool = False) -> None:
        assert cluster._timeline is not None
        self.cluster = cluster
        self.graph = graph
        self.timeline: Timeline = cluster._timeline
        self.ignore_needs = ignore_needs
        self.ended = 0
        self.ended_ns = 0
        self.failed: tuple[int, BaseException] | None = None
        self.errors: dict[int, BaseException] = {}  # by task: of all that did not end well, for whatever reason
        self.keep_going = keep_going
        self.task_of: dict[int, int] = {}  # by number of a task in the cluster: that in the graph
        self.begun_ns = 0
        self._lengths: list[int] = (graph.length_ns * graph.cores).tolist()
        self._ranks = ranks_of(graph, cluster.strategy.order, cluster.workers)
        self._futures: dict[int, Future[Any]] = {}  # by object
        self._readers: list[int] = np.bincount(graph.inputs, minlength=graph.object_count).tolist()
        self._over: SimpleQueue[None] = SimpleQueue()  # Ctrl-C in the wait of an Event can become a RuntimeError
        self._count_before = 0
        self._submitted = 0
        self._told = 0  # how many have ended, in whatever way
        self._is_submitted = False
        self._ending = Lock()

    def _call(self, task: int, inputs: list[Future[Any]]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The call to submit for a task: a function, and its arguments with `inputs` in them."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Make all that has to be there before the clock starts: nothing, usually."""

    def start(self, tick: Callable[[], None] = lambda: None) -> None:
        """Submit everything; `tick` is called now and then. Tasks run meanwhile."""
        graph, futures, readers = self.graph, self._futures, self._readers
        self.begun_ns = time.monotonic_ns()
        self._count_before = self.timeline.count
        input_start, output_start = graph.input_start.tolist(), graph.output_start.tolist()
        inputs_all = graph.inputs.tolist()
        for number, task in enumerate(submission_order(graph).tolist(), 1):
            if self.failed is not None and not self.keep_going:
                break
            if not number % TASKS_PER_TICK:
                tick()
            inputs = inputs_all[input_start[task] : input_start[task + 1]]
            made = range(output_start[task], output_start[task + 1])
            function, args = self._call(task, list(dict.fromkeys(futures[one] for one in inputs if one in futures)))
            options = self._options(task, min(max(1, len(made)), OUTPUTS_MAX))
            found = self.cluster.options(**options).submit(function, *args)
            outputs: tuple[Future[Any], ...] = found if isinstance(found, tuple) else (found,)
            self.task_of[outputs[0].task] = task
            for index, one in enumerate(made):
                if readers[one]:
                    futures[one] = outputs[min(index, len(outputs) - 1)]
            self._submitted += 1
            self._holds(task, outputs[0])
            outputs[0].add_done_callback(self._on_ended)
            self._drop(inputs)
        if self.failed is not None and not self.keep_going:
            self._stop()  # what was submitted a moment ago, too
        self._is_submitted = True
        self._look_whether_over()

    def _holds(self, task: int, future: Future[Any]) -> None:
        """A task was submitted."""

    def _drop(self, inputs: list[int]) -> None:
        readers = self._readers
        for one in inputs:
            readers[one] -= 1
            if not readers[one]:
                self._futures.pop(one, None)

    def _options(self, task: int, outputs: int) -> dict[str, Any]:
        graph = self.graph
        options: dict[str, Any] = {} if outputs == 1 else {"outputs": outputs}
        if graph.priority[task]:
            options["priority"] = max(-PRIORITY_MAX, min(PRIORITY_MAX, int(graph.priority[task])))
        if self._ranks is not None:
            options["rank"] = float(self._ranks[task]) / 1e9
        if graph.estimate_ns is not None:
            options["expected"] = float(graph.estimate_ns[task]) / 1e9
        if self.ignore_needs:
            return options
        if graph.cores[task] > 1:
            options["cores"] = int(graph.cores[task])
        context = graph.contexts[graph.context[task]]
        if context is not None:
            options["context"] = format_context(context)
        return options

    def _on_ended(self, future: Future[Any]) -> None:
        # On a thread of the cluster's, or while it is submitted.
        task = self.task_of[future.task]
        error = future.exception()
        with self._ending:
            self._told += 1
            if error is None:
                self.ended += 1
                self.ended_ns += self._lengths[task]
            else:
                self.errors[task] = error
            is_first = error is not None and self.failed is None
            if error is not None and is_first:
                self.failed = task, error
        if is_first and not self.keep_going:
            self._stop()
        self._look_whether_over()

    def _stop(self) -> None:
        """Let no further task begin, after the first failure."""
        self._over.put(None)

    def _look_whether_over(self) -> None:
        if self._is_submitted and self._told == self._submitted:
            self._over.put(None)

    def result(self) -> Graph:
        """The graph as it was carried out; the same, unless tasks had a will of their own."""
        return self.graph

    def wait(self, tick: Callable[[], None]) -> None:
        """Wait until all tasks have ended, or one has failed and no others are to be waited for; `tick` is called now
        and then."""
        while self._is_under_way():
            tick()
        # What a node in another process tells of its last runs may come a moment after the end of their tasks.
        until_s = time.monotonic() + NEWS_S
        while not self.errors and self._untold() and time.monotonic() < until_s:
            time.sleep(PERIOD_S / 100)

    def _is_under_way(self) -> bool:
        try:
            self._over.get(timeout=PERIOD_S)
        except Empty:
            return True
        return False

    def _untold(self) -> bool:
        return self.timeline.count - self._count_before < self.graph.task_count

    def columns(self) -> tuple[Int64s, Int64s, Int64s]:
        """Start and end of each task in ns since the first submission, and its node; -1 where none ended."""
        columns = np.full((3, self.graph.task_count), -1, np.int64)
        for number, _, node, _, start_ns, end_ns, *_, is_good in self.timeline.rows():
            task = self.task_of.get(number, -1)
            if is_good and task >= 0:
                columns[:, task] = start_ns - self.begun_ns, end_ns - self.begun_ns, node
        return columns[0], columns[1], columns[2]


def ranks_of(graph: Graph, order: Order, workers: int) -> Int64s | None:
    """How urgent each task is on so many workers, if the strategy asks for that."""
    if not order.needs_ranks:
        return None
    members = Members(0, (NodeInfo(0, (ExecutorClass(workers),)),))
    return raised_ranks(order, graph, graph.planned_rank_ns(), members) % RAISED


def submission_order(graph: Graph) -> Int64s:
    """Tasks so that parents come before their children: as they are, if they are so, else level by level."""
    child = np.repeat(np.arange(graph.task_count), np.diff(graph.parent_start))
    if not (graph.parents >= child).any():
        return np.arange(graph.task_count)
    return np.argsort(graph.levels(), kind="stable")
