import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from daws.wire.worker import RunOptions
from daws.workers.blas import OMP, THREAD_VARIABLES, LoadedLibraries
from daws.workers.signs import Signs
from daws.workers.surroundings import Surroundings


@pytest.fixture
def surroundings() -> Iterator[Surroundings]:
    before = dict(os.environ)
    for name in THREAD_VARIABLES:
        os.environ.pop(name, None)
    yield Surroundings(Signs())
    os.environ.clear()
    os.environ.update(before)


def test_one_core_unless_said_otherwise(surroundings: Surroundings):
    assert [os.environ[name] for name in THREAD_VARIABLES] == ["1"] * len(THREAD_VARIABLES)


def test_what_one_run_asks_for_is_taken_back(surroundings: Surroundings):
    os.environ["DAWS_TEST_OLD"] = "old"
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    wanted = (("DAWS_TEST_OLD", "new"), ("DAWS_TEST_NEW", "new"), ("OMP_NUM_THREADS", "7"))
    surroundings.change(RunOptions(cores=2, devices=(), environment=wanted))
    assert [os.environ[name] for name, _ in wanted] == ["new", "new", "7"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert os.environ["MKL_NUM_THREADS"] == "2"
    surroundings.change(None)
    assert not surroundings.is_changed
    assert os.environ["DAWS_TEST_OLD"] == "old"
    assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert not {"DAWS_TEST_NEW", "CUDA_VISIBLE_DEVICES"} & os.environ.keys()


def changed(cores: int, **theirs: str) -> dict[str, str]:
    """The thread variables of a run, if the user has set some."""
    before = dict(os.environ)
    try:
        for name in THREAD_VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(theirs)
        Surroundings(Signs()).change(RunOptions(cores=cores))
        return {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_variables_of_the_user_stay():
    assert changed(3) == dict.fromkeys(THREAD_VARIABLES, "3")
    assert changed(3, MKL_NUM_THREADS="7") == {**dict.fromkeys(THREAD_VARIABLES, "3"), "MKL_NUM_THREADS": "7"}
    found = changed(3, OMP_NUM_THREADS="7")
    assert found[OMP] == "7" and found["RAYON_NUM_THREADS"] == "3"
    assert "OPENBLAS_NUM_THREADS" not in found, "it would go before OMP_NUM_THREADS"


BLAS = """
import os
import daws

@daws.task
def threads():
    import numpy, threadpoolctl
    return {one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"}

@daws.task
def environment():
    return os.environ["OMP_NUM_THREADS"]

@daws.task
def parent():
    import numpy, threadpoolctl
    threads.options(cores=2)().result()
    return {one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"}

with daws.Cluster(2) as cluster:
    print(*[threads.options(cores=cores)().result() for cores in (1, 2, 1, 2)], threads().result())
    print(environment.options(cores=2)().result(), parent().result())
    for environment in ({}, {"OMP_NUM_THREADS": "5"}):
        cluster.run("echo $OMP_NUM_THREADS", cores=2, env=environment).result()
"""


def said(**theirs: str) -> list[str]:
    mine = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    command = [sys.executable, "-c", BLAS]
    run = subprocess.run(command, env={**mine, **theirs}, capture_output=True, text=True, timeout=60, check=True)
    return run.stdout.splitlines()


def test_libraries_that_are_loaded_follow_the_cores_of_each_task():
    assert said() == ["{1} {2} {1} {2} {1}", "2 {1}", "2", "5"]


def test_libraries_go_by_what_the_user_has_set():
    assert said(OMP_NUM_THREADS="2") == ["{2} {2} {2} {2} {2}", "2 {2}", "2", "5"]
    assert said(OPENBLAS_NUM_THREADS="2")[0] == "{2} {2} {2} {2} {2}"


def test_without_threadpoolctl_a_library_keeps_its_threads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    LoadedLibraries().use(2, THREAD_VARIABLES)
