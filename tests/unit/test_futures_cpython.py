"""CPython's own tests of executors, where its test package is installed, with ours in the place of theirs."""

import importlib
import unittest
from typing import Any

import pytest

from daws.futures import Executor

HOME = "test.test_concurrent_futures"
pytestmark = pytest.mark.slow
pytest.importorskip(HOME, reason="this Python came without its own tests of executors")


def piece(module: str, name: str) -> Any:
    """A class of theirs: in a package since Python 3.12, in one module before."""
    home = importlib.import_module(HOME)
    return getattr(importlib.import_module(f"{HOME}.{module}") if hasattr(home, "__path__") else home, name)


TheirMixin: Any = piece("util", "ExecutorMixin")
TheirCase: Any = piece("util", "BaseTestCase")

DO_NOT_APPLY = {
    "test_interpreter_shutdown": "its script imports the executor from concurrent.futures; test_futures.py has its own",
    "test_submit_after_interpreter_shutdown": "as above",
    "test_hang_gh83386": "as above",
}


class OurMixin(TheirMixin):  # type: ignore[misc]
    executor_type = Executor
    worker_count = 2

    def setUp(self) -> None:
        reason = DO_NOT_APPLY.get(self._testMethodName)
        if reason is not None:
            raise unittest.SkipTest(reason)
        super().setUp()


class TestExecutor(OurMixin, piece("executor", "ExecutorTest"), TheirCase):  # type: ignore[misc]
    pass


class TestWait(OurMixin, piece("test_wait", "WaitTests"), TheirCase):  # type: ignore[misc]
    worker_count = 3  # as many tasks as sleep at the same time


class TestAsCompleted(OurMixin, piece("test_as_completed", "AsCompletedTests"), TheirCase):  # type: ignore[misc]
    pass


class TestShutdown(OurMixin, piece("test_shutdown", "ExecutorShutdownTest"), TheirCase):  # type: ignore[misc]
    pass


class TestInitializer(OurMixin, piece("test_init", "InitializerMixin"), TheirCase):  # type: ignore[misc]
    pass


class TestFailingInitializer(OurMixin, piece("test_init", "FailingInitializerMixin"), TheirCase):  # type: ignore[misc]
    pass
