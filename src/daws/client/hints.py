"""Names that people know from other libraries, and what to write here: tables, and the lines that are made of them.

Nothing here is imported before somebody has asked for something that is not there, but for the tables of attributes.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from daws.model.errors import UsageError

if TYPE_CHECKING:
    from daws.model.task import Needs

START = "daws.Cluster() starts workers here, daws.connect(folder) uses nodes that run already"
CALL = "call the task itself, its calls are futures: square(2)"
ITERATE = "cluster.map(f, xs) gives the results in order, daws.as_completed(cluster.map(f, xs)) as they end"
OPTIONS = "cluster.options(retries=2, timeout=60).submit(f, x)"

PACKAGE = {
    "Client": START,
    "LocalCluster": START,
    "init": START,
    "Parallel": "with daws.Cluster() as cluster: results = list(cluster.map(f, xs))",
    "delayed": "@daws.task makes calls of a function tasks, daws.gather(calls) gives their results",
    "compute": "daws.gather(futures) gives the results",
    "remote": "@daws.task makes calls of a function tasks",
    "get": "daws.gather(futures), or future.result()",
    "put": "cluster.put(value)",
    "submit": "with daws.Cluster() as cluster: cluster.submit(f, x)",
    "map": "with daws.Cluster() as cluster: list(cluster.map(f, xs))",
    "run": "cluster.run(…) runs a program, cluster.submit(f, x) a function",
    "options": OPTIONS,
    "shutdown": "cluster.close(), or leave its with block",
    "cancel": "future.cancel(), or cluster.cancel(futures)",
    "Executor": "daws.futures.Executor()",
    "ProcessPoolExecutor": "daws.futures.Executor() has the interface of concurrent.futures",
    "ThreadPoolExecutor": "daws.futures.Executor(cluster=daws.Cluster(kind='threads'))",
    "Pool": "with daws.Cluster() as cluster: list(cluster.map(f, xs)); or daws.futures.Executor()",
    "Memory": "daws.Cluster(memo='folder'), and cluster.options(memo=True).submit(f, x)",
    "get_client": "daws.current() inside of a task",
    "get_worker": "daws.current() inside of a task; setup=… of daws.Cluster prepares workers",
    "fire_and_forget": "cluster.submit(f, x): closing the cluster waits for all tasks",
    "visualize": "daws.Cluster(trace='run.json') shows in ui.perfetto.dev when and where tasks ran",
    "ALL_COMPLETED": "daws.wait(futures, return_when='all')",
    "FIRST_COMPLETED": "daws.wait(futures, return_when='first')",
    "FIRST_EXCEPTION": "daws.wait(futures, return_when='error')",
    "CancelledError": "daws.TaskCancelledError",
    "TimeoutError": "Python's own TimeoutError; a task over its time limit raises daws.TaskTimeoutError",
    "python_app": "@daws.task",
    "bash_app": "daws.command(line), and cluster.run(…)",
    "Actor": "there are no actors: pass the state from task to task, or set it up in each worker (setup=…)",
    "actor": "there are no actors: pass the state from task to task, or set it up in each worker (setup=…)",
    "Queue": "daws.as_completed(futures) gives results as they end; tasks give theirs to others as arguments",
    "Lock": "tasks share nothing that needs a lock: one that needs the results of others takes their futures",
    "Event": "a task that waits for others takes their futures as arguments",
    "Semaphore": "tasks with a context run at most as many at once as daws.Cluster(devices={'licence': 2}) has",
    "Variable": "cluster.put(value), or the future of a task",
}
CLUSTER = {
    "call": f"cluster.call is gone: {OPTIONS}",
    "scatter": "cluster.put(value) hands in an object once for many tasks",
    "compute": "cluster.gather(futures) gives the results",
    "persist": "cluster.submit starts at once and keeps the result as long as its future is kept",
    "apply": "cluster.submit(f, *args).result()",
    "apply_async": "cluster.submit(f, *args, **kwargs) gives a future",
    "map_async": "cluster.map(f, xs) does not wait until a result is asked for",
    "imap": ITERATE,
    "imap_unordered": ITERATE,
    "starmap": "cluster.map(f, *zip(*pairs)) calls f with one item of each",
    "starmap_async": "cluster.map(f, *zip(*pairs)) calls f with one item of each",
    "shutdown": "cluster.close() waits for all tasks, cluster.close(cancel=True) cancels them",
    "terminate": "cluster.close(cancel=True)",
    "join": "cluster.close() waits for all tasks",
    "scale": "give the number of workers to daws.Cluster(workers=…); with daws.connect, start more nodes ('daws node')",
    "adapt": "give the number of workers to daws.Cluster(workers=…); with daws.connect, start more nodes ('daws node')",
    "restart": "cluster.close(cancel=True), and make a new one",
    "who_has": "future.explain() says where a task ran, with daws.Cluster(explain=True)",
    "has_what": "cluster.nodes() lists the nodes, cluster.counters() what they have done",
    "as_completed": "daws.as_completed(futures)",
    "wait": "daws.wait(futures)",
    "progress": "daws.progress(futures)",
    "result": "future.result(), or cluster.gather(futures)",
    "get": "cluster.gather(futures), or future.result()",
    "remote": f"cluster.submit(f, x), or {OPTIONS}",
    "wait_for_workers": "a cluster has its workers when it is made; 'daws nodes' lists those of daws.connect",
    "ncores": "cluster.workers",
    "max_workers": "cluster.workers",
    "n_workers": "cluster.workers",
    "dashboard_link": "daws.progress(futures) shows a bar, daws.Cluster(trace='run.json') writes where tasks ran",
    "upload_file": "your own modules are sent along by themselves",
    "delayed": "cluster.submit(f, x), or @daws.task for functions whose calls are tasks",
}
FUTURE = {
    "get": "future.result()",
    "wait": "future.exception() waits and gives what was raised, or None; daws.wait([future], timeout=…)",
    "ready": "future.done()",
    "successful": "future.done() and future.exception() is None",
    "add_callback": "future.add_done_callback(function)",
    "status": "future.state",
    "key": "future.task is the number of its task",
    "release": "drop the future: its result goes with it",
    "set_result": "a future ends with its task, and nobody else can set its result",
    "set_exception": "a future ends with its task, and nobody else can set its exception",
    "compute": "future.result()",
    "_condition": "use daws.wait or daws.as_completed; daws.futures.Executor gives futures of Python itself",
    "then": "cluster.submit(f, future) runs f with its result",
    "value": "future.result()",
    "traceback": "future.exception().__traceback__; raising what future.exception() gives prints it",
    "retry": "cluster.options(retries=2).submit(f, x)",
}
MAPPED = {
    "result": "list(mapped), or mapped[3] for one item",
    "results": "list(mapped)",
    "get": "list(mapped), or mapped[3] for one item",
    "add_done_callback": "daws.as_completed(mapped) gives the items in the order in which they end",
    "gather": "list(mapped), or daws.gather(mapped, timeout=60)",
    "wait": "daws.wait(mapped, timeout=60)",
    "compute": "list(mapped)",
    "exception": "daws.gather(mapped, errors='return') has exceptions in the place of results",
}
COMPLETED = {
    "returncode": "completed.code",
    "exit_code": "completed.code",
    "output": "completed.text, or completed.stdout for bytes",
    "args": "completed.command",
    "check_returncode": "an exit code other than 0 raises CommandError already, unless check=False",
}
TASK = {
    "remote": CALL,
    "delay": CALL,
    "submit": CALL,
    "apply_async": CALL,
    "bind": CALL,
    "map": "cluster.map(square, items)",
}

WORKERS = ("n_workers", "max_workers", "n_jobs", "num_workers", "nworkers", "num_cpus", "ncpus", "processes", "nprocs")
"""What others call the number of workers."""
KINDS = ("processes", "process", "threads", "thread", "use_threads", "threading", "multiprocessing")
"""What others call `kind`, as True or False."""
CLUSTER_OPTIONS = {
    "threads_per_worker": "a worker runs one task at a time; a task that uses threads says so: options(cores=4)",
    "memory_limit": "memory_bytes='4 GB' is how much memory all objects may take before they are spilled to disk",
    "object_store_memory": "memory_bytes='4 GB'",
    "gpus": "devices={'gpu': 2}, and options(context='gpu') for tasks that need one",
    "num_gpus": "devices={'gpu': 2}, and options(context='gpu') for tasks that need one",
    "address": "daws.connect(folder) uses nodes that run already",
    "initializer": "setup=… is called in each worker first",
    "initargs": "setup=functools.partial(function, *args)",
    "backend": "kind='processes' or kind='threads'",
    "prefer": "kind='processes' or kind='threads'",
    "mp_context": "workers are forked from a small server process of daws; leave it out",
    "maxtasksperchild": "workers stay; a task that leaks can run in a command (cluster.run)",
    "max_tasks_per_child": "workers stay; a task that leaks can run in a command (cluster.run)",
    "dashboard_address": "there is no dashboard: trace='run.json' writes when and where tasks ran",
    "verbose": "daws.progress(futures) shows a bar",
    "local_directory": "set TMPDIR",
    "timeout": OPTIONS,
    "retries": OPTIONS,
}
MAP_OPTIONS = {
    "batch_size": "chunk=…",
    "chunk_size": "chunk=…",
    "timeout": "daws.gather(cluster.map(…), timeout=60), or cluster.options(timeout=60).map(…) for each task",
    "callback": "for future in daws.as_completed(cluster.map(…)): …",
    "memo": "cluster.options(memo=True).map(…)",
    "buffersize": "map reads all items at once; give it parts (itertools.batched or islice)",
}
RUN_OPTIONS = {
    "shell": "a text is a shell line already; a list of words runs without a shell",
    "capture_output": "the output is kept: result().stdout has its bytes, result().text its text",
    "text": "result().text is the output as text",
    "universal_newlines": "result().text is the output as text",
    "encoding": "result().stdout.decode(…)",
    "errors": "result().stdout.decode(errors=…)",
    "input": "stdin='…' is text or bytes for the program",
    "args": "give the program and its arguments as one list",
    "executable": "give the program as the first word of the list",
    "directory": "cwd='…'",
    "workdir": "cwd='…'",
    "quiet": "show=False",
    "verbose": "show=True",
}
GATHER_OPTIONS = {
    "return_exceptions": "errors='return'",
    "on_error": "errors='return', or errors='skip'",
    "return_when": "daws.wait(futures, return_when='first')",
}
CLOSE_OPTIONS = {
    "wait": "close() waits for all tasks, close(cancel=True) cancels them",
    "cancel_futures": "close(cancel=True)",
    "force": "close(cancel=True)",
    "timeout": "daws.wait(futures, timeout=60) first, then close(cancel=True)",
}
GPUS = ("gpus", "gpu", "num_gpus", "n_gpus")
"""What others call a task's need of a device."""
TASK_OPTIONS = {
    "max_retries": "retries",
    "retry": "retries",
    "num_retries": "retries",
    "retry_exceptions": "retries",
    "num_cpus": "cores",
    "cpus": "cores",
    "threads": "cores",
    "ncores": "cores",
    "n_cores": "cores",
    "num_returns": "outputs",
    "nout": "outputs",
    **dict.fromkeys(GPUS, "context"),
    "resources": "context",
    "labels": "context",
    "workers": "context",
    "mem": "memory",
    "memory_bytes": "memory",
    "memory_limit": "memory",
    "time_limit": "timeout",
    "walltime": "timeout",
    "cache": "memo",
    "pure": "memo",
    "memoize": "memo",
    "estimate": "expected",
    "key": "",
    "name": "",
}
"""Names of options elsewhere, and which one is closest here ("" for none)."""


