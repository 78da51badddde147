"""Options of tasks: said by `cluster.options(…)`, by tasks, or by names that other libraries have for them."""

import asyncio
import concurrent.futures
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import daws
from daws.client.cluster import Cluster
from daws.client.hints import PACKAGE, TABLES, TASK_OPTIONS
from daws.client.options import NAMES

any_cluster: Any = Cluster
any_connect: Any = daws.connect
FORMS: dict[str, dict[str, Any]] = {"thread": {}, "threads": {"kind": "threads"}, "nodes": {"nodes": 2}}


@pytest.fixture(scope="module", params=FORMS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(2, **FORMS[request.param]) as one:
        yield one


def add(x: int, y: int = 1) -> int:
    return x + y


def fails_once(folder: str, number: int) -> int:
    path = os.path.join(folder, str(number))
    if not os.path.exists(path):
        open(path, "w").close()
        raise ValueError("the first time")
    return number


@daws.task(retries=1)
def tried_twice(folder: str, number: int) -> int:
    return fails_once(folder, number)


def uses_options(folder: str) -> tuple[Any, ...]:
    here = daws.current()
    first = here.options(retries=1).submit(fails_once, folder, 50)
    low, high = here.options(outputs=2).submit(divmod, 17, 5)
    mapped = here.options(retries=1).map(fails_once, [folder] * 3, [51, 52, 53])
    return first.result(), low.result(), high.result(), list(mapped), here.submit(tried_twice, folder, 54).result()


def test_options_before_submit_and_map(cluster: Cluster, tmp_path: Path):
    folder = str(tmp_path)
    assert cluster.options(retries=1).submit(fails_once, folder, 1).result() == 1
    with pytest.raises(ValueError):
        cluster.submit(fails_once, folder, 2).result()
    many = cluster.options(retries=1).map(fails_once, [folder] * 20, range(10, 30), chunk=7)
    assert list(many) == [*range(10, 30)]
    one, other = cluster.options(outputs=2, priority=3).submit(divmod, 17, 5)
    assert (one.result(), other.result()) == (3, 2)
    chained = cluster.options(retries=5).options(timeout=60)
    assert chained.submit(add, 1, y=2).result() == 3
    assert "retries=5, timeout=60" in repr(chained)


def test_options_inside_of_tasks(cluster: Cluster, tmp_path: Path):
    assert cluster.submit(uses_options, str(tmp_path)).result() == (50, 3, 2, [51, 52, 53], 54)


def test_options_before_run(cluster: Cluster, tmp_path: Path):
    line = f"test -e {tmp_path}/x || {{ touch {tmp_path}/x; exit 1; }}"
    assert cluster.options(retries=1).run(line).result().code == 0
    os.unlink(tmp_path / "x")
    command = daws.command(line, priority=2)
    assert cluster.options(retries=1).run(command).result().code == 0
    with pytest.raises(daws.CommandError, match=r"0\.2"):
        cluster.options(timeout=0.2).run(daws.command(["sleep", "100"])).result()
    with pytest.raises(daws.UsageError, match="outputs of a command"):
        cluster.options(outputs=2).run("true")


def test_a_time_limit_of_map_is_for_each_item():
    with Cluster(1) as cluster:
        limited = cluster.options(timeout=0.3, retries=0).map(time.sleep, [0, 100, 0])
        found = cluster.gather(limited, errors="return")
    assert found[0] is found[2] is None and isinstance(found[1], daws.TaskKilledError)


def test_submit_and_map_take_tasks(cluster: Cluster, tmp_path: Path):
    assert cluster.submit(tried_twice, str(tmp_path), 1).result() == 1
    assert list(cluster.map(tried_twice, [str(tmp_path)] * 3, [2, 3, 4])) == [2, 3, 4]
    with pytest.raises(ValueError):
        cluster.options(retries=0).submit(tried_twice, str(tmp_path), 5).result()
    both = daws.task(outputs=2)(divmod)
    assert [one.result() for one in cluster.submit(both, 7, 2)] == [3, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name, value", [("n_workers", 2), ("max_workers", 2), ("n_jobs", 2), ("processes", 2)])
def test_the_number_of_workers_under_other_names(name: str, value: int):
    with any_cluster(**{name: value}, kind="threads") as cluster:
        assert cluster.workers == 2


@pytest.mark.parametrize(
    "given",
    [{"threads_per_worker": 1}, {"processes": True}, {"backend": "loky", "verbose": 0}, {"memory_limit": "auto"}],
)
def test_options_that_ask_for_what_is_so_anyway(given: dict[str, Any]):
    with any_cluster(2, kind="threads", **given) as cluster:
        assert cluster.workers == 2


def test_negative_numbers_of_workers_count_from_the_processors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("daws.client.starting.default_workers", lambda nodes: 3)
    for given, workers in ((-1, 3), (-2, 2), (-9, 1)):
        with any_cluster(n_jobs=given, kind="threads") as cluster:
            assert cluster.workers == workers


def test_chunksize_is_understood(cluster: Cluster):
    mapped = cluster.map(add, range(10), chunksize=5)
    assert len(mapped._futures) == 2 and list(mapped) == [*range(1, 11)]


@pytest.mark.parametrize(
    "call, cure",
    [
        (lambda c: c.submit(add, 1, retries=2), "cluster.options(retries=2).submit(…)"),
        (lambda c: c.submit(add, 1, max_retries=2), "cluster.options(retries=2).submit(…)"),
        (lambda c: c.options(priority=1).submit(add, 1, timeout=2), "cluster.options(timeout=2).submit(…)"),
        (lambda c: c.submit(add, 1, key="a"), "leave it out"),
        (lambda c: c.submit(time.sleep, 0.1).result(timeout="5s"), "give a number of seconds"),
        (lambda c: c.submit(add(1)), "submit(f, x), not submit(f(x))"),
        (lambda c: c.options(retries=1).submit(add(1)), "submit(f, x), not submit(f(x))"),
        (lambda c: c.map(add), "cluster.map(add, items)"),
        (lambda c: c.map(add, 5), "cannot be iterated over"),
        (lambda c: c.map([1, 2], add), "give the function first"),
        (lambda c: c.map(add, [1], retries=2), "cluster.options(retries=2).map(…)"),
        (lambda c: c.map(add, [1], y=2), "functools.partial(f, y=…)"),
        (lambda c: c.map(add, [1], chunksizes=2), "did you mean chunksize=?"),
        (lambda c: c.map(add, [1], chunk_size=2), "chunk=…"),
        (lambda c: c.map(add, [1], timeout=2), "daws.gather(cluster.map(…), timeout=60)"),
        (lambda c: c.map(add, [1], chunk=2, chunksize=3), "give one of them"),
        (lambda c: c.options(outputs=2).map(add, [1]), "outputs= is for submit"),
        (lambda c: c.options(max_retries=2), "did you mean retries=?"),
        (lambda c: c.options(num_cpus=2), "did you mean cores=?"),
        (lambda c: c.options(num_returns=2), "did you mean outputs=?"),
        (lambda c: c.options(timout=2), "did you mean timeout=?"),
        (lambda c: c.options(colour=2), "there are outputs, context, cores"),
        (lambda c: any_cluster(memory_limit="2GB"), "memory_bytes="),
        (lambda c: any_cluster(threads_per_worker=2), "cores=4"),
        (lambda c: any_cluster(worker=2), "did you mean workers=?"),
        (lambda c: any_cluster(2, str), "setup="),
        (lambda c: any_cluster("tcp://h:8786"), "daws.connect(folder)"),
        (lambda c: any_cluster(c), "its own client"),
        (lambda c: any_cluster(2, n_workers=2), "given twice"),
        (lambda c: any_cluster(memory_bytes="much"), "such as '4 GB'"),
        (lambda c: c.options(memory="4 XB"), "such as '4 GB'"),
        (lambda c: any_cluster(processes=False), ": kind='threads'"),
        (lambda c: any_cluster(backend="threading"), "kind='threads'"),
        (lambda c: c.put(1, broadcast=True), "leave it out"),
        (lambda c: c.cancel([], force=True), "leave it out"),
        (lambda c: c.map(add, [1], key="a"), "leave it out"),
        (lambda c: c.submit(add, 1, resources={"ssd": 1}), "cluster.options(context='ssd').submit(…)"),
        (lambda c: c.submit(add, 1, actor=True), "there are no actors"),
        (lambda c: daws.wait([], num_returns=1), "return_when='first'"),
        (lambda c: cast(Any, daws.as_completed)([], with_results=True), "future.result()"),
        (lambda c: cast(Any, daws.progress)([], notebook=False), "leave it out"),
        (lambda c: cast(Any, daws.progress)(c.submit(add, 1), c.submit(add, 1)), "progress([a, b])"),
        (lambda c: any_cluster(threads=True), ": kind='threads'"),
        (lambda c: any_cluster(threads=4), ": workers=4, kind='threads'"),
        (lambda c: any_cluster(n_jobs=True), ": workers=4 is the number of workers"),
        (lambda c: any_cluster(colour=1), "timeline, explain, memo, tune"),
        (lambda c: c.run("echo a", shell=True), "a text is a shell line already"),
        (lambda c: c.run("echo a", capture_output=True), "result().stdout"),
        (lambda c: c.run("echo a", input="abc"), "stdin='…'"),
        (lambda c: c.run("echo a", text=True), "result().text"),
        (lambda c: c.run("echo a", stdout=-1), "or leave it out"),
        (lambda c: c.run("echo a", max_retries=2), "did you mean retries=?"),
        (lambda c: c.run("echo a", colour=1), "inputs, outputs, stdin, stdout, stderr, env, cwd, timeout, check, show"),
        (lambda c: daws.command("echo a", shell=True), "a text is a shell line already"),
        (lambda c: c.gather(c.submit(add, 1), c.submit(add, 2)), "gather([a, b])"),
        (lambda c: daws.gather(*[c.submit(add, 1)] * 7), "gather([a, b])"),
        (lambda c: c.gather([], return_exceptions=True), "errors='return'"),
        (lambda c: daws.gather([], colour=1), "there are errors, timeout, progress"),
        (lambda c: c.close(wait=False), "close(cancel=True)"),
        (lambda c: c.map(pow, [1], 2), "itertools.repeat(2), or functools.partial"),
        (lambda c: c.options(gpus=1), "context='gpu', and daws.Cluster(devices={'gpu': 1})"),
        (lambda c: c.submit(add, 1, gpu=1), "cluster.options(context='gpu').submit(…)"),
        (lambda c: c.options(cores=100).submit(add, 1), "ask for at most 2, or make daws.Cluster(workers=100)"),
        (lambda c: c.options(context="gpu").submit(add, 1), "daws.Cluster(devices={'gpu': 1}) has one"),
        (lambda c: daws.wait([], return_when="X"), "FIRST_COMPLETED"),
        (lambda c: daws.wait(cast(Any, 5)), "give what submit, map or run returned"),
        (lambda c: daws.progress(cast(Any, 5)), "give what submit, map or run returned"),
        (lambda c: c.map(add, c.submit(add, 1)), "cannot be iterated over"),
        (lambda c: c.gather([tried_twice]), "is a task; call it"),
        (lambda c: c.gather([concurrent.futures.Future()] * 20), "is a future of concurrent.futures"),
        (lambda c: daws.wait([cast(Any, concurrent.futures.Future())]), "is a future of concurrent.futures"),
        (lambda c: c.submit(time.sleep, 0).add_done_callback(cast(Any, asyncio.wait)), "await the future itself"),
        (lambda c: daws.use(cast(Any, 3)), "give a cluster"),
        (lambda c: daws.Out(cast(Any, 3)), "give a file name"),
        (lambda c: any_cluster(memo=True), "name a folder for the results"),
        (lambda c: daws.connect("tcp://h:8786"), "give the folder that 'daws cluster init' made"),
        (lambda c: daws.connect("h:8786"), "give the folder that 'daws cluster init' made"),
        (lambda c: daws.connect(cast(Any, None)), "give the folder that 'daws cluster init' made"),
        (lambda c: any_connect("lab", sesion="a"), "daws.connect has no option 'sesion': did you mean session=?"),
        (lambda c: any_connect("lab", workers=2), "'workers': workers are chosen by 'daws node --executors'"),
        (lambda c: any_connect("lab", nodes=2), "'nodes': workers are chosen by 'daws node --executors'"),
        (lambda c: any_connect("lab", n_jobs=2), "workers are chosen by 'daws node --executors'"),
        (lambda c: any_connect("lab", strategy="mlb"), "cluster.use_strategy("),
        (lambda c: any_connect("lab", dashboard_address=":1"), "there is no dashboard"),
        (lambda c: any_connect("lab", colour=1), "there are session, keep, memory_bytes"),
        (lambda c: any_connect(), "connect(): give the folder that 'daws cluster init' made, or set DAWS_CLUSTER"),
        (lambda c: daws.simulate("bag:tasks=2", node=2), "did you mean nodes=?"),
        (lambda c: daws.bound("bag:tasks=2", strategy=2), "there are latency_us"),
        (lambda c: daws.Graph().task("a", second=1), "did you mean seconds=?"),
        (lambda c: daws.Graph().task("a", deps=[]), "did you mean after=?"),
        (lambda c: daws.Graph().task("a", colour=1), "there are seconds, inputs"),
    ],
)
def test_mistakes_are_answered_in_one_line(cluster: Cluster, call: Any, cure: str):
    with pytest.raises((daws.UsageError, daws.ContextError)) as raised:
        call(cluster)
    assert cure in str(raised.value) and "\n" not in str(raised.value)


def test_the_folder_of_connect_may_be_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "cluster.toml").write_text("name = 'x'")
    with pytest.raises(daws.ClusterError, match=r"^\./lab/cluster\.toml is a file; give the folder: '\./lab'$"):
        daws.connect("./lab/cluster.toml")
    monkeypatch.setenv("DAWS_CLUSTER", "elsewhere")
    with pytest.raises(daws.ClusterError, match=r"^elsewhere: there is no cluster\.toml"):
        daws.connect()


def test_sizes_may_be_text():
    with Cluster(1, kind="threads", memory_bytes="1.5 GiB") as cluster:
        assert cluster._open().files.limit_bytes == 3 << 29
        needs = [cluster.options(memory=size)._checked.needs for size in ("4 GB", "4gb", 4_000_000_000)]
        assert len(set(needs)) == 1
        assert cluster.options(memory="1 kB").submit(add, 1).result() == 2


def test_arguments_with_names_of_options_reach_functions_that_want_them(cluster: Cluster):
    def wants(retries: int, **others: int) -> int:
        return retries + sum(others.values())

    assert cluster.submit(wants, retries=2, timeout=3).result() == 5
    assert cluster.submit(partial(wants, timeout=3), retries=2).result() == 5
    assert cluster.submit(dict, key=1, name=2).result() == {"key": 1, "name": 2}


@pytest.mark.parametrize(
    "compute",
    [lambda f: f + 1, lambda f: 1 + f, lambda f: sum([f]), lambda f: f * 2, lambda f: f[0], lambda f: list(f)],
)
def test_computing_with_a_future_says_what_it_is(cluster: Cluster, compute: Any):
    future: Any = cluster.submit(add, 1)
    item = next(daws.as_completed(cluster.map(add, [1])))
    for one in (future, item):
        with pytest.raises(TypeError, match=r"is a future: ask for its result\(\)"):
            compute(one)
        assert one and one in [one]


def test_a_map_is_no_iterator_and_says_so(cluster: Cluster):
    mapped = cluster.map(add, [1, 2])
    with pytest.raises(TypeError, match=r"results = iter\(mapped\)"):
        next(mapped)
    assert list(mapped) == list(mapped) == daws.gather(mapped) == [2, 3] and len(mapped) == 2
    failing = cluster.map(partial(divmod, 1), [1, 0])
    assert [type(one) for one in daws.gather(failing, errors="return")] == [tuple, ZeroDivisionError]


def test_names_of_other_libraries_are_answered(cluster: Cluster):
    future, mapped = cluster.submit(add, 1), cluster.map(add, [1])
    for what, table in (
        (daws, PACKAGE),
        (cluster, TABLES["Cluster"]),
        (future, TABLES["Future"]),
        (mapped, TABLES["Mapped"]),
        (tried_twice, TABLES["Task"]),
        (cluster.run("true").result(), TABLES["Completed"]),
    ):
        for name, cure in table.items():
            with pytest.raises(AttributeError) as raised:
                getattr(what, name)
            assert cure in str(raised.value) and "\n" not in str(raised.value)
            assert not hasattr(what, name) and name not in dir(what)
    with pytest.raises(ImportError, match=r"daws\.Cluster\(\) starts workers here"):
        from daws import Client  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match=r"did you mean daws\.Cluster\?"):
        _ = daws.Clustr  # type: ignore[attr-defined]
    assert {cure for cure in TASK_OPTIONS.values() if cure} <= set(NAMES)
