"""`daws nodes`, `submit`, `wait`, `sessions`, `drain` on a cluster of one node; and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from daws.cli import main
from daws.cli.node import _host
from daws.client import admin
from daws.client.admin import NodeDescription
from daws.client.connect import connect
from daws.model.errors import UnavailableError
from tests.unit.runtime.cluster.machines import DEADLINE_S, Machines, free_port


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with Machines(tmp_path_factory.mktemp("one")) as machines:
        machines.node(2, "processes")
        machines.wait_for(1)
        yield machines


@pytest.fixture
def daws(machines: Machines, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """A command; answers its exit code and what it printed."""
    monkeypatch.setenv("DAWS_CLUSTER", str(machines.folder))

    def run(*words: str) -> tuple[int, str, str]:
        code = main(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_nodes_are_listed(daws):
    code, out, _ = daws("nodes")
    assert code == 0
    assert "127.0.0.1:" in out and "2 executors" in out
    code, out, _ = daws("nodes", "--json")
    (found,) = json.loads(out)
    assert found.keys() == {"node", "address", "executors", "contexts"}
    assert (found["executors"], found["contexts"]) == (2, {})


def test_an_array_of_commands_is_submitted_waited_for_and_forgotten(daws):
    code, name, _ = daws("submit", "--array", "3-12", "--", "sh", "-c", "echo $DAWS_ARRAY is {}")
    assert code == 0
    code, out, err = daws("wait", name.strip(), "--timeout", str(DEADLINE_S))
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{number} is {number}" for number in range(3, 13)]
    code, _, err = daws("wait", name.strip())
    assert code == 2
    assert "there is no session" in err


def test_failed_commands_are_told_and_sessions_are_listed_and_ended(daws):
    assert daws("submit", "--session", "bad", "--array", "1-2", "--", "sh", "-c", "echo oh; exit {}")[0] == 0
    code, out, err = daws("wait", "bad", "--keep", "--timeout", str(DEADLINE_S))
    assert code == 1
    assert out == "oh\noh\n"
    assert "2 of 2 tasks failed" in err
    assert daws("sessions")[1].startswith("bad ")
    code, out, _ = daws("sessions", "--json")
    (found,) = json.loads(out)
    assert found.keys() == {"session", "kept", "attached", "since", "waiting", "done", "failed"}
    assert {"session": "bad", "failed": 2, "done": 0, "kept": True}.items() <= found.items()
    assert daws("sessions", "--end", "bad")[0] == 0
    assert daws("sessions")[1] == "there are no sessions: no client is connected, and no session is kept\n"
    assert daws("sessions", "--json") == (0, "[]\n", "")


def test_a_wait_that_takes_too_long_gives_up_and_leaves_the_session(daws):
    assert daws("submit", "--session", "slow", "--", "sleep", "600")[0] == 0
    code, out, err = daws("wait", "slow", "--timeout", "0.1")
    assert (code, out, err) == (124, "", "daws: 1 of 1 task has not ended after 0.1 s\n")
    assert daws("sessions", "--end", "slow") == (0, "", "")


def test_what_is_refused_leaves_no_session_behind(daws):
    assert daws("submit", "--session", "held", "--", "true")[0] == 0
    for more in ((), ("--session", "held")):
        code, out, err = daws("submit", *more, "--cores", "64", "--", "true")
        assert (code, out) == (2, "")
        assert "no executor offers 64 cores" in err
    assert [line.split()[0] for line in daws("sessions")[1].splitlines()] == ["held"], "it was there before"
    assert daws("sessions", "--end", "held")[0] == 0


def test_a_command_runs_where_it_was_submitted(daws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    _, name, _ = daws("submit", "--", "sh", "-c", "echo here > there")
    assert daws("wait", "--quiet", name.strip(), "--timeout", str(DEADLINE_S)) == (0, "", "")
    assert (tmp_path / "there").read_text() == "here\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("submit",), "give a command behind '--'"),
        (("submit", "--array", "5-1", "--", "true"), "expected FIRST-LAST"),
        (("drain", "99"), "there is no node 99"),
        (("sessions", "--end", "nobody"), "there is no session 'nobody'"),
        (("node", "--executors", "0"), "whole number from 1 to"),
        (("node", "--context", "gpu"), "expected LABEL=N"),
        (("node", "--bind", "0.0.0.0"), "give the address by which other nodes reach"),
        (("node", "--bind", "[::]"), "give the address by which other nodes reach"),
        (("node", "--bind", "127.0.0.1:7000"), "leave out the port; node_ports in cluster.toml"),
        (("node", "--bind", "/tmp/socket"), "expected an address of this machine"),
        (("node", "--memory-gb", "0"), "--memory-gb 0: give more than 0"),
        (("node", "--leave-within", "-1"), "--leave-within -1: give a number of seconds"),
        (("store", "--idle", "-1"), "--idle -1: give a number of seconds"),
        (("drain", "1", "--within", "-1"), "--within -1: give a number of seconds"),
        (("wait", "any", "--timeout", "-1"), "--timeout -1: give a number of seconds"),
        (("nodes", "--cluster", "/nowhere"), "there is no cluster.toml"),
        (("store",), "runs already"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(daws, words: tuple[str, ...], line: str):
    code, out, err = daws(*words)
    assert code in (1, 2)
    assert out == ""
    assert line in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "host"), [("10.0.0.1", "10.0.0.1"), ("::1", "::1"), ("[::1]", "::1"), ("host", "host")]
)
def test_a_node_is_bound_to_an_address_of_either_kind(text: str, host: str):
    assert _host(text) == host


def test_what_no_node_could_take_is_refused_and_leaves_no_session_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("daws.runtime.cluster.joined.FAREWELL_S", 0.5)
    with Machines(tmp_path) as machines:
        where = ("--cluster", str(machines.folder))
        assert main(["submit", *where, "--session", "early", "--array", "1-3", "--", "true"]) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert "3 tasks of session 'early' are lost: there are no nodes to take them; 'daws node' starts" in said.err
        assert main(["sessions", *where]) == 0
        assert capsys.readouterr().out.startswith("there are no sessions")


def test_a_drained_node_is_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with Machines(tmp_path) as machines:
        machines.node()
        machines.node()
        nodes = machines.wait_for(2).nodes
        for number, more in zip(nodes, ([], ["--quiet"]), strict=True):
            words = ["drain", str(number), "--cluster", str(machines.folder), "--wait", "--within", "30"]
            assert main([*words, *more]) == 0
            said = capsys.readouterr()
            line = f"node {number} leaves within 30 s; 'daws nodes' shows it until it is gone\nnode {number} is gone\n"
            assert (said.out, said.err) == ("" if more else line, "")
            assert main([*words, *more]) == 2
            assert f"there is no node {number}" in capsys.readouterr().err


def test_waiting_for_a_node_that_stays_ends(monkeypatch: pytest.MonkeyPatch):
    stays, gone = [NodeDescription(3, "", 1, {})], list[NodeDescription]()
    silent = UnavailableError("the store does not answer", retry=True)
    answers: Iterator[list[NodeDescription] | UnavailableError] = iter([stays, silent, stays, gone])

    def list_nodes(folder: object) -> list[NodeDescription]:
        answer = next(answers)
        if isinstance(answer, UnavailableError):
            raise answer
        return answer

    monkeypatch.setattr(admin, "list_nodes", list_nodes)
    admin.wait_until_gone("lab", 3)
    monkeypatch.setattr(admin, "GRACE_S", 0.0)
    for last, said in ((stays, "node 3 is still there after 0 s"), (silent, "does not answer")):
        answers = iter([last])
        with pytest.raises(UnavailableError, match=said):
            admin.wait_until_gone("lab", 3, within_s=0)


def test_a_machine_that_is_not_found_is_one_of_cluster_toml(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "lab"
    assert main(["cluster", "init", str(folder), "--host", "no.such.invalid"]) == 0
    capsys.readouterr()
    for words in (["node"], ["nodes"], ["store"]):
        assert main([*words, "--cluster", str(folder)]) == 1
        said = capsys.readouterr().err.splitlines()[-1]
        assert f"'hosts' in {folder}/cluster.toml names a machine that is not found: no.such.invalid (" in said
    with pytest.raises(UnavailableError, match="names a machine that is not found: no"):
        connect(folder, timeout=1)


def test_which_cluster_has_to_be_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DAWS_CLUSTER", raising=False)
    assert main(["nodes"]) == 2
    assert "--cluster DIR" in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = str(tmp_path / "lab")
    assert main(["cluster", "init", folder, "--port", str(free_port())]) == 0
    capsys.readouterr()
    for words in (["nodes", "--json"], ["sessions", "--json"], ["drain", "0"]):
        assert main([*words, "--cluster", folder]) == 1
        said = capsys.readouterr()
        assert said.out == "" and said.err.startswith("daws: error: the store does not answer")
        assert said.err.count("\n") == 1
