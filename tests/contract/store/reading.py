"""Rule 10: the log that clients read."""

from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import FAILED as STATE_FAILED
from daws.wire.store import LOG_END, OK, Cancel, Inspect, Log, LoggedEnd, ReadLog, Remake, Story, TrimLog
from tests.contract.store.desk import ANN, BOB, CHILD, OTHER, PARENT, Contract, Desk, made


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
        assert desk.log() == [0, LoggedEnd(1, STATE_FAILED, "bad", ()), LoggedEnd(2, STATE_CANCELLED, "", ())]

    def test_commits_that_were_read_are_dropped_and_the_others_keep_their_numbers(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(6):
            desk.create(task)
            desk.done(task)
        assert desk(TrimLog(0)) == OK
        assert desk(ReadLog(0, 2)) == Log(2, [0, 1])
        assert desk(TrimLog(1)) == OK
        assert desk(ReadLog(1)) == Log(6, [1, 2, 3, 4, 5])
        assert desk(TrimLog(4)) == OK
        assert desk(ReadLog(4)) == Log(6, [4, 5])
        assert desk(ReadLog(5)) == Log(6, [5])
        assert desk(TrimLog(2)) == OK, "that was done before"
        assert desk(ReadLog(LOG_END)) == Log(6, [])
        desk.create(6)
        desk.done(6)
        assert desk(ReadLog(6)) == Log(7, [6])

    def test_a_reader_that_comes_late_hears_how_many_commits_it_has_missed(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        for task in range(6):
            desk.create(task)
            desk.done(task)
        desk(TrimLog(1))
        assert desk(ReadLog(0, 3)).trimmed == 1  # type: ignore[union-attr]
        desk(TrimLog(4))
        assert desk(ReadLog(0)) == Log(6, [4, 5], 4)
        assert desk(ReadLog(3)) == Log(6, [4, 5], 1)
        assert desk(ReadLog(0, 100, 1)) == Log(6, [], 4), "of a session that has none of them"

    def test_no_more_commits_are_dropped_than_there_are(self, desk: Desk):
        desk = Desk(self.make(shards=1), self.snapshot)
        desk.create(1)
        assert desk(TrimLog(100)) == OK
        desk.done(1)
        assert desk(ReadLog(0)) == Log(1, [1])
        assert desk(TrimLog(100)) == OK
        assert desk(ReadLog(0)) == Log(1, [], 1)
        assert desk(ReadLog(1)) == desk(ReadLog(LOG_END)) == Log(1, [])
        desk.create(2)
        desk.done(2)
        assert desk(ReadLog(0)) == Log(2, [2], 1)

    def test_a_story_says_whether_a_task_has_ended(self, desk: Desk):
        desk.pair()
        desk.create(OTHER)
        stories = [desk(Inspect(task, brief=True)) for task in (PARENT, CHILD, OTHER)]
        assert [isinstance(one, Story) and one.ended for one in stories] == [False, False, False]
        desk.done(PARENT, ANN, 0, made(7, PARENT, ANN))
        desk.finish(OTHER, error="bad")
        assert desk.story(PARENT).ended and desk.story(OTHER).ended
        desk(Remake(PARENT, CHILD, BOB, (ANN,)))
        assert desk.story(PARENT).ended, "once and for all"
