"""Answers to names that people know from other libraries: what to write here instead.

The tables are in `hints.txt`. They answer to attributes of the classes that users hold, to options of methods, and to
names of the package.
"""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from daws.model.errors import UsageError

if TYPE_CHECKING:
    from daws.model.task import Needs


def _read() -> dict[str, dict[str, str]]:
    """The tables by title; each has an answer for each name."""
    with open(os.path.join(os.path.dirname(__file__), "hints.txt"), "rb") as file:
        text = file.read().decode()
    tables: dict[str, dict[str, str]] = {}
    for part in text.split("\n[")[1:]:
        title, _, lines = part.partition("]\n")
        table = tables[title] = {}
        for line in lines.split("\n"):
            names, _, cure = line.partition(": ")
            for name in names.split():
                table[name] = cure
    return tables


TABLES = _read()
PACKAGE, MODULES = TABLES["daws"], TABLES["modules"]  # each of the modules has a file in `_others`
CLUSTER_OPTIONS, MAP_OPTIONS = TABLES["daws.Cluster(…)"], TABLES["map"]
LEFT_OUT = TABLES["options that tasks do not have"]
TASK_OPTIONS = {**TABLES["options of tasks"], **dict.fromkeys(LEFT_OUT, "")}
"""Names of options elsewhere, and which one is closest here ("" for none)."""
NO_ACTORS = PACKAGE["Actor"]
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
GPUS = ("gpus", "gpu", "num_gpus", "n_gpus")
"""Names of other libraries for a task's need of a device."""
WORKERS = ("n_workers", "max_workers", "n_jobs", "num_workers", "nworkers", "num_cpus", "ncpus", "processes", "nprocs")
"""Names of other libraries for the number of workers."""
KINDS = ("processes", "process", "threads", "thread", "use_threads", "threading", "multiprocessing")
"""Names of other libraries for `kind`, as True or False."""
CHANGES_NOTHING: dict[str, tuple[Any, ...]] = {
    "threads_per_worker": (1, None),
    "processes": (True,),
    "backend": ("loky", "multiprocessing", "processes", None),
    "prefer": ("processes", None),
    "require": (None,),
    "verbose": (False, None),
    "asynchronous": (False,),
    "dashboard_address": (None,),
    "include_dashboard": (False, None),
    "silence_logs": (True, False, None, 10, 20, 30, 40, 50),
    "memory_limit": ("auto", None),
    "set_as_default": (True,),
    "ignore_reinit_error": (True, False),
    "log_to_driver": (True,),
    "return_as": ("list",),
    "address": (None,),
}
"""Options of clusters elsewhere, with the values that ask for what is so anyway. (1 is True, and 0 is False.)"""


class Hint:
    """An attribute that other libraries have: reading it raises an error that says what to write instead."""

    def __init__(self, owner: type, name: str, cure: str) -> None:
        self._owner = owner.__name__
        self._name = name
        self._cure = cure

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{self._owner} has no {self._name!r}: {self._cure}")


def answer_to(owner: type, title: str = "") -> None:
    """Have a class answer to the names of a table, which has the name of the class unless another `title` is given.

    Names that the class has cost nothing. `dir` does not list the others.
    """
    for name, cure in TABLES[title or owner.__name__].items():
        assert name not in owner.__dict__, name
        setattr(owner, name, Hint(owner, name, cure))
    setattr(owner, "__dir__", _names_of)  # noqa: B010 (mypy knows no better)


def _names_of(instance: object) -> list[str]:
    """The names that `dir` lists, without those that are only answered."""
    kind = type(instance)
    hinted = {name for one in kind.__mro__ for name, value in vars(one).items() if isinstance(value, Hint)}
    return sorted(set(object.__dir__(instance)) - hinted)


def refuse_as_value(owner: type) -> None:
    """Have futures say what they are where people compute with them as if they were results. `bool` stays as it is."""
    names = ("getitem", "lt", "le", "gt", "ge", "neg", "abs", "float", "int", "index", "len")
    _refuse_operators(owner, names, "is a future: ask for its result(), or pass it to another task")
    setattr(owner, "__bool__", lambda self: True)  # noqa: B010 (or else `len` would be asked)


def refuse_as_list(owner: type) -> None:
    """Have what `map` gives say how to get a list where people compute with it as if it were one."""
    _refuse_operators(owner, ("setitem",), "is no list: results = list(mapped)")


