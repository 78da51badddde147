"""Files that daws reads and that something has changed, by seed: each is read as it was, or refused in one line."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from daws.cli import main
from daws.data.local import LocalModule
from daws.data.memo import MemoFolder, Note
from daws.data.shipping import Shipment, unpack
from daws.model.errors import DamagedObjectError, DawsError, LogError
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.net.keys import Keys, good_until
from tests.unit.store.log.test_opening import opened, read_back, written
from tests.unit.store.log.worlds import calls

SEEDS = 150


def damaged(data: bytes, random: Random) -> bytes:
    """Cut off, turned, overwritten, doubled, or something else in the middle."""
    at = random.randrange(len(data)) if data else 0
    way = random.randrange(6)
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
    if way == 2:
        return data[:at] + random.randbytes(random.randrange(1, 40)) + data[at + random.randrange(1, 40) :]
    if way == 3:
        return data[:at] + data[at // 2 : at] + data[at:]
    if way == 4:
        return data[at:] + data[:at]
    return data[:at] + b"\0" * random.randrange(1, 5000) + data[at:]


def refused(attempt: Callable[[], object]) -> bool:
    """Was it refused as it should be? Anything else that it raises is a failure of the test."""
    try:
        attempt()
    except DawsError as error:
        text = str(error)
        assert text and "\n" not in text and "Traceback" not in text, text
        return True
    return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "cluster"
    init_cluster(folder, ClusterConfig(name="lab"))
    return folder


def whole(folder: Path) -> None:
    """Read all that a node or a client reads of a cluster's folder."""
    ClusterConfig.load(folder)
    Keys(folder, "node").check()
    Keys(folder, "client").check()
    good_until(folder)


def test_cluster_files(cluster: Path, tmp_path: Path):
    """Its configuration, its certificates and its keys."""
    folder = tmp_path / "cluster"
    shutil.copytree(cluster, folder)
    names = sorted(path.name for path in folder.iterdir())
    assert "cluster.toml" in names and "ca.pem" in names
    count = 0
    for seed in range(SEEDS):
        random = Random(seed)
        name = random.choice(names)
        (folder / name).write_bytes(damaged((cluster / name).read_bytes(), random))
        count += refused(lambda: whole(folder))
        (folder / name).write_bytes((cluster / name).read_bytes())
    assert count > SEEDS // 3 and not refused(lambda: whole(folder))
    (folder / "ca.pem").write_bytes((cluster / "node.pem").read_bytes())
    assert refused(lambda: good_until(folder)), "a certificate, but none of an authority"


def test_a_command_with_a_damaged_cluster_says_one_line(
    cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "cluster"
    shutil.copytree(cluster, folder)
    for damage in (b"", b"\xff\xfe", b"name = [", b'name = "lab"\nprotocol = 99999999999999999999999\n', b"[" * 5000):
        (folder / "cluster.toml").write_bytes(damage)
        for command in (["nodes"], ["sessions"], ["node"], ["drain", "0"]):
            assert main([command[0], "--cluster", str(folder), *command[1:]]) != 0
            said = capsys.readouterr()
            assert not said.out and said.err.count("\n") == 1 and said.err.startswith("daws: ")


def test_shipped_modules(tmp_path: Path):
    own = [("mine", False, b"x = 1\n"), ("package", True, b""), ("package.part", False, b"y = 2\n" * 50)]
    good = Shipment([LocalModule(name, f"/x/{name}.py", is_package, source) for name, is_package, source in own])
    for seed in range(SEEDS):
        folder = tmp_path / "inside" / str(seed)
        packed = damaged(good.packed, Random(seed))
        try:
            unpack(packed, str(folder), good.digest)
        except DamagedObjectError as error:
            assert "\n" not in str(error) and not folder.exists()
        else:
            assert (folder / "package/part.py").read_bytes() == own[2][2], "what is behind the end is not looked at"
    assert not list(tmp_path.glob("inside/*.part")), "no half of anything is left"


def test_a_log_that_was_shortened(tmp_path: Path):
    """State and log: refused, or what is read is all that was there before the damage."""
    some = list(calls(6, 40, tasks=6))
    files = written(tmp_path / "good", some, 4)
    files.close()
    newest = max(int(path.name.partition(".")[2]) for path in (tmp_path / "good").glob("log.*"))
    store, files = opened(tmp_path / "good")
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from daws.store.log.compact import main; main(*sys.argv[1:])",
            str(tmp_path / "good"),
            str(newest + 1),
        ],
        check=True,
    )
    for call in calls(7, 8, tasks=2):
        store.apply(*call)
    files.close()
    good = read_back(tmp_path / "good")
    names = sorted(path.name for path in (tmp_path / "good").iterdir())
    assert any(name.startswith("state.") for name in names)
    count = 0
    for seed in range(SEEDS):
        random = Random(seed)
        folder = tmp_path / f"bad-{seed}"
        shutil.copytree(tmp_path / "good", folder)
        name = random.choice([name for name in names if name.startswith("state.")])
        (folder / name).write_bytes(damaged((folder / name).read_bytes(), random))
        try:
            assert read_back(folder) == good
        except LogError as error:
            assert "\n" not in str(error)
            count += 1
        shutil.rmtree(folder)
    assert count > SEEDS // 2


def test_notes_and_entries_of_a_memo_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    good = MemoFolder(tmp_path / "good")
    keys = [f"{number:02x}" * 16 for number in range(4)]
    for key in keys:
        good.keep(key, "mine.f", [b"small", bytes(3000)])
        good.note("mine.f", Note(key, {"code": "a"}, [("x", "b")]))
    for seed in range(SEEDS // 3):
        random, folder = Random(seed), tmp_path / str(seed)
        shutil.copytree(good.path, folder)
        for path in sorted(folder.rglob("*")):
            if path.is_file() and random.random() < 0.7:
                path.write_bytes(damaged(path.read_bytes(), random))
        for options in ([], ["--check"], ["--json"]):
            assert main(["memo", str(folder), *options]) in (0, 1)
            assert "Traceback" not in capsys.readouterr().err
        found = MemoFolder(folder)
        for key in keys:
            entry, _ = found.find(key)
            assert entry is None or [bytes(one) for one in entry.outputs] == [b"small", bytes(3000)]
        found.note("mine.f", Note(keys[0], {}, []))
        shutil.rmtree(folder)
