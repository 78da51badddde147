"""Commands on a cluster with real workers and real programs."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import daws
from daws import Cluster, File, Out
from daws.client.cancelled import TaskCancelledError
from daws.model.errors import CommandError, TaskKilledError, UnavailableError, UsageError

BIG = 20_000
"""Lines that do not fit into a message."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(2) as one:
        yield one


@pytest.fixture(scope="module", params=["processes", "threads"])
def either(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(2, kind=request.param) as one:
        yield one


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("b\na\nc\na\n")
    return path


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    return condition()


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def folders(cluster: Cluster) -> list[Path]:
    """What is left in the folders of runs."""
    return list(cluster._folders.scratch.glob("*/runs-*/*/*"))


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_pipeline_through_files(either: Cluster, words: Path, tmp_path: Path):
    sort = either.run(["sort", File(words), "-o", Out("sorted.txt")])
    count = either.run("uniq -c sorted.txt > counts.txt", inputs=[sort.outputs["sorted.txt"]], outputs=["counts.txt"])
    top = either.run(["head", "-n", 1, count.outputs["counts.txt"]], stdout=Out("top.txt"), env={"LC_ALL": "C"})
    assert top.outputs["top.txt"].result(60).read_text().split() == ["2", "a"]
    done = sort.result(60)
    assert done.code == 0 and done.command == "sort words.txt -o sorted.txt" and done.duration_s > 0
    done.outputs["sorted.txt"].copy_to(tmp_path / "kept.txt")
    assert (tmp_path / "kept.txt").read_text() == "a\na\nb\nc\n"
    assert folders(either) == []


def test_large_files_are_moved_and_linked_not_copied(either: Cluster):
    make = either.run(f"seq {BIG} > numbers; stat -c %i numbers", outputs=["numbers"])
    look = either.run(["stat", "-L", "-c", "%i", make.outputs["numbers"]])
    inode = os.stat(make.outputs["numbers"].result(60)).st_ino
    assert int(make.result().text) == int(look.result(60).text) == inode
    sums = [either.run("cat numbers | wc -l", inputs=[make.outputs["numbers"]]) for _ in range(5)]
    assert {int(one.result(60).text) for one in sums} == {BIG}


def read_both(one: File, other: File) -> tuple[int, str, bytes, str]:
    with one.open() as opened:
        lines = len(opened.readlines())
    return lines, one.path.name, other.read_bytes(), other.path.read_text()


def test_functions_read_what_commands_made(either: Cluster):
    made = either.run(f"seq {BIG} > big.csv; echo x > small.txt", outputs=["big.csv", "small.txt"])
    found = either.submit(read_both, made.outputs["big.csv"], made.outputs["small.txt"])
    assert found.result(60) == (BIG, "big.csv", b"x\n", "x\n")
    by_result = either.submit(read_both, made.outputs["big.csv"].result(), made.outputs["small.txt"].result())
    assert by_result.result(60) == (BIG, "big.csv", b"x\n", "x\n"), "a File is as good as its future"
    inside = either.submit(lambda done: (done.code, done.outputs["small.txt"].read_text()), made)
    assert inside.result(60) == (0, "x\n")


def test_commands_read_what_functions_made(either: Cluster, words: Path):
    number, text, data = either.submit(len, "abc"), either.submit(str, "one\ntwo\n"), either.submit(bytes, 100_000)
    done = either.run(["head", "-n", number, File(words)])
    assert done.result(60).text == "b\na\nc\n"
    both = either.run("cat text; wc -c < data", inputs={"text": text, "data": data})
    assert both.result(60).text.split() == ["one", "two", "100000"]
    file = either.submit(File, str(words))
    assert either.run(["cat", file]).result(60).text == words.read_text()
    assert either.run(["cat"], stdin=text).result(60).text == "one\ntwo\n"


@pytest.mark.parametrize("stdin", ["text\n", b"text\n"])
def test_standard_input(either: Cluster, words: Path, stdin: Any):
    assert either.run(["cat"], stdin=stdin).result(60).text == "text\n"
    assert either.run(["cat"], stdin=File(words)).result(60).text == words.read_text()
    small, big = either.run("echo x; seq 2000 > big", stdout=Out("x"), outputs=["big"]).outputs.values()
    assert sorted(either.run(["wc", "-l"], stdin=one).result(60).text for one in (small, big)) == ["1\n", "2000\n"]
    assert either.run(["cat"]).result(60).text == "", "it is empty unless given"


def test_names_with_spaces_and_letters_of_all_kinds(either: Cluster, tmp_path: Path):
    path = tmp_path / "in ü ñ 'q'.txt"
    path.write_text("words")
    made = either.run(["cp", File(path), Out("out folder/ö $x.txt")]).outputs["out folder/ö $x.txt"]
    assert either.run(["cat", made]).result(60).text == "words"
    dashed = either.run(["cat", File(path, name="-n")])
    assert dashed.result(60).text == "words"


def test_outputs_may_be_empty_or_of_any_size(either: Cluster):
    sizes = [0, 1, 4094, 4095, 4096, 4097, 5000]
    line = "; ".join(f"head -c {size} /dev/zero > {size}" for size in sizes)
    made = either.run(line, outputs=[str(size) for size in sizes])
    assert [one.size_bytes for one in made.result(60).outputs.values()] == sizes
    assert either.gather([either.submit(File.read_bytes, one) for one in made.outputs.values()]) == [
        bytes(size) for size in sizes
    ]


SIZES = [10, 10_000, 300_000]


def modes_of(*files: File) -> list[int]:
    return [os.stat(file).st_mode & 0o777 for file in files]


@pytest.fixture(scope="module", params=["processes", "threads", "nodes"])
def anywhere(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "nodes":
        with Cluster(1, nodes=2) as one:
            yield one
    else:
        with Cluster(2, kind=request.param) as one:
            yield one


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o600, 0o444])
def test_files_keep_who_may_read_and_execute_them(anywhere: Cluster, mode: int, tmp_path: Path):
    names = [str(size) for size in SIZES]
    line = "; ".join(f"head -c {size} /dev/zero > {size}; chmod {mode:o} {size}" for size in SIZES)
    made = anywhere.run(line, outputs=names)
    files = list(made.outputs.values())
    here = [one.result(60) for one in files]
    assert modes_of(*here) == [mode] * 3
    copies = [one.copy_to(tmp_path / one.name) for one in here]
    assert [os.stat(copy).st_mode & 0o777 for copy in copies] == [mode] * 3
    seen = [anywhere.run(["stat", "-L", "-c", "%a", *files]) for _ in range(6)]
    assert {one.result(60).text for one in seen} == {f"{mode:o}\n" * 3}
    looked = [anywhere.submit(modes_of, *files) for _ in range(6)]
    assert anywhere.gather(looked) == [[mode] * 3] * 6


