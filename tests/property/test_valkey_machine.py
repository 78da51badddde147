"""The machine of `test_store_machine`, on the store in memory and the Valkey store side by side."""

from hypothesis import settings

from tests.property.test_store_machine import StoreMachine
from tests.twin import TwinStore


class TwinMachine(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = TwinStore(2, lease_ns=1000, direct=self.direct)


class DirectTwinMachine(TwinMachine):
    direct = True


TestTwinMachine = TwinMachine.TestCase
TestDirectTwinMachine = DirectTwinMachine.TestCase
TestTwinMachine.settings = TestDirectTwinMachine.settings = settings(max_examples=20, stateful_step_count=40)
