"""A session in folders of the test: in memory where that can be, so that leases and links are real."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from daws.data.session import SessionFolders, default_memory


@pytest.fixture
def bases(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A base for memory and one for scratch; nothing else in them."""
    memory = Path(tempfile.mkdtemp(prefix="test-daws-", dir=default_memory() or tmp_path))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    yield memory, scratch
    shutil.rmtree(memory)


@pytest.fixture
def session(bases: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionFolders]:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with SessionFolders(*bases) as session:
        yield session
    assert not any(os.listdir(base) for base in bases)
