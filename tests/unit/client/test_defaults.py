"""What a cluster goes by where nothing is said."""

import os

import pytest

from daws.client import starting as defaults
from daws.model.errors import UsageError


def test_the_environment_says(monkeypatch):
    monkeypatch.setenv("DAWS_WORKERS", "3")
    monkeypatch.setenv("DAWS_STRATEGY", "flds:t=0.2")
    assert (defaults.default_workers(), defaults.default_strategy()) == (3, "flds:t=0.2")


def test_without_a_word_it_is_all_processors_and_the_usual_strategy(monkeypatch):
    for name in (defaults.WORKERS, defaults.STRATEGY, defaults.TRACE):
        monkeypatch.delenv(name, raising=False)
    assert defaults.default_workers() == len(os.sched_getaffinity(0))
    assert (defaults.default_strategy(), defaults.default_file(defaults.TRACE)) == ("daws", None)


@pytest.mark.parametrize("text", ["two", "-1", "1.5", "٣", "9" * 30])
def test_a_number_of_workers_must_be_one(monkeypatch, text):
    monkeypatch.setenv("DAWS_WORKERS", text)
    with pytest.raises(UsageError, match="DAWS_WORKERS"):
        defaults.default_workers()


def test_each_cluster_has_files_of_its_own(monkeypatch):
    for name in (defaults.TRACE, defaults.EXPORT, defaults.PLOT):
        monkeypatch.delenv(name, raising=False)
    assert defaults.default_file(defaults.EXPORT) is None and defaults.default_file(defaults.PLOT) is None
    monkeypatch.setenv("DAWS_EXPORT", "out/graph.json.gz")
    assert defaults.default_file(defaults.EXPORT) != (second := defaults.default_file(defaults.EXPORT))
    assert second is not None and second.startswith("out/graph-") and second.endswith(".json.gz")


def test_each_cluster_has_a_trace_of_its_own(monkeypatch):
    monkeypatch.setenv("DAWS_TRACE", "out/trace.json")
    first, second = defaults.default_file(defaults.TRACE), defaults.default_file(defaults.TRACE)
    assert first is not None and second is not None and first != second
    assert second.startswith("out/trace-") and second.endswith(".json")
