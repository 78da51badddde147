import os

from bench.peers import runner
from bench.peers.measure import with_marker
from bench.peers.runner import Run, plan, run_all, run_one
from bench.peers.systems import HOMES, system_named
from bench.peers.systems.base import EVERYTHING
from bench.peers.workloads import FULL, MARKER, QUICK, WORKLOADS


def test_every_system_says_what_it_does_in_words_that_exist():
    for name in HOMES:
        system = system_named(name)
        assert system.name == name and system.settings
        assert system.does <= WORKLOADS.keys()
    assert EVERYTHING | {"million"} == WORKLOADS.keys()


def test_systems_take_turns_and_another_one_begins_each_time():
    names = ["daws", "floor", "processes"]
    order = list(plan(names, ["futures", "tree"], 2))
    assert [name for name, _, _ in order[:3]] == names
    assert order[5:8] == [(name, "futures", 1) for name in ("floor", "processes", "daws")]
    assert ("floor", "tree", 0) not in order  # the floor keeps no graph


def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started():
    run = run_one("processes", "futures", 0, FULL, limit_s=0.3)
    assert run.error == "not done within 0.3 s" and not run.figures
    assert not with_marker(f"{MARKER}={os.getpid()}-")


def test_a_run_that_fails_says_so_in_one_line():
    run = run_one("floor", "tree", 0, QUICK, limit_s=60)
    assert "add_done_callback" in run.error and "\n" not in run.error


def test_an_interrupt_keeps_what_was_measured(monkeypatch, capsys):
    def fake(system, workload, repetition, effort, limit_s):
        if repetition:
            raise KeyboardInterrupt
        return Run(system, workload, repetition, 0.0, {"value": 1.0})

    monkeypatch.setattr(runner, "run_one", fake)
    runs = run_all(["daws", "floor"], ["futures"], 3, QUICK, 60, lambda run: None)
    assert [run.system for run in runs] == ["daws", "floor"]
    assert "interrupted" in capsys.readouterr().err


def test_the_others_go_on_and_what_failed_is_not_tried_again(monkeypatch):
    def fake(system, workload, repetition, effort, limit_s):
        error = "it broke" if system == "floor" else ""
        return Run(system, workload, repetition, 0.0, {} if error else {"value": 1.0}, error)

    monkeypatch.setattr(runner, "run_one", fake)
    shown: list[Run] = []
    runs = run_all(["daws", "floor"], ["futures"], 3, QUICK, 60, shown.append)
    assert [run.system for run in runs] == ["daws", "floor", "daws", "daws"]
    assert shown == runs