def test_a_file_that_not_even_its_owner_could_read_can_be_read(anywhere: Cluster):
    made = anywhere.run("echo a > 0; seq 5000 > 1; chmod 0 0 1", outputs=["0", "1"])
    assert modes_of(*[one.result(60) for one in made.outputs.values()]) == [0o400, 0o400]


@pytest.mark.parametrize(
    "line, how",
    [
        ("printf XXXX | dd of=numbers conv=notrunc status=none", "changed its input 'numbers' in place"),
        ("echo more >> numbers; exit 3", "exited with code 3"),
        ("echo more >> numbers; sleep 60", "took longer"),
    ],
)
def test_what_a_command_made_is_made_again_after_another_has_written_to_it(anywhere: Cluster, line: str, how: str):
    numbers = anywhere.run(f"seq {BIG} > numbers", outputs=["numbers"]).outputs["numbers"]
    with pytest.raises(CommandError, match=how):
        anywhere.run(line, inputs=[numbers], timeout=1 if "sleep" in line else 60).result(60)
    look = anywhere.run("head -n 2 numbers; wc -l < numbers", inputs=[numbers])
    assert look.result(60).text.split() == ["1", "2", str(BIG)]
    assert len(numbers.result(60).read_text().split()) == BIG


@pytest.mark.parametrize(
    "line, what", [("mkdir x", "'x' is a folder; declare the files in it"), ("mkfifo x", "'x' is no regular file")]
)
def test_what_is_no_file_is_no_output(cluster: Cluster, line: str, what: str):
    with pytest.raises(CommandError, match=f"`{line}` did not make its output 'x': {what}"):
        cluster.run(line, outputs=["x"]).result(60)