class Hint:
    """In the place of an attribute that others have: whoever asks for it is told what to write instead."""

    def __init__(self, cure: str) -> None:
        self._cure = cure

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._owner = owner.__name__

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{self._owner} has no {self._name!r}: {self._cure}")


def answer_to(owner: type, table: Mapping[str, str]) -> None:
    """Have a class answer to names of others. Costs nothing for the names that it has."""
    for name, cure in table.items():
        assert name not in owner.__dict__, name
        hint = Hint(cure)
        hint.__set_name__(owner, name)
        setattr(owner, name, hint)
    if "__dir__" not in owner.__dict__:
        setattr(owner, "__dir__", names_of)  # noqa: B010 (mypy knows no better)


def names_of(instance: object) -> list[str]:
    """What `dir` lists: without the names that are only answered."""
    kind = type(instance)
    hinted = {name for one in kind.__mro__ for name, value in vars(one).items() if isinstance(value, Hint)}
    return sorted(set(object.__dir__(instance)) - hinted)


def refuse_as_value(owner: type) -> None:
    """Have futures say what they are where people compute with them as if they were results. `bool` stays as it is."""
    for name in (
        "__getitem__",
        *[f"__{side}{what}__" for what in ("add", "sub", "mul", "truediv") for side in ("", "r")],
    ):
        setattr(owner, name, _no_value)


