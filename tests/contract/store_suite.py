"""What every store must do, row by row and rule by rule; run on each backend by a subclass (see test_memory_store.py).

A subclass says how to make a store and how to look at all of its state at once. Every row of every test is applied
twice: the second time must answer the same and change nothing. The suites are in `tests/contract/store`, in the rooms
of `daws.store.memory`.
"""

from tests.contract.store.attaching import AttachingContract
from tests.contract.store.estates import EstatesContract
from tests.contract.store.growing import GrowingContract
from tests.contract.store.leaving import LeavingContract
from tests.contract.store.life import LifeContract
from tests.contract.store.members import MembersContract
from tests.contract.store.moving import MovingContract
from tests.contract.store.outbox import OutboxContract
from tests.contract.store.reading import ReadingContract
from tests.contract.store.references import ReferencesContract
from tests.contract.store.remaking import RemakingContract
from tests.contract.store.sessions import SessionsContract
from tests.contract.store.stopping import StoppingContract


class StoreContract(
    LifeContract,
    MovingContract,
    RemakingContract,
    GrowingContract,
    StoppingContract,
    OutboxContract,
    ReferencesContract,
    MembersContract,
    EstatesContract,
    LeavingContract,
    ReadingContract,
    SessionsContract,
    AttachingContract,
):
    """All suites: a backend's subclass has `make(**options)` and `snapshot(store)`."""