def _refuse_operators(owner: type, names: Iterable[str], cure: str) -> None:
    def refuse(self: object, *others: object, **more: object) -> NoReturn:
        raise TypeError(f"{self!r} {cure}")

    for name in (*names, *OPERATORS, *[f"r{name}" for name in OPERATORS]):
        setattr(owner, f"__{name}__", refuse)


def note_cure(error: BaseException) -> str:
    """Put a note on an error that people make who know futures from elsewhere: the cure; "" if it is another error.

    These errors cannot be answered where they are raised: results are objects of any kind, and `__getattr__` would
    make every access to a future slower.
    """
    if not isinstance(error, (AttributeError, TypeError)) or getattr(error, "__notes__", None):
        return ""  # those of tasks have notes
    asked, whom, cure = getattr(error, "name", None), getattr(error, "obj", None), ""
    if "can't be used in 'await' expression" in str(error):
        cure = "gather, wait and close wait by themselves: leave out await; asyncio.gather(*futures) can be awaited"
    elif asked in ("result", "exception", "done", "status", "add_done_callback") and not hasattr(type(whom), "cancel"):
        cure = f"what map gives are results, not futures: leave out .{asked}, or [cluster.submit(f, x) for x in xs]"
    elif hasattr(type(whom), "_is_inner") and not any(
        isinstance(vars(one).get(str(asked)), Hint) for one in type(whom).__mro__
    ):
        cure = f"a future is not yet its result: future.result().{asked}; {NO_ACTORS}"
    if cure:
        error.add_note(cure)
    return cure


