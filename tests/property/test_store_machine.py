"""Several nodes talk to a store in any order, repeat themselves, come late, and die; then one node inherits everything.

Whatever was said, no task is committed twice or listed twice, nobody dead owns anything, edges come back only when
somebody says so, and the last node alive can bring every task to an end with nothing but what the store tells it.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from daws.model.states import DONE as STATE_DONE
from daws.model.states import FINAL, READY, STATE_NAMES, SUSPENDED, WAITING
from daws.model.task import Input, NodeId, Ready, TaskSpec, spawned_id
from daws.store.memory import MemoryStore
from daws.wire.store import (
    ANNOUNCE,
    CANCELLED,
    FAILED,
    MOVE,
    OK,
    REFUSED,
    REMAKE_FOR,
    REPLICATE,
    RETRY,
    SATISFY,
    STOP,
    AnswerType,
    Available,
    Cancel,
    Claim,
    Clear,
    Committed,
    Create,
    Estate,
    Finish,
    Granted,
    Log,
    Noted,
    Open,
    OutboxEntry,
    ReadLog,
    Register,
    Remake,
    Resume,
    Row,
    Satisfy,
    Spawn,
    Stopped,
    Suspend,
    TakeOver,
    Unready,
    logged_task,
    shard_of,
)
from tests.contract.store.desk import same
from tests.contract.test_memory_store import snapshot

BLOCK = 64  # so that neighbouring numbers are in different shards
numbers = st.integers(0, 1 << 16)


class StoreMachine(RuleBasedStateMachine):
    direct = False

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore(2, lease_ns=1000, replicas_max=2, direct=self.direct)
        self.alive: list[NodeId] = [1, 2, 3]
        self.next_node = 4
        self.tasks: list[int] = []
        self.parents: dict[int, tuple[int, ...]] = {}
        self.sent: list[Row] = []
        self.intents: dict[NodeId, list[OutboxEntry]] = {}
        self.winners: dict[int, tuple[NodeId, int]] = {}
        self.half_grown: set[tuple[int, int]] = set()
        self.seen: dict[int, tuple[int, int, int]] = {}  # state, attempt, move
        self.edges: dict[int, set[int]] = {}

    # -- helpers -----------------------------------------------------------------------------------

    def send(self, row: Row) -> AnswerType:
        """Send a row, twice; note what its sender now has to do."""
        shard = self.shard(row)
        (answer,) = self.store.apply(shard, [row], 0)
        before = snapshot(self.store)
        (again,) = self.store.apply(shard, [row], 0)
        assert same(answer, again), (row, answer, again)
        assert snapshot(self.store) == before, row
        self.sent.append(row)
        self.note(row, answer)
        return answer

    def shard(self, row: Any) -> int:
        if isinstance(row, TakeOver):
            return row.shard
        if isinstance(row, Clear):
            return shard_of(row.keys[0] >> 2, 2)
        return shard_of(row.spec.id if isinstance(row, Create) else row.task, 2)

    def note(self, row: Any, answer: AnswerType) -> None:
        if isinstance(row, Finish) and (answer is None or isinstance(answer, Committed)):
            if not self.remaking(row.task, row.attempt):
                assert self.winners.setdefault(row.task, (row.node, row.attempt)) == (row.node, row.attempt)
            if isinstance(answer, Committed) and answer.key >= 0:
                entry = OutboxEntry(
                    answer.key, SATISFY, row.task, answer.children, row.outputs, mark=answer.mark, needs=answer.needs
                )
                self.intents.setdefault(row.node, []).append(entry)
        elif isinstance(answer, Stopped):
            self.stop(row, answer)
        elif isinstance(answer, Granted) and answer.stop is not None:
            self.stop(row, answer.stop)
        elif isinstance(answer, Noted):
            entry = OutboxEntry(answer.key, REMAKE_FOR, row.task, row.producers, mark=answer.mark)
            self.intents.setdefault(row.node, []).append(entry)
        elif isinstance(answer, Estate):
            self.intents.setdefault(row.node, []).extend(answer.outbox)

    def stop(self, row: Any, stopped: Stopped) -> None:
        entry = OutboxEntry(
            *(stopped.key, STOP, row.task, stopped.children, (), stopped.nodes, stopped.error),
            *(stopped.watchers, stopped.mark),
        )
        self.intents.setdefault(row.node, []).append(entry)

    def remaking(self, task: int, attempt: int) -> bool:
        return task in self.winners and self.winners[task][1] < attempt

    def node(self, number: int) -> NodeId:
        return self.alive[number % len(self.alive)]

    def task(self, number: int) -> int:
        return self.tasks[number % len(self.tasks)]

    def outputs(self, task: int, node: NodeId) -> tuple[Input, ...]:
        return (Input(task, 10_000, task, (node,), b""),)

    def carry_out(self, entry: OutboxEntry, node: NodeId) -> list[Ready]:
        """Do what an intent says, then clear it."""
        ready: list[Ready] = []
        needs = entry.needs or (0,) * len(entry.others)
        for other, need in zip(entry.others, needs, strict=True):
            if entry.verb == SATISFY:
                answer = self.send(Satisfy(other, entry.task, node, entry.inputs, 0, need))
            elif entry.verb == STOP:
                answer = self.send(Cancel(other, node, entry.error, entry.task))
            else:
                answer = self.remake(other, entry, node)
            if isinstance(answer, Ready):
                ready.append(answer)
        for watcher in entry.watchers:
            assert not isinstance(self.send(Satisfy(watcher, entry.task, node)), Ready)
        self.send(Clear(node, (entry.key,), (entry.mark,)))
        return ready

    def remake(self, producer: int, entry: OutboxEntry, node: NodeId) -> AnswerType:
        gone = tuple(range(self.next_node + 1)) if entry.mark % 2 else ()  # every other time it is lost indeed
        answer = self.send(Remake(producer, entry.task, node, gone, 0, entry.mark))
        if isinstance(answer, Ready):
            granted = self.send(Claim(producer, -1, answer.move, node))
            if isinstance(granted, Granted):
                return Ready(answer.spec, granted.attempt, granted.move, answer.inputs)
            return granted
        if isinstance(answer, Available):
            return self.send(Satisfy(entry.task, producer, node, answer.inputs, 0, entry.mark))
        if answer in (REFUSED, CANCELLED, FAILED):
            return self.send(Cancel(entry.task, node, "object lost"))
        return answer

    # -- rules -------------------------------------------------------------------------------------

    @initialize(shape=st.lists(st.sets(st.integers(0, 5)), min_size=2, max_size=6))
    def create(self, shape: list[set[int]]) -> None:
        self.tasks = [index * BLOCK for index in range(len(shape))]
        for index, before in enumerate(shape):
            self.parents[index * BLOCK] = tuple(sorted({one % index * BLOCK for one in before})) if index else ()
        for task, parents in self.parents.items():
            children = tuple(other for other, above in self.parents.items() if task in above)
            spec = TaskSpec(task, inputs=parents, outputs=(task,))
            self.send(Create(spec, parents, children, (), -1 if parents else self.node(task), held=True))

    @rule(which=numbers, back=st.integers(0, 1), late=st.booleans())
    def finish(self, which: int, back: int, late: bool) -> None:
        task = self.task(which)
        record = self.store.record(task)
        assert record is not None
        attempt = record.attempt - back
        if (task, attempt) in self.half_grown:
            return
        node = self.node(which // 7) if late else record.owner
        self.send(Finish(task, attempt, node, self.outputs(task, node)))

    @rule(which=numbers)
    def fail(self, which: int) -> None:
        record = self.store.record(self.task(which))
        assert record is not None
        if record.owner in self.alive:
            self.send(Finish(record.spec.id, record.attempt, record.owner, (), "bad"))

    @rule(
        which=numbers, to=numbers, back=st.integers(0, 1), why=st.sampled_from([MOVE, MOVE, ANNOUNCE, RETRY, REPLICATE])
    )
    def claim(self, which: int, to: int, back: int, why: int) -> None:
        task = self.task(which)
        record = self.store.record(task)
        assert record is not None
        node = record.owner if why in (ANNOUNCE, RETRY) else self.node(to)
        if node in self.alive:
            answer = self.send(Claim(task, record.owner, record.move - back, node, why))
            if isinstance(answer, Granted) and why == REPLICATE:
                assert record.owner != node

    @rule(which=numbers)
    def carry_out_some(self, which: int) -> None:
        node = self.node(which)
        intents = self.intents.get(node)
        if intents:
            self.carry_out(intents.pop(which // 7 % len(intents)), node)

    @rule(which=numbers, at=numbers, error=st.sampled_from(["", "bad"]))
    def cancel(self, which: int, at: int, error: str) -> None:
        self.send(Cancel(self.task(which), self.node(at), error))

    @rule(which=numbers, back=st.integers(0, 1))
    def lose_inputs(self, which: int, back: int) -> None:
        task = self.task(which)
        record = self.store.record(task)
        assert record is not None
        if self.parents.get(task) and record.owner in self.alive:
            self.send(Unready(task, record.owner, record.move - back, self.parents[task]))

    @rule(which=numbers, whole=st.booleans(), waits=st.booleans())
    def grow(self, which: int, whole: bool, waits: bool) -> None:
        """The owner of a task spawns another one, perhaps waits for it, or gets stuck on the way."""
        task = self.task(which)
        record = self.store.record(task)
        assert record is not None
        node, attempt = record.owner, record.attempt
        if record.state != READY or node not in self.alive:
            return
        name = spawned_id(task, attempt, which)
        assert self.send(Spawn(task, attempt, node, (name,))) == OK
        if not whole:
            self.half_grown.add((task, attempt))
            return
        if self.send(Create(TaskSpec(name), (), (), (), node, True, held=True)) == OK:
            if name not in self.tasks:
                self.tasks.append(name)
            self.send(Open(name, node))
        if waits and self.send(Suspend(task, attempt, node, (name,))) == OK:
            self.edges.setdefault(task, set()).update((name, task))
            if self.send(Register(name, task, True)) != OK:
                self.send(Satisfy(task, name, node))
            answer = self.send(Open(task, node))
            assert answer == OK or isinstance(answer, Resume)

    @rule(which=numbers, at=numbers)
    def attach(self, which: int, at: int) -> None:
        """A new task needs what a task of any state makes, or has made."""
        parent, node = self.task(which), self.node(at)
        name = spawned_id(parent, 99, len(self.tasks))
        self.tasks.append(name)
        self.parents[name] = (parent,)
        assert self.send(Create(TaskSpec(name, inputs=(parent,)), (parent,), (), (), node, True, True)) == OK
        answer = self.send(Register(parent, name))
        if isinstance(answer, Available):
            assert [one.object for one in answer.inputs] == [parent], "perhaps without a place, but it has a name"
            self.send(Satisfy(name, parent, node, answer.inputs))
        elif answer != OK:
            self.send(Cancel(name, node, "no parent"))
        self.send(Open(name, node))

    @rule(which=numbers, on=numbers)
    def wait_for(self, which: int, on: int) -> None:
        """A running task waits until another one has ended."""
        task, other = self.task(which), self.task(on)
        record = self.store.record(task)
        assert record is not None
        node, attempt = record.owner, record.attempt
        if record.state != READY or node not in self.alive or other == task:
            return
        if self.send(Suspend(task, attempt, node, (other,))) == OK:
            if self.send(Register(other, task, True)) != OK:
                self.send(Satisfy(task, other, node))
            self.send(Open(task, node))

    @rule(which=numbers)
    def resend(self, which: int) -> None:
        """A row of long ago arrives once more."""
        if self.sent:
            row = self.sent[which % len(self.sent)]
            (answer,) = self.store.apply(self.shard(row), [row], 0)
            self.note(row, answer)

    @rule(which=numbers, limit=st.integers(1, 3))
    def die(self, which: int, limit: int) -> None:
        dead = self.node(which)
        self.alive.remove(dead)
        self.alive.append(self.next_node)
        self.next_node += 1
        self.take_over(dead, self.node(which // 7), limit)

    def take_over(self, dead: NodeId, heir: NodeId, limit: int = 1000) -> list[Ready]:
        ready: list[Ready] = []
        for shard in range(2):
            for part in range(1000):
                answer = self.send(TakeOver(dead, heir, part, limit, shard))
                assert isinstance(answer, Estate)
                ready += answer.ready
                if not answer.more:
                    break
        return ready

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def each_task_is_logged_once(self) -> None:
        logged: list[int] = []
        for shard in range(2):
            (answer,) = self.store.apply(shard, [ReadLog(0)], 0)
            assert isinstance(answer, Log)
            logged += [logged_task(row) for row in answer.rows]
        assert len(logged) == len(set(logged))

    @invariant()
    def nobody_dead_owns_anything(self) -> None:
        for shard in self.store.shards:
            for task, record in shard.records.items():
                if record is not None and record.state == READY:
                    unclaimed = record.owner == -1 and record.rare is not None and record.rare.remaking
                    assert unclaimed or record.owner in self.alive, f"task {task} belongs to {record.owner}"
            for key, intent in shard.outbox.items():
                assert intent.holder in self.alive, f"intent {key:x} belongs to {intent.holder}"

    @invariant()
    def numbers_grow_and_ends_are_final(self) -> None:
        for task in self.tasks:
            record = self.store.record(task)
            assert record is not None
            state, attempt, move = self.seen.get(task, (record.state, 0, 0))
            assert record.attempt >= attempt and record.move >= move
            if state in FINAL and state != STATE_DONE:
                assert record.state == state
            if state == STATE_DONE and record.state not in (STATE_DONE,):
                assert record.rare is not None and record.rare.remaking, "only a remake wakes the done"
            self.seen[task] = (record.state, record.attempt, record.move)

    @invariant()
    def edges_come_back_only_by_unready(self) -> None:
        for task in self.tasks:
            record = self.store.record(task)
            assert record is not None
            if record.state == WAITING and isinstance(record.edges, (tuple, set)):
                known = {*self.parents.get(task, ()), task}
                assert {*record.edges} <= known, f"task {task} waits for {record.edges}"

    @invariant()
    def who_waits_will_be_told(self) -> None:
        """A suspended task waits for others that have not ended, or whose end somebody is about to tell."""
        for task in self.tasks:
            record = self.store.record(task)
            assert record is not None
            if record.state != SUSPENDED or not isinstance(record.edges, (tuple, set)):
                continue
            for other in record.edges:
                above = self.store.record(other)
                assert above is not None
                outbox = self.store.shards[shard_of(other, 2)].outbox
                told = other << 2 | SATISFY in outbox or other << 2 | STOP in outbox
                ended = above.state in FINAL or (above.rare is not None and above.rare.remaking)
                assert told or not ended, f"task {task} waits for task {other}, which has ended"

    def teardown(self) -> None:
        """One node inherits everything and brings it to an end."""
        if not self.tasks:
            return
        last = self.next_node
        ready = [one for node in self.alive for one in self.take_over(node, last)]
        self.alive = [last]
        self.half_grown = set()
        for _ in range(1000):
            intents = self.intents.pop(last, [])
            if not ready and not intents:
                break
            todo, ready = ready, []
            for one in todo:
                task = one.spec.id
                answer = self.send(Finish(task, one.attempt, last, self.outputs(task, last)))
                ready += answer.ready if isinstance(answer, Committed) else ()
            ready += [one for entry in intents for one in self.carry_out(entry, last)]
        for task in self.tasks:
            record = self.store.record(task)
            assert record is not None
            assert record.state in FINAL, f"task {task} is {STATE_NAMES[record.state]} for ever: {record}"
        for shard in self.store.shards:
            assert not shard.outbox, f"nobody carries out {shard.outbox}"


class DirectMachine(StoreMachine):
    """A commit satisfies the children in its own shard in the same update."""

    direct = True


TestStoreMachine = StoreMachine.TestCase
TestDirectMachine = DirectMachine.TestCase
TestStoreMachine.settings = TestDirectMachine.settings = settings(max_examples=60, stateful_step_count=40)
