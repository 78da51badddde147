"""Addresses as they are typed and as they travel."""

from pathlib import Path

import pytest

from daws.model.errors import UsageError
from daws.net.address import Tcp, Unix, check_private, parse_address


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
