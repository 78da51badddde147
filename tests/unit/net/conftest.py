"""Folders of clusters that tests share: making keys takes a while."""

from pathlib import Path

import pytest

from daws.net.complaints import COMPLAINTS
from daws.net.config import ClusterConfig
from daws.net.folder import init_cluster


@pytest.fixture(autouse=True)
def _nothing_was_complained_of_before() -> None:
    COMPLAINTS.__init__()  # type: ignore[misc]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory, "lab")


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with the same name."""
    return made(tmp_path_factory, "lab")


def made(factory: pytest.TempPathFactory, name: str, days: float = 1) -> Path:
    folder = factory.mktemp("net") / "cluster"
    init_cluster(folder, ClusterConfig(name=name), days)
    return folder
