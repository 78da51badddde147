"""The command as a whole: what it prints, where, and with which exit code."""

import json
import signal
import subprocess
import sys
import time
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from daws import __version__
from daws.cli import main
from daws.cli.parser import COMMANDS

ENTRY = [sys.executable, "-m", "daws"]
SMALL = ["sim", "bot:tasks=60", "--nodes", "3"]
JSON_KEYS = {
    *("tasks", "nodes", "cores", "strategy", "seed", "makespan_s", "throughput", "efficiency", "utilization"),
    *("bytes_moved", "local_hits", "cache_hits", "pushes", "steals", "failed_steals", "gives", "replicas"),
    *("peak_bytes", "peak_node_bytes", "peak_objects"),
    *("messages", "store_calls", "store_records", "wall_s", "peak_rss_mb"),
    *("workload", "profile", "estimates", "edges", "events", "cores_total"),
    *("bound_s", "bound_by", "bound_share", "recursion_s"),
}


def refusal(capsys, *argv):
    """The one line that a wrong command gets."""
    code: object
    try:
        code = main(argv)
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("daws: error: ") and err.endswith("\n") and err.count("\n") == 1
    return err


def test_json_is_one_object_with_all_keys(capsys):
    assert main([*SMALL, "--json", "--seed", "7", "--strategy", "flds"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert set(found) >= JSON_KEYS
    assert (found["tasks"], found["nodes"], found["cores"], found["cores_total"]) == (60, 3, 2, 6)
    assert (found["strategy"], found["seed"], found["workload"]) == ("flds", 7, "bot:tasks=60")
    assert 0 < found["efficiency"] <= found["bound_share"] <= 1
    assert err == ""


def test_the_same_seed_gives_the_same_run(capsys):
    def numbers(seed):
        assert main([*SMALL, "--json", "--seed", seed]) == 0
        found = json.loads(capsys.readouterr().out)
        return {key: value for key, value in found.items() if key not in ("wall_s", "peak_rss_mb", "seed")}

    assert numbers("1") == numbers("1")
    assert numbers("1") != numbers("2")


def test_table_names_what_was_run(capsys):
    assert main([*SMALL, "--profile", "simmatrix", "--network", "fair"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(
        "bot:tasks=60 with daws: 60 tasks, 0 edges\n3 nodes, 6 cores (2 cores each); costs simmatrix, seed 0"
    )
    assert "makespan" in out and "efficiency" in out
    assert err == ""


def test_quiet_prints_nothing(capsys):
    assert main([*SMALL, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (["sim", "bot", "--nodes", "0"], ["nodes=0", "between 1 and 1000000"]),
        (["sim", "bot", "--nodes", "-3"], ["nodes=-3"]),
        (["sim", "bot", "--nodes", "1000001"], ["nodes=1000001"]),
        (["sim", "bot", "--nodes", "many"], ["--nodes", "'many'"]),
        (["sim", "bot", "--cores", "0"], ["cores=0"]),
        (["sim", "bot", "--cores", "-1"], ["cores=-1"]),
        (["sim", "bot", "--nodes", "1000000", "--cores", "100"], ["cores=100000000"]),
        (["sim", "bot:per-core=10000", "--nodes", "1000000"], ["at most 200000000"]),
        (["sim", "bot", "--seed", "-1"], ["--seed -1"]),
        (["sim", "bat"], ["'bat'", "bot, fan-in"]),
        (["sim", "bot:length=3"], ["'length'", "length-ms"]),
        (["sim", "bot:length-ms=-3"], ["length-ms", "between 0"]),
        (["sim", "bot", "--strategy", "best"], ["'best'", "mlb, mdl"]),
        (["sim", "bot", "--strategy", "flds:order=alphabet"], ["order=alphabet", "data-size"]),
        (["sim", "bot", "--strategy", "flds:t=-1"], ["t=-1"]),
        (["sim", "bot", "--set", "latency=1"], ["'latency'", "latency-us, net-gbps"]),
        (["sim", "bot", "--set", "latency-us"], ["expected KEY=VALUE"]),
        (["sim", "bot", "--set", "net-gbps=0"], ["net-gbps=0"]),
        (["sim", "bot", "--set", "clusters=65"], ["clusters=65", "64 nodes"]),
        (["sim", "bot", "--group", "4x0"], ["cores=0"]),
        (["sim", "bot", "--group", "4"], ["NODESxCORES"]),
        (["sim", "bot", "--group", "4x2", "--nodes", "3"], ["either --group or --nodes"]),
        (["sim", "bot", "--group", "4x2", "--set", "slow=0.5"], ["--set slow", "speed"]),
        (["sim", "bot:tasks=9", "--group", "4x2[gpu]"], ["context 'any'", "there are gpu"]),
        (["sim", "bot:tasks=9", "--context", "gpu"], ["context 'gpu'", "there are any"]),
        (["sim", "bot:tasks=9", "--context", "cat=gpu"], ["'cat'", "kinds: bot"]),
        (["sim", "bot:tasks=9", "--context", "gpu", "--context", "any"], ["twice"]),
        (["sim", "bot", "--plot", "no/such/folder/a.png"], ["there is no folder 'no/such/folder'"]),
        (["sim", "bot", "--plot", "a.gif"], ["'a.gif'", ".png, .svg, .pdf"]),
        (["sim", "bot", "--plot", ""], ["expected the name of a file"]),
        (["sim", "bot", "--plot", "/proc/x.png"], ["'/proc/x.png'", "cannot be written"]),
        (["sim", "bot", "--plot", f"/tmp/{'a' * 300}.png"], ["too long"]),
        (["sim", "bot:tasks=9", "--context", ""], ["--context ''", "expected a context"]),
        (["sim", "bot:tasks=9", "--context", "bot= "], ["--context 'bot= '", "expected a context"]),
        (["sim", "bot:tasks=9", "--context", "x" * 99 + "=gpu"], ["'" + "x" * 37 + "...'"]),
        (["sim", "bot", "--nodes", "2", "--nodes=2"], ["--nodes is given twice"]),
        (["sim", "bot", "--cores", "2", "--cores", "3"], ["--cores is given twice"]),
        (["sim", "bot", "--seed", "0", "--seed", "1"], ["--seed is given twice"]),
        (["sim", "bot", "--strategy", "daws", "--strategy", "mlb"], ["--strategy is given twice"]),
        (["sim", "bot", "--profile", "measured", "--profile", "simmatrix"], ["--profile is given twice"]),
        (["sim", "bot", "--plot", "a.png", "--plot", "b.png"], ["--plot is given twice"]),
        (["sim", "bot", "--profile", "ideal"], ["'ideal'", "simmatrix"]),
        (["sim"], ["WORKLOAD"]),
        (["sim", "bot", "--node", "3"], ["no option --node", "--nodes?"]),
        (["fly"], ["'fly'", "sim"]),
        (["strategies", "best"], ["'best'", "mlb", "place"]),
    ],
)
def test_nonsense_is_refused_in_one_line(capsys, argv, parts):
    line = refusal(capsys, *argv)
    assert [part for part in parts if part not in line] == []


def test_a_line_break_in_what_was_typed_stays_out_of_the_message(capsys):
    assert "order=a b" in refusal(capsys, "sim", "bot", "--strategy", "flds:order=a\nb")


def test_unlike_nodes_clusters_and_labels_from_the_shell(capsys):
    argv = ["sim", "image-stacking:tasks=40", "--group", "3x4", "--group", "2x1+1[gpu]:speed=2,cluster=1"]
    assert main([*argv, "--context", "aggregate=gpu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["cores"], found["cores_total"]) == (5, None, 16)
    assert main([*argv, "--context", "gpu>any"]) == 0
    assert "16 cores (unlike nodes)" in capsys.readouterr().out


def test_costs_matter(capsys):
    def makespan(*more):
        assert main([*SMALL, "--json", *more]) == 0
        return json.loads(capsys.readouterr().out)["makespan_s"]

    assert makespan("--set", "dispatch-us=100000") > makespan() + 0.1
    assert makespan("--set", "slow=1", "--set", "slow-speed=0.1") > 5 * makespan()
    assert makespan("--profile", "simmatrix", "--set", "shards=2", "--set", "lease-s=5", "--set", "cache-gb=1") > 0


def test_estimates_are_an_option(capsys):
    argv = ["sim", "all-pairs:files=12,file-mb=100", "--nodes", "3", "--strategy", "flds", "--json"]

    def run(*more):
        assert main([*argv, *more]) == 0
        found = json.loads(capsys.readouterr().out)
        return {key: found[key] for key in ("estimates", "makespan_s", "bytes_moved", "pushes")}

    assert run()["estimates"] == "exact" and run() == run("--estimates", "exact")
    found = run("--estimates", "±50%")
    assert found == run("--estimates", "±50%"), "the seed decides"
    assert found != run("--estimates", "told") != run()
    assert main([*SMALL, "--estimates", "5%"]) == 0
    assert "estimates 5%" in capsys.readouterr().out
    assert "from 0% to 100%" in refusal(capsys, *SMALL, "--estimates", "often")
    assert "it is 'exact' now" in refusal(capsys, *SMALL, "--estimates", "none")


def test_memory_is_an_option(capsys):
    def makespan(*more):
        assert main(["sim", "bot:tasks=60", "--json", "--check", *more]) == 0
        return json.loads(capsys.readouterr().out)["makespan_s"]

    nodes = ("--nodes", "3", "--cores", "4")
    free = makespan(*nodes, "--task-memory-gb", "3")
    assert makespan(*nodes, "--task-memory-gb", "3", "--memory-gb", "12") == free
    assert makespan(*nodes, "--task-memory-gb", "bot=3", "--memory-gb", "5.9") > 2 * free
    assert makespan("--group", "3x4:memory-gb=12", "--task-memory-gb", "3") == free
    asked = ("sim", "bot:tasks=60")
    assert "needs 3 GB of memory" in refusal(capsys, *asked, "--memory-gb", "2", "--task-memory-gb", "3")
    assert "memory-gb=0: a node has more than 0" in refusal(capsys, *asked, "--memory-gb", "0")
    assert "expected a number of GB" in refusal(capsys, *asked, "--task-memory-gb", "-1")
    assert "there are no tasks of kind 'x'" in refusal(capsys, *asked, "--task-memory-gb", "x=1")
    assert "either --group or --memory-gb" in refusal(capsys, *asked, "--group", "1x1", "--memory-gb", "2")


def test_a_plot_is_written_and_named(capsys, tmp_path):
    target = tmp_path / "busy.svg"
    assert main([*SMALL, "--plot", str(target)]) == 0
    assert str(target) in capsys.readouterr().out
    assert "busy executors" in target.read_text()


def test_a_refused_run_leaves_no_plot_behind(capsys, tmp_path):
    target = tmp_path / "busy.png"
    refusal(capsys, "sim", "bot:tasks=9", "--context", "gpu", "--plot", str(target))
    assert list(tmp_path.iterdir()) == []
    target.write_bytes(b"of yesterday")
    refusal(capsys, "sim", "bot:tasks=9", "--context", "gpu", "--plot", str(target))
    assert target.read_bytes() == b"of yesterday"


def test_a_plot_that_cannot_be_written_is_refused_before_the_run(capsys, monkeypatch):
    monkeypatch.setattr("daws.predict.simulation.simulate_graph", lambda *_: pytest.fail("was run"))
    refusal(capsys, *SMALL, "--plot", "/proc/x.png")


def test_a_plot_that_fails_costs_no_result(capsys, tmp_path):
    target = tmp_path / "full.png"
    target.symlink_to("/dev/full")
    assert main([*SMALL, "--plot", str(target)]) == 1
    out, err = capsys.readouterr()
    assert "makespan" in out and "over time" not in out
    assert err == f"daws: error: plot {str(target)!r}: cannot be written: No space left on device\n"


def test_help_and_version(capsys):
    for argv in (["--help"], ["sim", "--help"], ["strategies", "--help"], ["workloads", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "store-row-us" in out and "examples:" in out
    assert max(map(len, out.splitlines())) <= 100
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: daws")
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"daws {__version__}\n"


def test_help_imports_nothing_heavy():
    script = (
        "import sys\nfrom daws.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'matplotlib', 'daws.core', 'daws.sim.kernel'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    for argv in (["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)):
        ran = subprocess.run([sys.executable, "-c", script, *argv], capture_output=True, text=True, check=True)
        assert ran.stderr.strip() == "[]"


def test_a_run_without_a_plot_leaves_matplotlib_alone():
    script = "import sys\nfrom daws.cli import main\nmain(sys.argv[1:])\nassert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", script, *SMALL, "--quiet"], check=True)


def test_a_broken_pipe_is_silent():
    command = subprocess.Popen([*ENTRY, "strategies"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert command.stdout is not None and command.stderr is not None
    command.stdout.close()
    assert command.stderr.read() == b""
    assert command.wait(60) == 141
    command.stderr.close()


def run_with_stdout(monkeypatch, argv, stream):
    monkeypatch.setattr(sys, "stdout", stream)
    try:
        return main(argv)
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize("argv", [["workloads"], ["sim", "--help"], ["--version"], SMALL])
@pytest.mark.parametrize("buffering", [1, -1])
def test_a_full_disk_is_one_line(capsys, monkeypatch, argv, buffering):
    with open("/dev/full", "w", buffering) as stream:
        assert run_with_stdout(monkeypatch, argv, stream) == 1
    assert capsys.readouterr().err == "daws: error: cannot write the output: No space left on device\n"


def test_a_full_disk_is_not_noticed_again_at_exit():
    with open("/dev/full", "w") as full:
        ran = subprocess.run([*ENTRY, "workloads"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert (ran.returncode, ran.stderr.count("\n")) == (1, 1)
        ran = subprocess.run([*ENTRY, "fly"], stdout=subprocess.PIPE, stderr=full, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (2, "")


@pytest.mark.parametrize("argv", [["workloads"], ["--help"], SMALL])
def test_a_closed_stdout_is_one_line(capsys, monkeypatch, argv):
    assert run_with_stdout(monkeypatch, argv, None) == 2
    err = capsys.readouterr().err
    assert err.startswith("daws: error: stdout is closed") and err.count("\n") == 1


def test_a_closed_stderr_leaves_the_exit_code(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["sim", "bot", "--nodes", "0"]) == 2
    assert main(["strategies", "best"]) == 2
    assert main([*SMALL, "--quiet"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("argv", [["workloads"], ["sim", "--help"], ["strategies", "adage"]])
def test_letters_that_cannot_be_shown_are_replaced(monkeypatch, argv, encoding):
    written = BytesIO()
    assert run_with_stdout(monkeypatch, argv, TextIOWrapper(written, encoding)) == 0
    assert b"?" in written.getvalue()


@pytest.mark.parametrize("module", ["argparse", "numpy"])
def test_an_interrupt_during_an_import_is_one_line(module):
    # An import may turn an interrupt into something else; here numpy swallows it.
    script = (
        "import signal, sys\n"
        "class Finder:\n"
        "    @staticmethod\n"
        "    def find_spec(name, *_):\n"
        "        try:\n"
        "            if name == sys.argv[1]: signal.raise_signal(signal.SIGINT)\n"
        "        except KeyboardInterrupt:\n"
        "            if name != 'numpy': raise\n"
        "sys.meta_path.insert(0, Finder)\n"
        "from daws.cli import main\n"
        "sys.exit(main(sys.argv[2:]))"
    )
    ran = subprocess.run([sys.executable, "-c", script, module, *SMALL], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", "daws: interrupted\n", 130)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler])
def test_who_handles_interrupts_stays_as_it_was(capsys, handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        assert main([]) == 0
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_one_line(tmp_path: Path):
    # The mark is set when the simulation starts, so the signal cannot come before Python is up.
    script = (
        "import sys, daws.cli, daws.sim.simulate as s, pathlib\nrun = s.Kernel.run\n"
        "def marked(kernel): pathlib.Path(sys.argv[1]).touch(); run(kernel)\n"
        "s.Kernel.run = marked\nsys.exit(daws.cli.main(sys.argv[2:]))"
    )
    mark = tmp_path / "mark"
    argv = [sys.executable, "-c", script, str(mark), "sim", "bot:tasks=300000", "--nodes", "1000"]
    command = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not mark.exists() and command.poll() is None:
        time.sleep(0.01)
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert (out, err, command.returncode) == ("", "daws: interrupted\n", 130)


def test_tasks_that_fail_are_told_and_exit_code_1(capsys, monkeypatch):
    class Failed:
        failed, error = 2, "2 tasks failed, first task 7:\nno"

        def report(self):
            return {"failed": self.failed}

    monkeypatch.setattr("daws.predict.simulation.simulate_graph", lambda *_: Failed())
    assert main([*SMALL, "--json"]) == 1
    assert capsys.readouterr() == ('{"failed": 2}\n', "daws: error: 2 tasks failed, first task 7: no\n")


def test_running_out_of_memory_is_one_line(capsys, monkeypatch):
    def exhausted(*_):
        raise MemoryError

    monkeypatch.setattr("daws.predict.simulation.simulate_graph", exhausted)
    assert main(SMALL) == 1
    assert capsys.readouterr().err == "daws: error: out of memory; try fewer tasks or nodes\n"


def test_checkers_can_watch(capsys):
    assert main(["sim", "fan-out:tasks=60", "--nodes", "3", "--check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["failed"] == 0


def test_a_violation_is_told_without_a_traceback(capsys, monkeypatch):
    from daws.sim.checkers import Checker

    monkeypatch.setattr(Checker, "finish", lambda self: self.known.fail("task 7 was lost"))
    assert main([*SMALL, "--check"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith("daws: error: at ")) == ("", True)
    assert err.endswith("task 7 was lost\n")
