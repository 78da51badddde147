import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from daws.data import limits
from daws.data.limits import check_open_files, default_limit_bytes, file_system_of, free_bytes, memory_bytes, with_cure
from daws.model.errors import UnavailableError


def test_a_container_has_less_memory_than_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = memory_bytes()
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(limits, "_CGROUP_LIMITS", (str(tmp_path / "absent"), str(limit)))
    limit.write_text("max\n")
    assert memory_bytes() >= whole
    limit.write_text("1000000\n")
    assert memory_bytes() == 1_000_000


def test_too_few_open_files_are_refused_with_a_cure():
    script = (
        "import resource, daws\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))\n"
        "daws.Cluster(1).close()\n"
        "try:\n    daws.Cluster(200)\nexcept daws.DawsError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == (
        "only 300 files may be open at one time, and 200 workers need 664; raise the limit (ulimit -n 664) or have "
        "fewer workers\n"
    ), done.stderr


def test_a_node_of_threads_needs_files_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (20, 20))
    with pytest.raises(
        UnavailableError, match=r"only 20 files .* a node needs 256; raise the limit \(ulimit -n 256\)$"
    ):
        check_open_files(0)


@pytest.mark.parametrize(
    ("number", "cure"), [(errno.EMFILE, "ulimit -n"), (errno.ENOSPC, "set TMPDIR"), (errno.EPERM, "not permitted")]
)
def test_errors_of_the_system_name_what_helps(number: int, cure: str):
    assert cure in with_cure(OSError(number, os.strerror(number)))


def test_objects_get_a_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "memory_bytes", lambda: 1000)
    assert default_limit_bytes(tmp_path, tmp_path) == 300
    assert default_limit_bytes(tmp_path, tmp_path, nodes=3) == 100
    monkeypatch.setattr(limits, "free_bytes", lambda folder: 100)
    assert default_limit_bytes(tmp_path, tmp_path) == 80  # the file system has less than the share
    assert default_limit_bytes(None, tmp_path) == 90


def test_the_innermost_mount_says_what_kind_it_is():
    assert file_system_of("/proc/self/mounts") == "proc"
    assert free_bytes("/") >= 0
