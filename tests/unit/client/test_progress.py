"""The progress bar: there for terminals, gone afterwards."""

import sys
import time
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

import daws
from daws.runs import progress
from daws.runs.progress import Progress, progress_line


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_line_has_share_count_rate_and_time_left():
    line = progress_line(2500, 10_000, 5.0)
    assert line.endswith(" 25%  2,500 of 10,000 tasks  500/s  0:15 left")
    assert progress_line(0, 10, 0.0).endswith("0 of 10 tasks  0/s  …")
    assert "1:00:00 left" in progress_line(1, 3601, 1.0)
    assert "100%" in progress_line(0, 0, 1.0)
    assert "2,500 of 10,000 tasks, 1,003 failed  500/s" in progress_line(2500, 10_000, 5.0, 1003)


def test_a_terminal_sees_it_and_keeps_nothing(monkeypatch):
    monkeypatch.setattr(progress, "PERIOD_S", 0.0)
    stream = Terminal()
    with Progress(100, stream=stream) as bar:
        bar(50)
    drawn = stream.getvalue()
    assert "50 of 100 tasks" in drawn
    last = drawn.rsplit("\r", 2)[1]
    assert last.strip() == "" and len(last) >= len(progress_line(50, 100, 1.0)) - 20
    assert drawn.endswith("\r")


def test_it_draws_only_now_and_then(monkeypatch):
    monkeypatch.setattr(progress, "PERIOD_S", 1000.0)
    stream = Terminal()
    with Progress(100, stream=stream) as bar:
        for done in range(100):
            bar(done)
    assert "tasks" not in stream.getvalue()


def test_without_stderr_there_is_none(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with Progress(100) as bar:
        bar(50)


def test_nobody_else_sees_it():
    pipe, quiet = StringIO(), Terminal()
    for bar in (Progress(100, stream=pipe), Progress(100, quiet=True, stream=quiet)):
        with bar:
            bar(50)
    assert pipe.getvalue() == quiet.getvalue() == ""


def test_futures_are_waited_for_with_a_bar(monkeypatch):
    monkeypatch.setattr(progress, "PERIOD_S", 0.0)
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    with daws.Cluster(1) as cluster:
        futures = [cluster.submit(abs, -number) for number in range(5)]
        assert daws.progress(futures) == futures and all(one.done() for one in futures)
        assert "5 of 5 tasks" in stream.getvalue()
        assert all(one.done() for one in daws.progress(cluster.map(abs, range(100))))
        stream.truncate(0)
        assert daws.gather({"x": futures, "y": 3}, progress=True) == {"x": [0, 1, 2, 3, 4], "y": 3}
        assert "5 of 5 tasks" in stream.getvalue()
        bad = cluster.submit(divmod, 1, 0)
        assert isinstance(daws.progress([bad])[0].exception(), ZeroDivisionError)
        assert "1 of 1 tasks, 1 failed" in stream.getvalue()
        stream.truncate(0)
        daws.gather([bad, cluster.submit(abs, bad), *futures], errors="return", progress=True)
        assert "7 of 7 tasks, 2 failed" in stream.getvalue()
        with pytest.raises(ZeroDivisionError):
            daws.gather([bad, cluster.submit(time.sleep, 1000)], progress=True)
        cluster.close(cancel=True)


def invert(number: int) -> tuple[float, str]:
    return 1 / (number % 2), "x" * 10_000


@pytest.mark.parametrize("form", [{}, {"kind": "threads"}, {"nodes": 2}])
def test_items_of_a_map_are_counted_one_by_one(form: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    stream = Terminal()
    monkeypatch.setattr(progress, "PERIOD_S", 0.0)
    with daws.Cluster(2, **form) as cluster:
        monkeypatch.setattr("sys.stderr", stream)
        mapped = cluster.map(invert, range(20), chunk=3)
        ended = daws.progress(mapped)
        assert "20 of 20 items, 10 failed" in stream.getvalue()
        assert len(ended) == 20 and repr(ended) == "<20 futures: 10 done, 10 failed>"
        assert [type(item.exception()) for item in ended[:2]] == [ZeroDivisionError, type(None)]
        assert ended[1].result()[0] == 1.0
        stream.truncate(0)
        cluster.gather([mapped, cluster.submit(abs, -1)], errors="skip", progress=True)
        assert "21 of 21 items, 10 failed" in stream.getvalue()
        with pytest.raises(ZeroDivisionError):
            cluster.gather(mapped, progress=True)


def test_results_in_files_are_not_read_to_count_failures():
    with daws.Cluster(1) as cluster:
        mapped = cluster.map(bytes, [100_000] * 4, chunk=2)
        assert repr(daws.progress(mapped)) == "<4 futures: 4 done>"
        assert all(future._is_stored() for future in mapped._futures)


class Shown:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def display(self, data: dict[str, str], raw: bool, display_id: bool) -> "Shown":
        return self

    def update(self, data: dict[str, str], raw: bool) -> None:
        self.lines.append(data["text/plain"])


def test_in_a_notebook_one_line_changes_in_its_place(monkeypatch):
    monkeypatch.setattr(progress, "PERIOD_S", 0.0)
    shell, shown = SimpleNamespace(kernel=object()), Shown()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.display))
    with Progress(4) as bar:
        bar(3)
        bar(4, 1)
    assert "3 of 4 tasks" in shown.lines[1] and shown.lines[-1].startswith("4 of 4 tasks, 1 failed in")
    shell.kernel = None
    assert not Progress(4, stream=StringIO()).is_shown


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_simulation_has_a_bar_if_asked(is_asked: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "PERIOD_S", 0.0)
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    daws.simulate("bot:tasks=20000", nodes=2, progress=is_asked)
    assert ("of 20,000 tasks" in stream.getvalue()) is is_asked