def test_programs_that_commands_made_can_be_run(either: Cluster):
    script = "printf '#!/bin/sh\\necho ran %s $1\\n' > tool; chmod +x tool"
    tool = either.run(script, outputs=["tool"]).outputs["tool"]
    assert either.run([tool, 7]).result(60).text == "ran %s 7\n".replace("%s ", "")
    large = either.run(f"{script}; head -c 10000 /dev/zero | tr '\\0' '#' >> tool", outputs=["tool"]).outputs["tool"]
    assert "ran" in either.run([large]).result(60).text
    plain = either.run("printf '#!/bin/sh\\necho ran too\\n' > tool", outputs=["tool"]).outputs["tool"]
    assert either.run([plain]).result(60).text == "ran too\n", "whoever is the program is meant to run"


def test_an_input_that_is_renamed_to_an_output_is_copied(either: Cluster, tmp_path: Path):
    path = tmp_path / "big"
    path.write_bytes(bytes(10_000))
    made = either.run(["mv", File(path), Out("moved")]).outputs["moved"].result(60)
    path.write_bytes(b"changed")
    assert made.read_bytes() == bytes(10_000)


def test_the_same_file_may_be_named_twice(either: Cluster, words: Path):
    assert either.run(["cat", File(words), File(words)]).result(60).text == words.read_text() * 2


def test_files_of_ones_own_must_not_change(either: Cluster, words: Path):
    file = File(words)
    words.write_text("other words")
    with pytest.raises(UsageError, match="has changed since it was named"):
        either.run(["cat", file]).result(60)


def test_a_command_that_changes_its_input_is_told(either: Cluster, words: Path):
    with pytest.raises(CommandError, match=r"changed its input 'words\.txt' in place"):
        either.run("echo more >> words.txt", inputs=[File(words)]).result(60)


def test_files_go_when_nobody_has_them(cluster: Cluster):
    made = cluster.run(f"seq {BIG} > numbers", outputs=["numbers"])
    file = made.outputs["numbers"].result(60)
    files, object_ = cluster._open().files, made.outputs["numbers"].object
    del made
    cluster.run(["true"]).result(60)
    assert object_ in files and len(file.read_bytes()) > BIG, "a File holds what it is"
    del file
    assert until(lambda: cluster.run(["true"]).result(60).code == 0 and object_ not in files)


def test_files_at_urls(tmp_path: Path, words: Path):
    pytest.importorskip("fsspec")
    with Cluster(1, kind="threads") as one:  # which see the memory of this process
        File(words).copy_to("memory://bucket/words.txt")
        done = one.run(["sort", File("memory://bucket/words.txt"), "-o", Out("sorted.txt")]).result(60)
        assert done.outputs["sorted.txt"].read_text() == "a\na\nb\nc\n"
        assert one.run(["cat"], stdin=File(f"file://{words}")).result(60).text == words.read_text()


def test_files_travel_between_nodes(words: Path):
    with Cluster(1, nodes=2) as two:
        big = two.run(
            f"seq {BIG} > big; cp {words} small; head -c 4096 /dev/zero > edge", outputs=["big", "small", "edge"]
        )
        lines = [two.run("cat big small edge | wc -c; sleep 0.1", inputs=[*big.outputs.values()]) for _ in range(8)]
        size = sum(one.size_bytes for one in big.result(60).outputs.values())
        assert {int(one.result(60).text) for one in lines} == {size}
        assert big.outputs["big"].result().path.read_text().count("\n") == BIG
        tool = two.run(f"cp {shutil.which('echo')} tool", outputs=["tool"]).outputs["tool"]
        runs = [two.run([tool, number]) for number in range(8)]
        assert [run.result(60).text for run in runs] == [f"{number}\n" for number in range(8)]


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["false"], 1, "`false` exited with code 1"),
        ("echo oops >&2; exit 3", 3, "exited with code 3; the last it wrote: oops"),
        ("kill -TERM $$", -15, "was killed by SIGTERM"),
        (["no-such-program"], 127, "no program 'no-such-program' in the folders of PATH"),
        (["/no/such/program"], 127, "no program /no/such/program"),
        (["/etc/passwd"], 126, "/etc/passwd is not executable"),
        (["/tmp"], 126, "/tmp is not executable"),
    ],
)
def test_failures_say_what_happened(either: Cluster, words: Any, code: int, message: str):
    error = either.run(words, show=False).exception(60)
    assert isinstance(error, CommandError) and message in str(error) and error.code == code


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (
            "zcat nosuch.gz | sort > out",
            1,
            "^`zcat nosuch.gz \\| sort > out` failed: `zcat nosuch.gz` exited with code 1; .*",
        ),
        ("true | sh -c 'kill -9 $$' | cat > out", 137, "was killed by SIGKILL"),
        (
            "nosuchprogram x > out",
            127,
            "^`nosuchprogram x > out` exited with code 127; .* nosuchprogram: command not found",
        ),
        ("seq 3 > out\nnosuchprogram", 127, "wrote: line 2: nosuchprogram: command not found"),
        ("seq 3 | | sort > out", 2, "exited with code 2; the last it wrote: syntax error"),
    ],
)
def test_a_pipe_fails_with_any_of_its_programs(either: Cluster, line: str, code: int, message: str):
    future = either.run(line, outputs=["out"], show=False)
    with pytest.raises(CommandError, match=message) as caught:
        future.result()
    said = str(caught.value)
    assert caught.value.code == code and caught.value.command == line
    assert "bash" not in said and "/bin" not in said and "trap" not in said


