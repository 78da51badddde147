"""The names that users see: a new one has to be put down here, and internals begin with an underscore."""

import inspect
from pathlib import Path
from types import ModuleType

import pytest

import daws
from daws.client import cancelled
from daws.client.cluster import Cluster
from daws.client.commands import CommandFuture, FileFuture
from daws.client.connect import ConnectedCluster
from daws.client.hints import Hint
from daws.client.inside import InnerCluster, InnerFuture
from daws.client.mapping import ItemFuture, Mapped
from daws.client.memo import MemoFuture, MemoItems
from daws.client.signatures import SeveralSubmitter, Submitter
from daws.client.tasks import Task
from daws.client.waiting import AsCompleted
from daws.data.outside import Out
from daws.futures import Executor
from daws.model import errors
from daws.workers import errors as worker_errors

FUTURE = "add_done_callback cancel cancelled done exception explain memo object result running state task"
CLUSTER = "cancel close counters drain end gather map memo nodes options put run sessions submit use_strategy"
NAMES: dict[type, str] = {
    Cluster: CLUSTER,
    ConnectedCluster: f"{CLUSTER} detach futures session",
    InnerCluster: CLUSTER.replace("memo ", "workers "),
    Submitter: "map options run submit",
    SeveralSubmitter: "map options run submit",
    daws.Future: FUTURE,
    InnerFuture: FUTURE,
    MemoFuture: FUTURE,
    MemoItems: FUTURE,
    CommandFuture: f"{FUTURE} outputs",
    FileFuture: f"{FUTURE} name",
    ItemFuture: "add_done_callback cancel cancelled done exception item result running state task",
    Mapped: "cancel count done index",
    Task: "options",
    AsCompleted: "",
    Executor: "kill_workers map shutdown submit terminate_workers",
    Out: "name",
}
STAYS_INSIDE = {"LostInputError", "ItemFailedError", "RemoteTraceback"}
"""Raised for daws itself, or only ever seen as the cause of another."""


@pytest.mark.parametrize("kind", NAMES, ids=lambda kind: kind.__name__)
def test_public_names(kind: type):
    found = {
        name
        for one in kind.__mro__
        for name, value in vars(one).items()
        if not name.startswith("_") and not isinstance(value, Hint)
    }
    assert found <= set(NAMES[kind].split()), "put it into NAMES, or an underscore before it"


def test_public_attributes_of_a_cluster():
    with Cluster(1, kind="threads") as cluster:
        assert {name for name in vars(cluster) if not name.startswith("_")} == {"strategy", "workers"}
        assert [name for name in vars(cluster.map(abs, [1])) if not name.startswith("_")] == []


@pytest.mark.parametrize("module", [errors, worker_errors, cancelled], ids=lambda module: module.__name__)
def test_every_error_is_exported(module: ModuleType):
    stub = Path(str(daws.__file__)).with_suffix(".pyi").read_text()
    for name, kind in inspect.getmembers(module, inspect.isclass):
        if issubclass(kind, BaseException) and kind.__module__ == module.__name__ and name not in STAYS_INSIDE:
            assert name in daws.__all__ and getattr(daws, name) is kind
            assert f"import {name} as {name}\n" in stub


def test_the_stub_has_what_the_package_has():
    stub = Path(str(daws.__file__)).with_suffix(".pyi").read_text()
    named = [line.rpartition(" as ")[2] for line in stub.splitlines() if " as " in line]
    named += [
        line.split()[0].rstrip(":") for line in stub.splitlines() if line[:1].isalpha() and line.split()[1] == "="
    ]
    public = [name for name in named if not name.startswith("_")]
    assert sorted([*public, "__version__"]) == sorted(daws.__all__)
    for name in daws.__all__:
        assert getattr(daws, name) is not None
