"""Servers for the tests beside this file."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.valkey import LocalServer

_numbers = itertools.count()
Start = Callable[..., LocalServer]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers; they are ended with the test."""
    servers: list[LocalServer] = []

    def start_one(*options: str, **more: object) -> LocalServer:
        servers.append(LocalServer(tmp_path / f"server-{len(servers)}", *options, **more))  # type: ignore[arg-type]
        return servers[-1]

    yield start_one
    for server in servers:
        server.kill()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """One server for all who only need some store."""
    server = LocalServer(tmp_path_factory.mktemp("valkey"))
    yield server
    server.kill()


@pytest.fixture
def name() -> str:
    """Of a store that nobody else uses."""
    return f"store-{next(_numbers)}"
