"""The progress bar of live runs."""

from daws.cli.live import live_line


def test_a_line_says_what_runs_and_how_long_it_will_take():
    line = live_line(0.25, 10, 50, 2, 1_500_000_000, 30.0)
    assert line.startswith("███████░") and "25%" in line
    assert "10 of 50 tasks, 2 running  1.50 GB  1:30 left" in line
    assert live_line(0.0, 0, 50, 2, 0, 3.0).endswith("…")
    assert "10 of 50 tasks, 3 failed, 2 running" in live_line(0.25, 10, 50, 2, 0, 30.0, 3)