def _no_value(self: object, other: object) -> NoReturn:
    raise TypeError(f"{self!r} is a future: ask for its result(), or pass it to another task")


def closest(name: str, known: Iterable[str]) -> str:
    """Of the names that there are, the one that was meant, perhaps; "" if none is near."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), 1)), "")


def workers_of(given: Mapping[str, Any], workers: int | None, known: Iterable[str]) -> int | None:
    """The number of workers, under whichever of its names; UsageError for what is no option of a cluster."""
    for name, value in given.items():
        if name in KINDS and (name not in WORKERS or isinstance(value, bool)):
            raise UsageError(f"daws.Cluster has no option {name!r}: {_kind_of(name, value)}")
        if name not in WORKERS or isinstance(value, bool):
            number = dict.fromkeys(WORKERS, "workers=4 is the number of workers")
            _refuse("daws.Cluster", name, {**number, **CLUSTER_OPTIONS}, known)
        if workers is not None:
            raise UsageError(f"{name}={value!r}: the number of workers is given twice, also by workers={workers!r}")
        workers = None if value == -1 else value  # as joblib has it: all processors
    return workers


def _kind_of(name: str, value: Any) -> str:
    """What to write in the place of `processes=False` and the like."""
    is_threads = ("thread" in name) == bool(value)
    kind = "kind='threads'" if is_threads else "kind='processes' (which is so if you say nothing)"
    return kind if isinstance(value, bool) or not is_threads else f"workers={value!r:.40}, {kind}"


def chunk_of(given: Mapping[str, Any], chunk: int | None, options: Iterable[str]) -> int | None:
    """The number of items per task, under either of its names; UsageError for what is no option of `map`."""
    for name, value in given.items():
        if name in MAP_OPTIONS or name == "chunksize":
            pass
        elif name in options or name in TASK_OPTIONS:
            raise UsageError(f"map: {name}= is an option of tasks: cluster.options({_said(name, value)}).map(…)")
        elif not closest(name, [*MAP_OPTIONS, "chunk", "chunksize"]):
            raise UsageError(f"map: {name}= is no option; to give it to the function: functools.partial(f, {name}=…)")
        if name != "chunksize":
            _refuse("map", name, MAP_OPTIONS, ["chunk", "chunksize"])
        if chunk is not None:
            raise UsageError("map: chunk= and chunksize= are the same; give one of them")
        chunk = value
    return chunk


def refuse_option(name: str, known: Iterable[str]) -> NoReturn:
    """There is no such option of tasks."""
    if name in GPUS:
        raise UsageError(
            f"there is no option {name!r} of tasks; context='gpu', and daws.Cluster(devices={{'gpu': 1}}) has one"
        )
    cure = TASK_OPTIONS.get(name, "") or closest(name, known)
    meant = f"did you mean {cure}=?" if cure else f"there are {', '.join(known)}"
    raise UsageError(f"there is no option {name!r} of tasks; {meant}")


def cure_of_needs(needs: "Needs", most: int) -> str:
    """What to write when no worker of a `daws.Cluster` can run a task with these needs; `most` is for cores."""
    from daws.model.context import Label

    if needs.context is None:
        return f"ask for at most {most}, or make daws.Cluster(workers={needs.cores})"
    if isinstance(needs.context, Label):
        return f"daws.Cluster(devices={{{needs.context.name!r}: 1}}) has one"
    return "daws.Cluster(devices={…}) gives workers a context"


def check_arguments(function: Any, kwargs: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse options of tasks among the arguments of a function that has no such parameter."""
    import inspect  # dear, and nearly nobody comes here

    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return  # nobody knows
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    wrong = [name for name in kwargs if name not in parameters and (name in known or name in TASK_OPTIONS)]
    if wrong:
        name = getattr(function, "__name__", repr(function))
        named = ", ".join([_said(one, kwargs[one]) for one in wrong if TASK_OPTIONS.get(one, one)])
        if not named:
            raise UsageError(f"{name}() takes no argument {wrong[0]!r}, and tasks have no such option: leave it out")
        raise UsageError(f"{name}() takes no argument {wrong[0]!r}; as an option: cluster.options({named}).submit(…)")


