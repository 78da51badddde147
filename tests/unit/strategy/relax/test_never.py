from daws.strategy.relax.never import RelaxNever
from tests.unit.strategy.fakes import FakeView


def test_nothing_is_ever_shared():
    relax, view = RelaxNever(), FakeView(dedicated_count=10**6, tt_ns=5)
    assert relax.excess(view) == relax.explain(view)["choice"] == relax.start_tt_ns() == 0
    assert relax.after_sharing(view) == relax.after_failed_steal(view) == 5
