"""What a cluster is told about itself is read as it was written, or refused in a line that says what would do."""

from pathlib import Path

import pytest

from daws.model.errors import ClusterError, UnavailableError
from daws.net.config import ClusterConfig


@pytest.mark.parametrize(
    "config",
    [
        ClusterConfig(name="lab"),
        ClusterConfig(
            name="a.b_c-1",
            store='rediss://user:p"w\\x@host:6380/2',
            hosts=("10.0.0.1", "fe80::1%eth0", "node-7.example.org"),
            port=1,
            node_ports=(7000, 7099),
            lease_s=2.5,
            idle_s=1.0,
        ),
    ],
)
def test_what_is_written_is_read(config: ClusterConfig, tmp_path: Path):
    (tmp_path / "cluster.toml").write_text(config.to_toml())
    assert ClusterConfig.load(tmp_path) == config


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "name = 'x'\nlease = 3",
            "unknown key .lease.; keys are name, protocol, store, store_ca, store_cert, store_key, store_shards, hosts",
        ),
        ("name = 7", "Expected `str`, got `int` - at `name`"),
        ("port = 1", "missing required field `name`"),
        ("name = 'x y'", "name 'x y': expected up to 64 letters"),
        ("name = ''", "name '': expected"),
        ("name = 'x'\nprotocol = 99", "speaks protocol 99, this daws 8"),
        ("name = 'x'\nstore = 'mysql://h'", "store 'mysql://h': expected 'embedded' or a URL of redis://"),
        ("name = 'x'\nstore = \"redis://a\\nb\"", "expected 'embedded'"),
        ("name = 'x'\nstore = 'redis://u:pw@h:99999/1'", r"store 'redis://u:\*\*\*@h:99999/1': a port is a number"),
        ("name = 'x'\nstore = 'redis://h,redis://h:x'", "store 'redis://h:x': a port is a number"),
        ("name = 'x'\nhosts = []", "hosts: give at least one"),
        ("name = 'x'\nhosts = ['a b']", "'a b' is not a name or an address"),
        ("name = 'x'\nhosts = 'a'", "Expected `array`, got `str` - at `hosts`"),
        ("name = 'x'\nport = 0", "port 0: expected 1 to 65535"),
        ("name = 'x'\nnode_ports = [9, 8]", r"node_ports \[9, 8\]: expected a first and a last"),
        ("name = 'x'\nlease_s = 0.01", "lease_s 0.01: expected 0.1 to 3600 seconds"),
        ("name = 'x'\nlosses_max = 0", "losses_max 0: expected 1 to 1000 nodes"),
        ("name = 'x'\nlease_s = nan", "lease_s nan: expected"),
        ("name = 'x'\nstore_shards = -1", "store_shards -1: expected 1 to 256, or 0 for what suits the server"),
        ("name = 'x'\nstore_shards = 257", "store_shards 257: expected 1 to 256"),
        ("name = 'x'\nstore_shards = 2", "store_shards: the embedded store is in one piece; leave it out"),
        ("name = 'x'\nidle_s = 0", "idle_s 0: expected 1 to"),
        ("name = ", "Invalid value"),
    ],
)
def test_nonsense_is_refused_in_one_line(text: str, why: str, tmp_path: Path):
    (tmp_path / "cluster.toml").write_text(text)
    with pytest.raises(ClusterError, match=why) as refused:
        ClusterConfig.load(tmp_path)
    assert str(refused.value).startswith(f"{tmp_path}/cluster.toml: ") and "\n" not in str(refused.value)


def test_folders_without_a_cluster(tmp_path: Path):
    with pytest.raises(ClusterError) as refused:
        ClusterConfig.load(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: there is no cluster.toml. Is this the right folder? 'daws cluster init' makes a new cluster in a "
        "folder of its own"
    )
    (tmp_path / "cluster.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(ClusterError, match="not UTF-8"):
        ClusterConfig.load(tmp_path)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path):
    (tmp_path / "cluster.toml").write_text("name = 'x'")
    (tmp_path / "other").write_text("")
    with pytest.raises(ClusterError, match=rf"cluster\.toml is a file; give the folder: '{tmp_path}'$"):
        ClusterConfig.load(f"{tmp_path}/cluster.toml")
    with pytest.raises(ClusterError, match=r"other is a file; give the folder of a cluster$"):
        ClusterConfig.load(tmp_path / "other")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (ClusterConfig(name="x", hosts=("no.such.invalid", "b")), "'hosts' in lab/cluster.toml names a machine"),
        (ClusterConfig(name="x", store="redis://127.0.0.1,redis://no.such.invalid:7"), "'store' in lab/cluster.toml"),
    ],
)
def test_a_machine_of_the_store_that_is_not_found_is_named(config: ClusterConfig, said: str):
    with pytest.raises(UnavailableError, match=f"^{said}.*: no.such.invalid [(]") as raised:
        config.check_hosts("lab", UnavailableError("silence", retry=True))
    assert raised.value.retry


def test_nothing_is_said_if_all_machines_are_found():
    for store in ("embedded", "unix:///run/valkey.sock"):
        ClusterConfig(name="x", store=store).check_hosts("lab", UnavailableError("silence", retry=True))


def test_nodes_listen_where_they_may():
    assert list(ClusterConfig(name="lab").binds("127.0.0.1")) == ["127.0.0.1:0"]
    assert list(ClusterConfig(name="lab", node_ports=(7, 9)).binds("::1")) == ["[::1]:7", "[::1]:8", "[::1]:9"]