def refuse_executor_option(name: str) -> NoReturn:
    """There is no such option of `daws.futures.Executor`."""
    known = ("max_workers", "initializer", "initargs", "cluster")
    cures = {**CLUSTER_OPTIONS, **dict.fromkeys(WORKERS, "max_workers=…")}
    cures.pop("initializer"), cures.pop("initargs")
    _refuse("daws.futures.Executor", name, cures, known)


def refuse_run_option(name: str, known: Iterable[str]) -> NoReturn:
    """There is no such option of commands."""
    known = list(dict.fromkeys(known))
    others = {one: f"did you mean {meant}=?" for one, meant in TASK_OPTIONS.items() if meant in known}
    _refuse("run", name, {**others, **RUN_OPTIONS}, known)


def refuse_gathering(more: tuple[Any, ...], others: Mapping[str, Any]) -> NoReturn:
    """`gather` was given several futures, or an option that it does not have."""
    if others:
        _refuse("gather", next(iter(others)), GATHER_OPTIONS, ("errors", "timeout", "progress"))
    raise UsageError("gather: give one list of futures: gather([a, b])")


def refuse_close_option(name: str) -> NoReturn:
    """There is no such option of `close`."""
    _refuse("close", name, CLOSE_OPTIONS, ("cancel",))


def check_callable(function: Any) -> None:
    """Refuse what a function has returned in the place of the function."""
    if not callable(function):
        raise UsageError(
            f"the function: {function!r:.100} cannot be called; give the function and its arguments apart: "
            "submit(f, x), not submit(f(x))"
        )


def answer_of_package(name: str, known: Iterable[str]) -> str:
    """Why the package has no such name, and what to write instead."""
    cure = PACKAGE.get(name, "")
    if not cure:
        near = closest(name, known)
        cure = f"did you mean daws.{near}?" if near else ""
    return f"module 'daws' has no attribute {name!r}{': ' if cure else ''}{cure}"


def _said(name: str, value: Any) -> str:
    if name in GPUS:
        return "context='gpu'"
    return f"{TASK_OPTIONS.get(name, '') or name}={value!r:.40}"


def _refuse(whose: str, name: str, cures: Mapping[str, str], known: Iterable[str]) -> NoReturn:
    cure = cures.get(name, "")
    if not cure:
        near = closest(name, [*known, *cures])
        cure = cures.get(near, f"did you mean {near}=?") if near else f"there are {', '.join(known)}"
    raise UsageError(f"{whose} has no option {name!r}: {cure}")
