from pathlib import Path

import pytest

from tests.unit.formats.samples import Read, Refuse, read_in, refusal_in


@pytest.fixture
def read(tmp_path: Path) -> Read:
    return lambda content: read_in(tmp_path, content)


@pytest.fixture
def refusal(tmp_path: Path) -> Refuse:
    return lambda content: refusal_in(tmp_path, content)
