"""Keys are made whole or not at all, and used only while nobody else can read them."""

import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daws.model.errors import ClusterError, UnavailableError
from daws.net import folder as folder_module
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster
from daws.net.keys import Keys, good_until, roles_of

LAB = ClusterConfig(name="lab")


def test_a_new_folder_is_its_owners_alone(cluster: Path):
    assert cluster.stat().st_mode & 0o777 == 0o700
    names = {path.name: path.stat().st_mode & 0o777 for path in cluster.iterdir()}
    wanted = [f"{name}.{kind}" for name in ("ca", "client", "node") for kind in ("key", "pem")]
    assert names == dict.fromkeys([*wanted, "cluster.toml"], 0o600)
    assert ClusterConfig.load(cluster) == LAB
    for role in ("node", "client"):
        Keys(cluster, role).check()
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert tomorrow - timedelta(hours=1) < good_until(cluster) <= tomorrow


def test_what_exists_is_not_touched(tmp_path: Path):
    (tmp_path / "mine").write_text("")
    for path in (tmp_path, tmp_path / "mine", tmp_path / "nowhere" / "x"):
        with pytest.raises(ClusterError):
            init_cluster(path, LAB)
    with pytest.raises(ClusterError, match="name ''"):
        init_cluster(tmp_path / "new", ClusterConfig(name=""))
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


def test_half_a_folder_is_none(tmp_path: Path, monkeypatch):
    write = folder_module._write

    def full(path: Path, content: bytes, written: list[Path]) -> None:
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        write(path, content, written)

    monkeypatch.setattr(folder_module, "_write", full)
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        with pytest.raises(OSError, match="No space"):
            init_cluster(tmp_path / name, LAB)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_without_cryptography_it_is_named(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UnavailableError, match=r"pip install 'daws\[cluster\]'"):
        init_cluster(tmp_path / "new", LAB)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def own(tmp_path: Path) -> Path:
    init_cluster(tmp_path / "own", LAB)
    return tmp_path / "own"


def test_keys_that_others_can_read_are_not_used(own: Path):
    for path, mode, cure in ((own / "node.key", 0o640, "600"), (own, 0o750, "700")):
        path.chmod(mode)
        with pytest.raises(ClusterError, match=rf"open to others.* chmod {cure} {path}"):
            Keys(own, "node")
        path.chmod(int(cure, 8))
    Keys(own, "node")


def test_a_client_needs_no_more_than_its_own(own: Path):
    for name in ("ca.key", "node.key", "node.pem"):
        (own / name).unlink()
    keys = Keys(own, "client")
    assert keys.client.verify_mode is ssl.CERT_REQUIRED
    assert keys.client.minimum_version is ssl.TLSVersion.TLSv1_3
    with pytest.raises(ClusterError, match="cannot be used to listen"):
        _ = keys.server
    with pytest.raises(ClusterError, match=r"node\.key: No such file"):
        Keys(own, "node")
    with pytest.raises(ClusterError, match="roles are node, client"):
        Keys(own, "king")


def test_keys_that_do_not_fit_are_named(own: Path, other: Path):
    (own / "node.pem").write_bytes((other / "node.pem").read_bytes())
    with pytest.raises(ClusterError, match=r"keys of a node cannot be read: .*mismatch"):
        Keys(own, "node").check()
    (own / "ca.pem").write_bytes(b"nonsense")
    with pytest.raises(ClusterError, match="cannot be read"):
        Keys(own, "client").check()
    with pytest.raises(ClusterError, match=r"ca\.pem cannot be read"):
        good_until(own)


def test_certificates_say_who_may_be_what():
    def certificate(*units: str) -> dict[str, object]:
        return {"subject": ((("organizationName", "lab"),), *((("organizationalUnitName", unit),) for unit in units))}

    assert roles_of(certificate("node")) == {"node", "store"}
    assert roles_of(certificate("client")) == {"client"}
    assert roles_of(certificate("king")) == roles_of(certificate()) == roles_of({}) == roles_of(None) == set()