def closest(name: str, known: Iterable[str], at_least: float = 0.6) -> str:
    """The known name that was meant, perhaps; "" if none is near."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), 1, at_least)), "")


def workers_of(given: Mapping[str, Any], workers: int | None, known: Iterable[str]) -> int | None:
    """The number of workers, under whichever of its names; UsageError for what is no option of a cluster."""
    for name, value in given.items():
        if _is_so_anyway(name, value):
            continue
        if name in KINDS and (name not in WORKERS or isinstance(value, bool)):
            raise UsageError(f"daws.Cluster has no option {name!r}: {_kind_of(name, value)}")
        if name not in WORKERS or isinstance(value, bool):
            number = dict.fromkeys(WORKERS, "workers=4 is the number of workers")
            _refuse("daws.Cluster", name, {**number, **CLUSTER_OPTIONS}, known)
        if workers is not None:
            raise UsageError(f"{name}={value!r}: the number of workers is given twice, also by workers={workers!r}")
        workers = _but_for(value) if isinstance(value, int) and value < 0 else value
    return workers


def refuse_connect_option(name: str, known: Iterable[str]) -> NoReturn:
    """There is no such option of `daws.connect`."""
    own = TABLES["daws.connect(…)"]
    cures = {**CLUSTER_OPTIONS, **dict.fromkeys(WORKERS, own["workers"]), **dict.fromkeys(KINDS, own["kind"]), **own}
    _refuse("daws.connect", name, cures, known)


def _is_so_anyway(name: str, value: Any) -> bool:
    if name == "processes" and not isinstance(value, bool):
        return False  # the number of workers
    return isinstance(value, (bool, int, str, type(None))) and value in CHANGES_NOTHING.get(name, ())


def _but_for(number: int) -> int:
    """The number of workers as joblib counts: -1 for as many as there are processors, -2 for one less."""
    from daws.client.starting import default_workers

    return max(1, default_workers(1) + 1 + number)


def check_workers(workers: object, more: tuple[Any, ...] = ()) -> None:
    """Refuse what others have as the first arguments of a client, a pool or an executor."""
    if isinstance(workers, str):
        raise UsageError(
            f"daws.Cluster({workers!r:.100}): {CLUSTER_OPTIONS['address']}; daws.Cluster(workers=4) is here"
        )
    if hasattr(workers, "submit"):
        raise UsageError(f"daws.Cluster({workers!r:.100}): {CLUSTER_OPTIONS['cluster']}")
    if more:
        cure = "setup=…, called in each worker first" if callable(more[0]) else "daws.Cluster(4, kind='threads')"
        raise UsageError(f"daws.Cluster takes the number of workers; all else by name: {cure}")


def _kind_of(name: str, value: Any) -> str:
    """The option to write in the place of `processes=False` and the like."""
    is_threads = ("thread" in name) == bool(value)
    kind = "kind='threads'" if is_threads else "kind='processes' (which is so if you say nothing)"
    return kind if isinstance(value, bool) or not is_threads else f"workers={value!r:.40}, {kind}"


def chunk_of(given: Mapping[str, Any], chunk: int | None, options: Iterable[str]) -> int | None:
    """The number of items per task, under either of its names; UsageError for what is no option of `map`."""
    for name, value in given.items():
        if name in MAP_OPTIONS or name == "chunksize":
            pass
        elif name in LEFT_OUT:
            raise UsageError(f"map has no option {name!r}: {LEFT_OUT[name]}")
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
    cure = TASK_OPTIONS.get(name, "") or (closest(name, known) if name not in LEFT_OUT else "")
    meant = f"did you mean {cure}=?" if cure else LEFT_OUT.get(name, "") or f"there are {', '.join(known)}"
    raise UsageError(f"there is no option {name!r} of tasks; {meant}")


def cure_of_needs(needs: "Needs", most: int) -> str:
    """The cure when no worker of a `daws.Cluster` can run a task with these needs; `most` is for cores."""
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
            cure = LEFT_OUT[wrong[0]]
            raise UsageError(f"{name}() takes no argument {wrong[0]!r}, and tasks have no such option: {cure}")
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
    _refuse("run", name, {**others, **TABLES["run"]}, known)


def check_value(what: Any, whose: str) -> None:
    """Refuse what looks like a future, and would be given back as if it were a result."""
    if getattr(type(what), "_is_task", False):
        raise UsageError(f"{whose}: {what!r} is a task; call it, and give its calls: {whose}([square(2)])")
    if hasattr(type(what), "set_running_or_notify_cancel"):
        raise UsageError(
            f"{whose}: {what!r:.100} is a future of concurrent.futures: daws.futures.wait and as_completed take it, "
            "and [future.result() for future in futures]"
        )


def refuse_waiting(whose: str, others: Mapping[str, Any], known: Iterable[str]) -> NoReturn:
    """`gather`, `wait`, `as_completed` or `progress` was given several futures, or an option that it does not have."""
    if others:
        _refuse(whose, next(iter(others)), TABLES.get(whose, TABLES["wait"]), known)
    raise UsageError(f"{whose}: give one list of futures: {whose}([a, b])")


def refuse_method_option(method: str, others: Mapping[str, Any], known: Iterable[str] = ()) -> NoReturn:
    """Refuse an option that a method does not have."""
    _refuse(method, next(iter(others)), TABLES[method], known)


def check_callable(function: Any) -> None:
    """Refuse what a function has returned in the place of the function."""
    if not callable(function):
        raise UsageError(
            f"the function: {function!r:.100} cannot be called; give the function and its arguments apart: "
            "submit(f, x), not submit(f(x))"
        )


def answer_of_module(module: str, name: str, known: Iterable[str]) -> str:
    """Why `daws` or `daws.futures` has no such name, and what to write instead."""
    cure = PACKAGE.get(name, "") or (MODULES.get(name, "") if module == "daws" else "")
    if not cure:
        near = closest(name, known)
        names = "dir(daws) lists all names" if module == "daws" else f"there are {', '.join(known)}"
        cure = f"did you mean {module}.{near}?" if near else names
    return f"module {module!r} has no attribute {name!r}: {cure}"


def refuse_module(name: str) -> NoReturn:
    """A module of another library was looked for in this package."""
    raise ModuleNotFoundError(f"there is no module {name!r}: {MODULES[name.removeprefix('daws.')]}", name=name)


def _said(name: str, value: Any) -> str:
    if name in GPUS:
        return "context='gpu'"
    if name == "resources" and isinstance(value, Mapping):
        return f"context={next(iter(value), 'gpu')!r:.40}"
    return f"{TASK_OPTIONS.get(name, '') or name}={value!r:.40}"


def _refuse(whose: str, name: str, cures: Mapping[str, str], known: Iterable[str]) -> NoReturn:
    cure = cures.get(name, "")
    if not cure:
        near = closest(name, known) or closest(name, cures, 0.8)
        rest = ", ".join(known)
        cure = f"there are {rest}" if rest else "leave it out"
        if near:
            cure = cures.get(near, f"did you mean {near}=?")
    raise UsageError(f"{whose} has no option {name!r}: {cure}")
