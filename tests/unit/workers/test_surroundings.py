import os
from collections.abc import Iterator

import pytest

from daws.wire.worker import RunOptions
from daws.workers.signs import Signs
from daws.workers.surroundings import THREAD_VARIABLES, Surroundings


@pytest.fixture
def surroundings() -> Iterator[Surroundings]:
    before = dict(os.environ)
    yield Surroundings(Signs())
    os.environ.clear()
    os.environ.update(before)


def test_one_core_unless_said_otherwise(surroundings: Surroundings):
    assert [os.environ[name] for name in THREAD_VARIABLES] == ["1"] * len(THREAD_VARIABLES)


def test_what_one_run_asks_for_is_taken_back(surroundings: Surroundings):
    os.environ["DAWS_TEST_OLD"] = "old"
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    wanted = (("DAWS_TEST_OLD", "new"), ("DAWS_TEST_NEW", "new"), ("OMP_NUM_THREADS", "7"))
    surroundings.change(RunOptions(cores=2, devices=(), environment=wanted))
    assert [os.environ[name] for name, _ in wanted] == ["new", "new", "7"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert os.environ["MKL_NUM_THREADS"] == "2"
    surroundings.change(None)
    assert not surroundings.is_changed
    assert os.environ["DAWS_TEST_OLD"] == "old"
    assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert not {"DAWS_TEST_NEW", "CUDA_VISIBLE_DEVICES"} & os.environ.keys()
