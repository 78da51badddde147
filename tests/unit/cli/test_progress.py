"""The progress bar: there for terminals, gone afterwards."""

from io import StringIO

from daws.cli import progress
from daws.cli.progress import Progress, progress_line


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
