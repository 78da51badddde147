import pickle

import pytest

from daws.model import errors


def test_usage_errors_are_one_family():
    for name in ("GraphError", "ContextError", "WorkloadError", "WorkflowError", "StrategyError", "ClusterError"):
        assert issubclass(getattr(errors, name), errors.UsageError)


@pytest.mark.parametrize("family", [errors.UsageError, errors.PeerError, errors.UnavailableError, errors.InternalError])
def test_four_families_share_a_root(family: type[errors.DawsError]):
    assert family.__mro__[1] is errors.DawsError


@pytest.mark.parametrize("retry", [True, False])
def test_unavailable_says_whether_to_retry_and_survives_pickling(retry: bool):
    error = pickle.loads(pickle.dumps(errors.UnavailableError("no store", retry)))
    assert (str(error), error.retry) == ("no store", retry)


def test_internal_error_tells_its_story():
    error = pickle.loads(pickle.dumps(errors.InternalError("task 3 ran twice", ["claimed", "finished"])))
    assert error.story == ("claimed", "finished")
    assert str(error) == "task 3 ran twice\n  claimed\n  finished"