def test_a_reader_that_has_seen_enough_is_no_failure(either: Cluster):
    future = either.run("yes | head -n 1 > out", outputs=["out"])
    assert future.result().code == 0 and future.outputs["out"].result().read_text() == "y\n"
    assert either.run("set +o pipefail; false | cat").result().code == 0


def test_scripts_that_cannot_be_run(either: Cluster, tmp_path: Path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert "names an interpreter that is not there" in str(either.run([str(script)]).exception(60))
    assert "no folder /no/such" in str(either.run(["true"], cwd="/no/such/folder").exception(60))


def test_an_exit_code_may_be_none_of_our_business(either: Cluster):
    done = either.run("echo out; echo err >&2; exit 7", check=False, show=False).result(60)
    assert (done.code, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


@pytest.mark.parametrize("check", [True, False])
def test_outputs_that_are_missing_are_named(either: Cluster, check: bool):
    bad = either.run("echo x > one", outputs=["one", "two", "three"], check=check)
    after = either.run(["cat", bad.outputs["one"]])
    assert "did not make its output 'two', 'three'" in str(bad.exception(60))
    assert bad.outputs["one"].exception(60) is not None and after.exception(60) is not None
    folder = either.run("mkdir one", outputs=["one"])
    assert "did not make its output 'one'" in str(folder.exception(60))
    assert folders(either) == []


def test_memory_limits_hold_for_programs(cluster: Cluster):
    hungry = [sys.executable, "-c", "x = 'x' * 300_000_000; import time; time.sleep(1000)"]
    error = cluster.run(hungry, memory=150_000_000).exception(60)
    assert isinstance(error, TaskKilledError) and "memory" in str(error)


def test_failed_commands_are_tried_again(either: Cluster, tmp_path: Path):
    line = f"echo x >> {tmp_path}/tries; test $(wc -l < {tmp_path}/tries) = 3"
    assert either.run(line, retries=2).result(60).code == 0
    assert (tmp_path / "tries").read_text() == "x\n" * 3


def test_a_time_limit_kills_all_that_was_started(either: Cluster, tmp_path: Path):
    line = f"sleep 1000 & echo $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; wait"
    assert issubclass(daws.CommandTimeoutError, CommandError) and issubclass(daws.CommandTimeoutError, TimeoutError)
    for limit in (0.1, 1, 10):  # on a busy machine it may be over before it has begun
        error = either.run(line, timeout=limit).exception(60)
        assert (
            isinstance(error, daws.CommandTimeoutError)
            and error.command == line
            and f"time limit of {limit} s" in str(error)
        )
        if (tmp_path / "pid").exists():
            break
    pid = int((tmp_path / "pid").read_text())
    assert until(lambda: not is_alive(pid))


def test_what_a_command_leaves_running_is_killed(either: Cluster):
    pid = int(either.run("sleep 1000 & echo $!").result(60).text)
    assert until(lambda: not is_alive(pid))


def test_cancelling_kills_all_that_was_started(either: Cluster, tmp_path: Path):
    line = f"sleep 1000 & echo $! $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pids; wait"
    run = either.run(line, outputs=["x"])
    assert until((tmp_path / "pids").exists)
    run.cancel()
    with pytest.raises(TaskCancelledError):
        run.result(60)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert until(lambda: not any(map(is_alive, pids)))
    assert until(lambda: folders(either) == [])
    assert either.run(["echo", "fine"]).result(60).text == "fine\n"


def test_a_worker_that_is_killed_takes_its_command_along(cluster: Cluster, tmp_path: Path):
    line = f"echo $PPID $$ >> {tmp_path}/pids; test $(wc -l < {tmp_path}/pids) = 2 || sleep 1000; echo x > x"
    run = cluster.run(line, outputs=["x"])
    assert until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text().count("\n") == 1)
    worker, command = map(int, (tmp_path / "pids").read_text().split())
    os.kill(worker, signal.SIGKILL)
    assert run.result(60).code == 0, "it was tried again"
    assert until(lambda: not is_alive(command))


@pytest.mark.parametrize("kind", ["processes", "threads"])
def test_nothing_is_left_behind(tmp_path: Path, kind: Any):
    with Cluster(2, kind=kind) as one:
        made = one.run(f"seq {BIG} > x", outputs=["x"]).outputs["x"].result(60)
        path = made.path
        runs = [
            one.run(f"sleep 1000 & echo $! $$ > {tmp_path}/{n}.new; mv {tmp_path}/{n}.new {tmp_path}/{n}; wait")
            for n in range(2)
        ]
        assert until(lambda: all((tmp_path / str(n)).exists() for n in range(2)))
        scratch = one._folders.scratch
        one.close(cancel=True)
    pids = [int(pid) for n in range(2) for pid in (tmp_path / str(n)).read_text().split()]
    assert until(lambda: not any(map(is_alive, pids)))
    assert not scratch.exists() and not path.exists() and all(run.done() for run in runs)
    with pytest.raises(UnavailableError, match="cannot copy x"):
        made.copy_to(tmp_path / "late")


def test_a_client_that_is_killed_leaves_nothing_running(tmp_path: Path):
    script = f"""
import daws
cluster = daws.Cluster(1)
cluster.run("sleep 1000 & echo $! $$ > new; mv new {tmp_path}/pids; wait", outputs=["x"]).result()
"""
    client = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path)
    try:
        assert until((tmp_path / "pids").exists)
    finally:
        client.kill()
        client.wait()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert until(lambda: not any(map(is_alive, pids)))


