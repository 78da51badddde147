"""The progress bar: there for terminals, gone afterwards."""

import sys
import time
from io import StringIO
from types import SimpleNamespace

import pytest

import daws
from daws.client import progress
from daws.client.progress import Progress, progress_line


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_line_has_share_count_rate_and_time_left():
    line = progress_line(2500, 10_000, 5.0)
    assert line.endswith(" 25%  2,500 of 10,000 tasks  500/s  0:15 left")
    assert progress_line(0, 10, 0.0).endswith("0 of 10 tasks  0/s  …")
    assert "1:00:00 left" in progress_line(1, 3601, 1.0)
    assert "100%" in progress_line(0, 0, 1.0)


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
        with pytest.raises(ZeroDivisionError):
            daws.gather([bad, cluster.submit(time.sleep, 1000)], progress=True)


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
        bar(4)
    assert "3 of 4 tasks" in shown.lines[1] and shown.lines[-1].startswith("4 of 4 tasks in")
    shell.kernel = None
    assert not Progress(4, stream=StringIO()).is_shown
