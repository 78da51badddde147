"""Addresses as they are typed and as they travel."""

from errno import ENETUNREACH
from pathlib import Path

import pytest

from daws.model.errors import UnavailableError, UsageError
from daws.net.address import ELSEWHERE, Tcp, Unix, check_private, host_towards, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", Tcp("127.0.0.1", 80)),
        ("[::1]:65535", Tcp("::1", 65535)),
        ("node-7.lab:0", Tcp("node-7.lab", 0)),
        ("/run/daws/socket", Unix("/run/daws/socket")),
    ],
)
def test_they_are_read_and_written(text: str, address: Tcp | Unix):
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "host", ":80", "host:", "host:65536", "host:-1", "::1:80", "host:8²", "a:b", "[]:1"]
)
def test_nonsense_is_refused(text: str):
    with pytest.raises(UsageError, match="expected host:port"):
        parse_address(text)


def test_paths_that_no_socket_can_have():
    with pytest.raises(UsageError, match="too long"):
        parse_address("/" + "x" * 107)


def test_private_means_private(tmp_path: Path):
    tmp_path.chmod(0o700)
    check_private(f"{tmp_path}/socket")
    for mode in (0o701, 0o710, 0o740):
        tmp_path.chmod(mode)
        with pytest.raises(UsageError, match="chmod 700"):
            check_private(f"{tmp_path}/socket")
    with pytest.raises(UsageError, match="No such file"):
        check_private(f"{tmp_path}/nowhere/socket")


def test_a_machine_has_the_address_by_which_it_reaches_a_host():
    assert [host_towards(host) for host in ("127.0.0.1", "127.0.0.2", "localhost")] == ["127.0.0.1"] * 3
    with pytest.raises(UnavailableError, match=r"^no such host: .*; give the address .* with --bind"):
        host_towards("no such host")


def test_a_name_that_is_a_loopback_address_on_its_own_machine_is_not_taken(monkeypatch: pytest.MonkeyPatch):
    own = {"login1": "127.0.1.1", ELSEWHERE: "10.0.0.7"}
    monkeypatch.setattr("daws.net.address._own_address", own.__getitem__)
    assert host_towards("login1") == "10.0.0.7"

    def no_network(host: str) -> str:
        if host == ELSEWHERE:
            raise OSError(ENETUNREACH, "Network is unreachable")
        return own[host]

    monkeypatch.setattr("daws.net.address._own_address", no_network)
    assert host_towards("login1") == "127.0.1.1"