# -- surroundings ------------------------------------------------------------------------------------------------------


def test_where_it_runs(either: Cluster, tmp_path: Path, words: Path):
    assert either.run(["pwd"]).result(60).text.strip() == os.getcwd()
    assert either.run(["pwd"], cwd=tmp_path).result(60).text.strip() == str(tmp_path)
    own = either.run("pwd; ls -a", inputs=[File(words)]).result(60).text.split()
    assert own[0] != os.getcwd() and own[1:] == [".", "..", "words.txt"]
    away = either.run(["sh", "-c", 'pwd; cat "$0" > "$1"', File(words), Out("copy.txt")], cwd=tmp_path)
    assert away.result(60).text.strip() == str(tmp_path)
    assert away.outputs["copy.txt"].result().read_text() == words.read_text()
    assert either.submit(os.getcwd).result(60) == os.getcwd()


def test_relative_programs_are_those_seen_from_here(either: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tool").write_text("#!/bin/sh\necho tool\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert either.run(["./tool"], stdout=Out("x")).outputs["x"].result(60).read_text() == "tool\n"


def test_environment(cluster: Cluster, tmp_path: Path):
    tool = tmp_path / "my-tool"
    tool.write_text('#!/bin/sh\necho "$NEW $OMP_NUM_THREADS"\n')
    tool.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert cluster.run(["my-tool"], env={"NEW": "new", "PATH": path}).result(60).text == "new 1\n"
    assert cluster.run(["my-tool"], env={"PATH": path}, cores=2).result(60).text == " 2\n"


def test_broken_pipes_end_programs(either: Cluster):
    assert either.run("yes | head -n 1; echo over").result(60).text == "y\nover\n"


def test_what_is_printed_is_kept_and_shown(either: Cluster, capfd: pytest.CaptureFixture[str]):
    done = either.run("echo shown; seq 20000; echo last").result(60)
    hidden = either.run("echo hidden", show=False).result(60)
    assert len(done.stdout) == 1 << 16 and done.text.endswith("20000\nlast\n") and hidden.text == "hidden\n"
    seen = ""

    def is_seen() -> bool:
        nonlocal seen
        seen += capfd.readouterr().out
        return "20000\nlast\n" in seen

    assert until(is_seen) and "hidden" not in seen


def test_both_streams_may_go_to_one_file(either: Cluster):
    made = either.run("echo out; echo err >&2", stdout=Out("both"), stderr=Out("both")).outputs["both"]
    assert made.result(60).read_text() == "out\nerr\n"


# -- descriptions ------------------------------------------------------------------------------------------------------


def test_a_description_can_be_run_many_times(cluster: Cluster):
    echo = daws.command(["echo", 1, Path("a") / "b", 2.5], timeout=60, priority=3)
    assert repr(echo) == "<Command `echo 1 a/b 2.5`>"
    runs = [cluster.run(echo) for _ in range(3)]
    assert [run.result(60).text for run in runs] == ["1 a/b 2.5\n"] * 3
    assert "done" in repr(runs[0])
    with pytest.raises(UsageError, match="say all about a command"):
        cluster.run(echo, timeout=3)


@pytest.mark.parametrize(
    "words, more, message",
    [
        ([], {}, "the command is empty"),
        (" ", {}, "the command is empty"),
        (b"ls", {}, "is no command"),
        (5, {}, "5 is no command"),
        ([""], {}, "the command is empty"),
        (["ls", ["x"]], {}, "word 1 of the command is a list"),
        (["ls", "x\0"], {}, "zero byte"),
        ("ls x\0", {}, "the line of the command has a zero byte"),
        (["ls"], {"outputs": ["/etc/passwd"]}, "'/etc/passwd' leads out of the command's own folder"),
        (["ls"], {"outputs": ["a/../../x"]}, "leads out"),
        (["ls"], {"outputs": ["results/"]}, "the output 'results/' is a folder; name the files in it"),
        (["ls"], {"outputs": "x"}, "give a list"),
        (["ls"], {"inputs": {"../x": "text"}}, "leads out"),
        (["ls"], {"inputs": ["x"]}, "has no name"),
        (["ls"], {"inputs": {"x": 3}}, "is a int"),
        (["ls"], {"inputs": {"x": "text"}, "outputs": ["x"]}, "an input and an output"),
        (["ls"], {"inputs": {"x": "text"}, "cwd": "/"}, "cwd= goes with files among the words"),
        (["ls"], {"stdin": 3}, "stdin=3"),
        (["ls"], {"stdout": "x"}, r"give daws.Out\(name\)"),
        (["ls"], {"env": {"A=B": "x"}}, "cannot be a variable"),
        (["ls"], {"env": {"A": 3}}, "cannot be a variable"),
        (["ls"], {"timeout": 0}, "timeout=0"),
        (["ls"], {"timeout": float("nan")}, "timeout=nan"),
        (["ls"], {"colour": "red"}, "colour"),
        (["ls"], {"retries": -1}, "retries=-1"),
        (["ls"], {"outputs": [str(n) for n in range(5000)]}, "5,000 outputs"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(words: Any, more: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        daws.command(words, **more)


def test_two_inputs_of_one_name_are_refused(cluster: Cluster, words: Path, tmp_path: Path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "words.txt"
    other.write_text("x")
    with pytest.raises(UsageError, match=r"two inputs are named 'words\.txt'"):
        daws.command(["cat", File(words), File(other)])
    unknown = cluster.submit(File, str(other))
    with pytest.raises(UsageError, match=r"two inputs are named 'words\.txt'"):
        cluster.run(["cat", File(words), unknown]).result(60)
    assert cluster.run(["cat", File(words), File(other, name="x")]).result(60).text.endswith("x")


def test_words_that_turn_out_to_be_no_words(cluster: Cluster):
    with pytest.raises(UsageError, match="word 1 of the command is a list"):
        cluster.run(["echo", cluster.submit(list, "abc")]).result(60)


def test_python_programs_find_their_interpreter(cluster: Cluster):
    assert cluster.run([sys.executable, "-c", "print(1)"]).result(60).text == "1\n"


@pytest.mark.parametrize("around", ["exec >&-", "exec >&- 2>&-", "cd $(mktemp -d) && rmdir $PWD"])
def test_clients_without_an_output_or_a_folder_can_run_programs(tmp_path: Path, around: str):
    made = tmp_path / "made"
    script = tmp_path / "script.py"
    script.write_text(
        "import daws, pathlib\n"
        "with daws.Cluster(1) as cluster:\n"
        "    done = cluster.run(['sh', '-c', 'echo hello && echo there >&2']).result()\n"
        f"    pathlib.Path({str(made)!r}).write_bytes(done.stdout + done.stderr)\n"
    )
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    subprocess.run(["sh", "-c", f'{around}; "$0" "$1"', sys.executable, script], env=env, check=True, timeout=60)
    said = made.read_text()
    assert said.startswith("hello\n") and said.endswith("there\n")  # between them a shell may miss its folder
