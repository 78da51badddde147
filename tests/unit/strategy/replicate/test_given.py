from daws.strategy.replicate.given import ReplicateGiven
from daws.strategy.spec import parse_strategy
from tests.unit.strategy.fakes import FakeView, ready_of


def test_as_many_as_were_asked_for():
    view, spec = FakeView(), ready_of().spec
    assert ReplicateGiven().copies(view, spec) == 2
    one = parse_strategy("adage:copies=1").replicate
    assert one == ReplicateGiven(copies_max=1)
    assert one.copies(view, spec) == one.explain(view, spec)["choice"] == 1


def test_it_says_how_many_were_offered_already():
    spec = ready_of().spec
    reasons = ReplicateGiven().explain(FakeView(copied={spec.id: 1}), spec)
    assert reasons == {"copies_max": 2, "offered": 1, "choice": 2}


def test_copies_are_looked_after_every_minute_or_as_often_as_was_asked_for():
    assert ReplicateGiven().validate_ns == 62_500_000_000
    assert ReplicateGiven(validate_s=0).validate_ns == 0
    assert parse_strategy("adage:validate-s=0.5").replicate == ReplicateGiven(validate_s=0.5)
