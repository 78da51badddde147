"""What a cluster goes by where nothing is said."""

import os

import pytest

from daws.client import defaults
from daws.model.errors import UsageError


def test_the_environment_says(monkeypatch):
    monkeypatch.setenv("DAWS_WORKERS", "3")
    monkeypatch.setenv("DAWS_STRATEGY", "flds:t=0.2")
    assert (defaults.default_workers(), defaults.default_strategy()) == (3, "flds:t=0.2")


def test_without_a_word_it_is_all_processors_and_the_usual_strategy(monkeypatch):
    for name in (defaults.WORKERS, defaults.STRATEGY, defaults.TRACE):
        monkeypatch.delenv(name, raising=False)
    assert defaults.default_workers() == len(os.sched_getaffinity(0))
    assert (defaults.default_strategy(), defaults.default_trace()) == ("daws", None)


@pytest.mark.parametrize("text", ["two", "-1", "1.5", "٣", "9" * 30])
def test_a_number_of_workers_must_be_one(monkeypatch, text):
    monkeypatch.setenv("DAWS_WORKERS", text)
    with pytest.raises(UsageError, match="DAWS_WORKERS"):
        defaults.default_workers()


def test_each_cluster_has_files_of_its_own(monkeypatch):
    for name in (defaults.TRACE, defaults.EXPORT, defaults.PLOT):
        monkeypatch.delenv(name, raising=False)
    assert not defaults.asks_for_files() and defaults.default_export() is None and defaults.default_plot() is None
    monkeypatch.setenv("DAWS_EXPORT", "out/graph.json.gz")
    assert defaults.asks_for_files()
    assert defaults.default_export() != (second := defaults.default_export())
    assert second is not None and second.startswith("out/graph-") and second.endswith(".json.gz")


def test_each_cluster_has_a_trace_of_its_own(monkeypatch):
    monkeypatch.setenv("DAWS_TRACE", "out/trace.json")
    first, second = defaults.default_trace(), defaults.default_trace()
    assert first is not None and second is not None and first != second
    assert second.startswith("out/trace-") and second.endswith(".json")
