"""Commands that are reused: by later clusters, as long as words, environment and inputs are the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import daws
from daws import Cluster, CommandError, File, Out
from tests.unit.client.test_commands import until
from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines

KINDS: list[dict[str, Any]] = [{"workers": 2}, {"workers": 2, "kind": "threads"}, {"workers": 1, "nodes": 2}]
BIG = 200_000
"""Bytes that do not fit into a message."""


class Project:
    """A folder with an input, a memo, and a file in which commands say that they ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = folder / "words.txt"
        self.words.write_text("b\na\n")
        self.memo = folder / "memo"
        self.log = folder / "log"

    def ran(self) -> list[str]:
        found = self.log.read_text().split() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return sorted(found)

    def line(self, name: str, rest: str) -> str:
        return f"echo {name} >> {self.log}; {rest}"

    def pipeline(self, cluster: Any, pad: int = 0, **more: Any) -> str:
        """Two commands and a third that is always run."""
        sort = cluster.run(
            self.line("sort", f"(sort words.txt; head -c {pad} /dev/zero) > sorted.txt"),
            inputs=[File(self.words)],
            outputs=["sorted.txt"],
            memo=True,
            **more,
        )
        first = cluster.run(
            self.line("first", "head -n 1 sorted.txt > first.txt"),
            inputs=[sort.outputs["sorted.txt"]],
            outputs=["first.txt"],
            memo=True,
        )
        count = cluster.run(["wc", "-c", sort.outputs["sorted.txt"], first.outputs["first.txt"]], show=False)
        assert count.result().text.split() == [f"{4 + pad}", "sorted.txt", "2", "first.txt", f"{6 + pad}", "total"]
        result: str = first.outputs["first.txt"].result().read_text()
        return result


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("pad", [0, BIG])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_files_are_there_again_without_running(project: Project, kind: dict[str, Any], pad: int):
    for ran in (["first", "sort"], [], []):
        with Cluster(memo=project.memo, **kind) as cluster:
            assert project.pipeline(cluster, pad) == "a\n"
            assert project.ran() == ran
            assert (cluster.memo.ran, cluster.memo.reused) == (len(ran), 2 - len(ran))


def test_what_changed_runs_again_and_says_why(project: Project):
    def run(*, env: dict[str, str] | None = None, line: str = "sort words.txt") -> str:
        with Cluster(1, kind="threads", memo=project.memo) as cluster:
            future = cluster.run(line, inputs=[File(project.words)], memo=True, env=env, show=False)
            future.result()
            return (future.memo or "").partition(": ")[2]

    assert run() == "it never ran before"
    assert run().startswith(str(project.memo))
    os.utime(project.words)
    assert run().startswith(str(project.memo))  # the same content
    project.words.write_text("c\n")
    assert run() == "input 'words.txt' changed"
    assert run(env={"LC_ALL": "C"}) == "its environment changed"
    assert run(env={"LC_ALL": "C"}, line="sort -r words.txt") == "the command changed"
    project.words.write_text("b\na\n")
    assert run().startswith(str(project.memo))  # as it was at first


def test_options_of_the_cluster_say_it_too(project: Project):
    described = daws.command("sort words.txt", inputs=[File(project.words)], show=False)
    for version, why in (("1", "ran: it never ran before"), ("1", "reused"), ("2", "ran: its memo version changed")):
        with Cluster(1, kind="threads", memo=project.memo) as cluster:
            future = cluster.options(memo=True, version=version).run(described)
            assert future.result().text == "a\nb\n" and (future.memo or "").startswith(why)
    with Cluster(1, kind="threads", memo=project.memo) as cluster:
        view = cluster.options(memo=True, version="2")
        assert (view.run("sort words.txt", inputs=[File(project.words)], show=False).memo or "").startswith("reused")


def test_a_program_of_ones_own_counts_by_its_content(project: Project):
    tool = project.folder / "tool"
    for text, code in (("one", "ran"), ("one", "reused"), ("two", "ran")):
        tool.write_text(f"#!/bin/sh\necho {text} > out\n")
        tool.chmod(0o755)
        with Cluster(1, kind="threads", memo=project.memo) as cluster:
            future = cluster.run([tool], outputs=["out"], memo=True)
            assert future.outputs["out"].result().read_text() == f"{text}\n" and (future.memo or "").startswith(code)


def test_a_memo_that_was_damaged_is_made_again(project: Project):
    with Cluster(1, memo=project.memo) as cluster:
        project.pipeline(cluster, BIG)
    project.ran()
    for path in project.memo.glob("??/*.memo"):
        os.truncate(path, path.stat().st_size - 1)
    with Cluster(1, memo=project.memo) as cluster:
        project.pipeline(cluster, BIG)
        assert project.ran() == ["first", "sort"] and "damaged" in repr(cluster.memo)


