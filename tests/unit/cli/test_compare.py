"""`daws compare` from the outside."""

import argparse
import csv
import json
import pickle
import shlex

import pytest

from daws.cli import comparison, main
from daws.cli.comparison import World, compare_line
from daws.cli.parser import make_parser
from daws.compare.cases import Case, run_case

SMALL = ("compare", "fan-in:per-core=5", "--nodes", "1,2", "--seeds", "2", "--jobs", "1")


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(capsys, *argv):
    try:
        code: object = main(argv)
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2 and out == ""
    assert err.startswith("daws: error: ") and err.count("\n") == 1
    return err


def test_tables_have_every_strategy_on_every_size(capsys):
    assert main([*SMALL, "--strategy", "daws,flds:t=0.2,tt=5,random"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    head = next(line for line in out.splitlines() if "no schedule below" in line)
    assert head.split()[-3:] == ["daws", "flds:t=0.2,tt=5", "random"]
    assert out.count("±") == 13 and "12 runs with 2 seeds" in out


def test_runs_are_what_daws_sim_would_say(capsys):
    options = ["--time-scale", "2", "--profile", "simmatrix", "--set", "latency-us=70", "--estimates", "told"]
    assert main([*SMALL, "--json", *options]) == 0
    (run,) = [
        run
        for run in json.loads(capsys.readouterr().out)["runs"]
        if (run["strategy"], run["nodes"], run["seed"]) == ("daws", 2, 1)
    ]
    assert main(["sim", "fan-in:per-core=5", "--nodes", "2", "--seed", "1", "--json", *options]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert {name: run[name] for name in run if name != "wall_s"} == {
        name: alone[name] for name in run if name != "wall_s"
    }


def test_all_files_are_written(capsys, in_its_own_folder):
    pytest.importorskip("matplotlib")
    files = ["--csv", "a.csv", "--plot", "a.svg", "--html", "a.html", "--results", "a.jsonl"]
    assert main([*SMALL, "--quiet", *files]) == 0
    assert capsys.readouterr().out == ""
    rows = list(csv.DictReader((in_its_own_folder / "a.csv").read_text().splitlines()))
    assert len(rows) == 8 and float(rows[0]["bound_share"]) <= 1
    assert "<svg" in (in_its_own_folder / "a.html").read_text()
    assert (in_its_own_folder / "a.svg").stat().st_size > 1000


def test_what_is_there_is_not_run_again(capsys, monkeypatch):
    assert main([*SMALL, "--quiet", "--results", "a.jsonl"]) == 0
    asked: list[Case] = []

    def noted(recipe, cases, jobs):
        asked.extend(cases)
        yield from (run_case(recipe, case) for case in cases)

    monkeypatch.setattr(comparison, "run_cases", noted)
    assert main([*SMALL, "--quiet", "--results", "a.jsonl"]) == 0
    assert asked == []
    assert main([*SMALL, "--quiet", "--results", "a.jsonl", "--strategy", "daws,mdl"]) == 0
    assert {case.strategy for case in asked} == {"mdl"} and len(asked) == 4


def test_the_same_settings_find_their_file_by_themselves(capsys, in_its_own_folder):
    assert main([*SMALL, "--quiet"]) == 0
    assert main([*SMALL, "--quiet"]) == 0
    assert main([*SMALL, "--quiet", "--cores", "2"]) == 0, "as many as there are if nobody says how many"
    assert main([*SMALL, "--quiet", "--cores", "3"]) == 0
    assert len(list(in_its_own_folder.glob("compare-fan-in-*.jsonl"))) == 2


def test_other_settings_are_refused(capsys):
    assert main([*SMALL, "--quiet", "--results", "a.jsonl"]) == 0
    assert "cores was 2, not 4" in refusal(capsys, *SMALL, "--results", "a.jsonl", "--cores", "4")


def test_a_workflow_file_that_has_changed_is_another_workload(capsys, in_its_own_folder):
    file = in_its_own_folder / "small.json"
    assert main(["sim", "fan-in:tasks=10", "--nodes", "1", "--quiet", "--export", str(file)]) == 0
    asked = ("compare", str(file), "--nodes", "1", "--seeds", "1", "--quiet", "--jobs", "1", "--results", "a.jsonl")
    assert main(asked) == 0
    assert main(["sim", "fan-in:tasks=11", "--nodes", "1", "--quiet", "--export", str(file)]) == 0
    assert "contents" in refusal(capsys, *asked)


def test_an_interrupt_keeps_what_is_done_and_says_how_to_go_on(capsys, monkeypatch):
    def interrupted(recipe, cases, jobs):
        yield run_case(recipe, cases[0])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(comparison, "run_cases", interrupted)
        assert main([*SMALL, "--results", "a.jsonl"]) == 130
    out, err = capsys.readouterr()
    assert out == "" and "7 of 8 runs are left; the same command continues (a.jsonl)" in err
    assert main([*SMALL, "--results", "a.jsonl", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 8


@pytest.mark.parametrize(
    "argv",
    [
        ("--strategy", "nonsense"),
        ("--nodes", "0"),
        ("--seeds", "0"),
        ("--jobs", "0"),
        ("--plot", "a.txt"),
        ("--csv", "not/there.csv"),
        ("--html", "."),
        ("--results", "not/there.jsonl"),
        ("--results", "a.jsonl", "--csv", "./a.jsonl"),
        ("--html", "a", "--csv", "a"),
        ("--context", "gpu"),
        ("--strategy", "flds:assign=one,node=5"),
        ("--set", "nonsense=1"),
        ("--estimates", "perhaps"),
    ],
)
def test_nonsense_is_refused_before_anything_is_run(capsys, monkeypatch, argv, in_its_own_folder):
    given = ["compare", "bot:tasks=9", "--nodes", "1", "--jobs", "1"]
    if argv[0] in given:
        at = given.index(argv[0])
        del given[at : at + 2]
    refusal(capsys, *given, *argv)
    assert list(in_its_own_folder.iterdir()) == []


def test_what_no_executor_offers_is_refused_before_the_first_case(capsys, monkeypatch):
    monkeypatch.setattr(comparison, "run_cases", lambda *_: pytest.fail("was run"))
    assert "which no executor offers" in refusal(capsys, *SMALL, "--context", "gpu")


def test_the_world_travels(capsys):
    arguments = make_parser().parse_args([*SMALL, "--memory-gb", "8"])
    world = World(arguments)
    again = pickle.loads(pickle.dumps(world))
    case = Case("daws", 2, 1)
    one, other = run_case(world, case), run_case(again, case)
    assert (one.makespan_s, one.tasks) == (other.makespan_s, other.tasks)


def test_the_command_of_a_page_gives_the_same_runs():
    typed = [*SMALL, "--set", "slow=0.5", "--context", "any", "--cores", "3", "--strategy", "flds:t=0.2,tt=5,daws"]
    arguments = make_parser().parse_args(typed)
    again = make_parser().parse_args(shlex.split(comparison.command_of(arguments))[1:])

    def asked(found: argparse.Namespace) -> dict[str, object]:
        return {name: value for name, value in vars(found).items() if name not in ("run", "given", "jobs")}

    assert asked(again) == asked(arguments)


def test_the_line_of_progress():
    assert compare_line(3, 12, 65.0).endswith("3 of 12 runs  1:05 left")
    assert compare_line(0, 12, None).endswith("0 of 12 runs  …")
