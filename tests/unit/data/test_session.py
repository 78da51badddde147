import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daws.data import session as module
from daws.data.session import UNBORN_S_MAX, SessionFolders, default_memory, default_scratch, sweep
from daws.model.errors import UnavailableError

Bases = tuple[Path, Path]

CHILD = """
import sys, time
from pathlib import Path
from daws.data.session import SessionFolders
session = SessionFolders(*map(Path, sys.argv[1:3]))
(session.scratch / "left").write_text("x")
session.node_folders(3)
print("ready", flush=True)
"""


@pytest.fixture(autouse=True)
def no_runtime_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


def start(bases: Bases, then: str) -> "subprocess.Popen[str]":
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD + then, *map(str, bases)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def entries(bases: Bases) -> list[str]:
    return [name for base in bases for name in os.listdir(base)]


def test_folders_are_private_and_go_away(bases: Bases):
    with SessionFolders(*bases) as session:
        assert session.memory is not None and session.memory.parent == bases[0] and session.run == session.memory
        for folder in (session.memory, session.scratch, *session.node_folders(2)):
            assert folder is not None and stat.S_IMODE(folder.stat().st_mode) == 0o700
        (session.scratch / "x").write_text("x")
    assert entries(bases) == []
    session.close()
    assert "closed" in repr(session)


@pytest.mark.parametrize(
    "then", ["", "raise SystemExit(3)", "1 / 0", "import signal; signal.raise_signal(signal.SIGINT)"]
)
def test_nothing_is_left_after_any_normal_end(bases: Bases, then: str):
    child = start(bases, then)
    child.communicate()
    assert entries(bases) == []


def test_leftovers_of_a_killed_process_are_swept(bases: Bases):
    child = start(bases, "time.sleep(100)")
    assert len(entries(bases)) == 2
    assert sweep(*bases) == []  # it lives
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert len(entries(bases)) == 2
    with SessionFolders(*bases) as session:
        assert {session.memory and session.memory.name, session.scratch.name} == set(entries(bases))
    assert entries(bases) == []


def test_the_folders_of_a_living_session_are_never_swept(bases: Bases):
    child = start(bases, "input(); print((session.scratch / 'left').read_text())")
    for _ in range(3):
        SessionFolders(*bases).close()
    assert child.communicate("\n")[0] == "x\n"


def test_a_reused_pid_deceives_nobody(bases: Bases):
    """The folder of a dead session is named after a process that lives: ours."""
    left = bases[1] / f"daws-{os.getuid()}-{os.getpid()}-0123abcd"
    left.mkdir(mode=0o700)
    assert sweep(*bases) == [left]


def test_what_others_made_is_left_alone(bases: Bases, tmp_path: Path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "x").write_text("x")
    uid = os.getuid()
    (bases[1] / f"daws-{uid + 1}-1-0123abcd").mkdir()
    (bases[1] / f"daws-{uid}-1-0123abcd-mine").mkdir()
    (bases[1] / "daws").mkdir()
    (bases[1] / f"daws-{uid}-2-0123abcd").write_text("a file")
    (bases[1] / f"daws-{uid}-3-0123abcd").symlink_to(precious)
    (bases[1] / f".daws-{uid}-4-0123abcd").mkdir()  # somebody is just about to lock it
    before = sorted(os.listdir(bases[1]))
    assert sweep(*bases) == [] and sorted(os.listdir(bases[1])) == before
    assert (precious / "x").read_text() == "x"


def test_folders_that_were_never_finished_are_swept_when_they_are_old(bases: Bases):
    old = bases[1] / f".daws-{os.getuid()}-4-0123abcd"
    old.mkdir()
    then = time.time() - UNBORN_S_MAX - 10
    os.utime(old, (then, then))
    assert sweep(*bases) == [old]


def test_many_sessions_start_at_once(bases: Bases):
    children = [start(bases, "input(); assert (session.scratch / 'left').exists()") for _ in range(2)]
    more = [
        subprocess.Popen([sys.executable, "-c", CHILD, *map(str, bases)], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for child in more:
        assert child.communicate()[0] == "ready\n" and child.returncode == 0
    for child in children:
        _, errors = child.communicate("\n")
        assert child.returncode == 0, errors
    assert entries(bases) == []


def test_a_forked_child_removes_nothing(bases: Bases):
    child = start(
        bases,
        """
import os
pid = os.fork()
if not pid:
    session.close()
    sys.exit()
os.waitpid(pid, 0)
print((session.scratch / 'left').read_text())
""",
    )
    assert child.communicate()[0] == "x\n"
    assert entries(bases) == []


def test_where_locks_do_not_work_sessions_still_do(bases: Bases, monkeypatch: pytest.MonkeyPatch):
    def refuse(fd: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with SessionFolders(*bases) as session:
        with SessionFolders(*bases):
            assert session.scratch.exists()
        assert session.scratch.exists()
    assert entries(bases) == []


def test_a_base_that_is_not_there_is_one_clear_line(bases: Bases, tmp_path: Path):
    with pytest.raises(UnavailableError, match=r"cannot make a folder in .*nowhere.*; set TMPDIR"):
        SessionFolders(bases[0], tmp_path / "nowhere")
    assert entries(bases) == []


def test_the_runtime_folder_is_used_for_sockets(bases: Bases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    with SessionFolders(*bases) as session:
        assert session.run.parent == runtime
    assert os.listdir(runtime) == []
    monkeypatch.setenv("XDG_RUNTIME_DIR", "not/absolute")
    with SessionFolders(*bases) as session:
        assert session.run == session.memory


def test_small_memory_file_systems_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(module, "free_bytes", lambda folder: 64 << 20)
    assert default_memory() is None
    monkeypatch.setattr(module, "MEMORY_BASE", tmp_path / "nowhere")
    assert default_memory() is None


def test_scratch_is_on_disk_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    kinds = {"/tmp": "tmpfs", "/var/tmp": "ext4", str(tmp_path): "tmpfs"}
    monkeypatch.setattr(module, "file_system_of", lambda path: kinds[str(path)])
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    monkeypatch.delenv("TMPDIR", raising=False)
    assert default_scratch() == Path("/var/tmp")
    kinds["/var/tmp"] = "tmpfs"
    assert default_scratch() == Path("/tmp")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert default_scratch() == tmp_path
