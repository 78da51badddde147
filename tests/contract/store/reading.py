"""Rule 10: the log that clients read."""

from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import FAILED as STATE_FAILED
from daws.wire.store import Cancel, Log, ReadLog
from tests.contract.store.desk import ANN, Contract, Desk


class ReadingContract(Contract):
    def test_the_log_is_numbered_and_read_in_parts(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(10):
            desk.create(task)
            desk.done(task)
        assert desk(ReadLog(0, 4)) == Log(4, [0, 1, 2, 3])
        assert desk(ReadLog(4, 4)) == Log(8, [4, 5, 6, 7])
        assert desk(ReadLog(8, 4)) == Log(10, [8, 9])
        assert desk(ReadLog(10, 4)) == Log(10, [])

    def test_each_shard_has_a_log_of_its_own(self, desk: Desk):
        desk = Desk(self.make(shards=2), self.snapshot)
        for task in (0, 64, 128):
            desk.create(task)
            desk.done(task)
        assert desk.store.apply(0, [ReadLog(0)], 0) == [Log(2, [0, 128])]
        assert desk.store.apply(1, [ReadLog(0)], 0) == [Log(1, [64])]

    def test_the_log_says_how_each_task_ended(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(3):
            desk.create(task)
        desk.done(0)
        desk.finish(1, error="bad")
        desk(Cancel(2, ANN))
        assert desk.log() == [0, (1, STATE_FAILED, "bad", ()), (2, STATE_CANCELLED, "", ())]
