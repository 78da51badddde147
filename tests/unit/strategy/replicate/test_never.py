from daws.strategy.replicate.never import ReplicateNever
from tests.unit.strategy.fakes import FakeView, ready_of


def test_no_copies():
    view, spec = FakeView(), ready_of().spec
    assert ReplicateNever().copies(view, spec) == ReplicateNever().explain(view, spec)["choice"] == 0
