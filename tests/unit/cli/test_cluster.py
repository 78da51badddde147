"""`daws cluster` makes a folder, shows it, and refuses in one line."""

from pathlib import Path

import pytest

from daws.cli import main
from daws.client.admin import name_for
from daws.net.config import ClusterConfig


def test_makes_and_shows(tmp_path: Path, capsys):
    folder = tmp_path / "my lab"
    typed = ["--host", "10.0.0.1", "--host", "10.0.0.2", "--store", "redis://me:secret@10.0.0.1:6379", "--port", "7000"]
    assert main(["cluster", "init", str(folder), *typed]) == 0
    assert str(folder) in capsys.readouterr().out
    config = ClusterConfig.load(folder)
    assert (config.name, config.hosts, config.port) == ("my-lab", ("10.0.0.1", "10.0.0.2"), 7000)
    assert main(["cluster", "show", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "redis://me:***@10.0.0.1:6379" in said and "secret" not in said
    assert "node and client, good until 20" in said


def test_everything_is_on_the_loopback_unless_told_otherwise(tmp_path: Path):
    assert main(["cluster", "init", str(tmp_path / "lab"), "--name", "other"]) == 0
    assert ClusterConfig.load(tmp_path / "lab") == ClusterConfig(name="other", hosts=("127.0.0.1",), store="embedded")


def test_an_empty_folder_becomes_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "lab"
    folder.mkdir(mode=0o755)
    monkeypatch.chdir(folder)
    assert main(["cluster", "init", "."]) == 0
    assert ClusterConfig.load(folder).name == "lab" and folder.stat().st_mode & 0o777 == 0o700
    kept = sorted(folder.iterdir())
    assert main(["cluster", "init", "."]) == 2
    assert sorted(folder.iterdir()) == kept


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["init", "/tmp"], "/tmp exists already; a cluster is made in a new or empty folder"),
        (["init", "/dev/null"], "/dev/null exists already"),
        (["init", "new", "--store", "mysql://"], "store 'mysql://'"),
        (["init", "new", "--port", "70000"], "port 70000: expected 1 to 65535"),
        (["init", "new", "--port", "x"], "not a whole number"),
        (["init", "new", "--name", "a b"], "name 'a b'"),
        (["init", "new", "--host", "a/b"], "'a/b' is not a name"),
        (["init", "nowhere/new"], "No such file"),
        (["init"], "DIR"),
        (["show", "."], "there is no cluster.toml"),
        (["shew", "."], "shew"),
    ],
)
def test_refuses_in_one_line(typed: list[str], says: str, tmp_path: Path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["cluster", *typed])
    except SystemExit as left:
        code = left.code  # type: ignore[assignment]
    said = capsys.readouterr().err
    assert code == 2 and says in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_loose_keys_are_seen(tmp_path: Path, capsys):
    folder = tmp_path / "lab"
    assert main(["cluster", "init", str(folder)]) == 0
    (folder / "client.key").chmod(0o644)
    assert main(["cluster", "show", str(folder)]) == 2
    assert f"chmod 600 {folder}/client.key" in capsys.readouterr().err


def test_alone_it_helps(capsys):
    assert main(["cluster"]) == 0
    assert "daws cluster init ./lab" in capsys.readouterr().out


@pytest.mark.parametrize(("folder", "name"), [("lab", "lab"), ("/a/my lab!", "my-lab"), ("/", "daws"), ("…", "daws")])
def test_names_from_folders(folder: str, name: str):
    assert name_for(Path(folder)) == name