def test_a_command_that_failed_is_not_kept(project: Project):
    for _ in range(2):
        with Cluster(1, memo=project.memo) as cluster:
            with pytest.raises(CommandError):
                cluster.run(project.line("bad", "echo half > out; false"), outputs=["out"], memo=True).result()
            assert project.ran() == ["bad"]


def test_the_same_command_at_the_same_time_runs_once(project: Project):
    with Cluster(2, memo=project.memo) as cluster:
        line = project.line("slow", "until test -e go; do sleep 0.01; done; cp go out")
        futures = [cluster.run(line, cwd=None, stdout=Out("out"), memo=True, env={"PWD": "."}) for _ in range(2)]
        assert futures[0] is futures[1]
        cluster.cancel(futures)


def test_files_of_commands_without_memo_count_by_content_once_they_are_there(project: Project):
    for at in range(2):
        with Cluster(1, memo=project.memo) as cluster:
            for size in (3, BIG):
                made = cluster.run(f"head -c {size} /dev/zero > zeros", outputs=["zeros"]).outputs["zeros"]
                early = cluster.run(project.line("early", "wc -c < zeros"), inputs=[made], memo=True, show=False)
                early.result()
                made.exception()
                late = cluster.run(project.line("late", "wc -c < zeros"), inputs=[made], memo=True, show=False)
                assert late.result().text.strip() == str(size)
            assert project.ran().count("late") == (0 if at else 2)


def test_modes_programs_and_functions(project: Project):
    script = "#!/bin/sh\\necho it ran\\n"
    for _ in range(2):
        with Cluster(1, memo=project.memo) as cluster:
            made = cluster.run(
                f"printf '{script}' > tool; chmod 750 tool; printf '{script}' > plain; chmod 640 plain; : > empty",
                outputs=["tool", "plain", "empty"],
                memo=True,
            )
            tool, plain, empty = (made.outputs[name] for name in ("tool", "plain", "empty"))
            assert cluster.run([tool], show=False).result().text == "it ran\n"
            assert cluster.run([plain], show=False).result().text == "it ran\n"
            assert cluster.submit(contents, [tool, empty]).result() == [b"#!/bin/sh\necho it ran\n", b""]
            assert tool.result().path.stat().st_mode & 0o777 == 0o750
            assert plain.result().copy_to(project.folder / "copy").stat().st_mode & 0o777 == 0o640  # type: ignore[union-attr]
            assert empty.result().size_bytes == 0 and "tool" in made.result().outputs


def contents(files: list[File]) -> list[bytes]:
    return [file.read_bytes() for file in files]


def test_a_future_may_be_gone_before_its_reader_runs(project: Project):
    for _ in range(2):
        with Cluster(1, memo=project.memo) as cluster:
            gate = project.folder / "gate"
            blocked = cluster.run(f"until test -e {gate}; do sleep 0.01; done")
            made = cluster.run(f"head -c {BIG} /dev/zero > zeros", outputs=["zeros"], memo=True)
            reader = cluster.run(["wc", "-c", made.outputs["zeros"]], show=False)
            del made
            gate.write_text("")
            assert reader.result().text.split()[0] == str(BIG)
            blocked.result()
            gate.unlink()


def test_a_script_that_was_killed_goes_on_where_it_was(project: Project):
    script = project.folder / "script.py"
    script.write_text(
        "import sys, daws\n"
        "log, go, memo = sys.argv[1:]\n"
        "with daws.Cluster(1, memo=memo) as cluster:\n"
        "    made = cluster.run(f'echo first >> {log}; echo 1 > out', outputs=['out'], memo=True)\n"
        "    made.result()\n"
        "    wait = f'echo second >> {log}; until test -e {go}; do sleep 0.01; done; cat out'\n"
        "    second = cluster.run(wait, inputs=[made.outputs['out']], memo=True, show=False)\n"
        "    print(second.result().text)\n"
    )
    go = project.folder / "go"
    argv = [sys.executable, str(script), str(project.log), str(go), str(project.memo)]
    process = subprocess.Popen(argv)
    assert until(lambda: project.log.exists() and "second" in project.log.read_text())
    assert until(lambda: len(list(project.memo.glob("??/*.memo"))) == 1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert project.ran() == ["first", "second"]
    go.write_text("")
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    assert done.stdout == "1\n\n" and project.ran() == ["second"]


@pytest.mark.parametrize("pad", [0, BIG])
def test_on_a_cluster_of_machines(project: Project, pad: int):
    with Machines(project.folder) as machines:
        machines.node()
        machines.wait_for(1)
        for ran in (["first", "sort"], []):
            with daws.connect(machines.folder, memo=project.memo, timeout=DEADLINE_S) as cluster:
                assert project.pipeline(cluster, pad) == "a\n"
                assert project.ran() == ran
