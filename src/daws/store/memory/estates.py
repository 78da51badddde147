"""The estates of dead nodes, that is, their tasks and intents: the second half of rule 4.

A dead incarnation is struck from a shard before anything there changes hands, so it can own nothing in it any more. Its
ready and suspended tasks become new attempts of the heir, and its intents the heir's. A task fails if too many nodes
died while it was, as far as known, running there. A node that left in good order was running nothing, so tasks that it
had to leave behind are under no suspicion.
"""

from collections.abc import Iterator

from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import READY, SUSPENDED
from daws.model.task import NodeId, Ready
from daws.store.memory.moving import new_attempt
from daws.store.memory.outbox import unzip
from daws.store.memory.record import Record, audience, note, ready_of, runners_of
from daws.store.memory.stopping import fail, stop_answer
from daws.store.memory.store import HeldIntent, MemoryStore, Shard, serves
from daws.wire import store as wire
from daws.wire.store import REMAKE_FOR, SATISFY, STOP, STRUCK, AnswerType, OutboxEntry, outbox_key


@serves(wire.TakeOver)
def take_over(store: MemoryStore, shard: Shard, row: wire.TakeOver, now_ns: int) -> AnswerType:
    if row.node in shard.dead:
        return STRUCK
    shard.dead.add(row.dead)
    for pair in [pair for pair in shard.estates if pair[1] == row.dead]:
        del shard.estates[pair]  # this heir will not ask again
    said = shard.estates.get((row.dead, row.node))
    if said is not None and row.part <= said[0]:
        # An earlier part was answered long ago. If it took more tasks now, the caller would never learn of them.
        return said[1] if row.part == said[0] else wire.Estate(more=True)
    ready: list[Ready] = []
    keys: dict[int, None] = {}
    more = False
    for key, intent in shard.outbox.items():
        if intent.holder == row.dead:
            if len(keys) >= row.limit:
                more = True
                break
            shard.outbox[key] = HeldIntent(row.node, intent.others, intent.mark)
            keys[key] = None
    for task, record in () if more else _left_by(shard, row.dead):
        if record.rare is not None and row.dead in record.rare.replicas:
            record.rare.replicas = tuple(node for node in record.rare.replicas if node != row.dead)
        if record.owner != row.dead or record.state not in (READY, SUSPENDED):
            continue
        if len(ready) + len(keys) >= row.limit:
            shard.left[row.dead].append(task)
            more = True
            break
        heir = _inherit(shard, record, row.node, row.dead not in store.departed, store.losses_max)
        if store.history:
            note(record, now_ns)
        if heir is not None:
            ready.append(heir)
        key = outbox_key(task, STOP)
        stop = shard.outbox.get(key)
        if stop is not None and stop.holder == row.node:
            keys[key] = None
    outbox = [entry_of(shard, key) for key in keys]
    store.touched += len(ready) + len(outbox) - 1
    answer = wire.Estate(tuple(ready), tuple(outbox), more)
    if ready or outbox:
        shard.estates[row.dead, row.node] = (row.part, answer)
    else:
        shard.estates.pop((row.dead, row.node), None)  # nothing is left: a repeated request, for any part, gets nothing
    return answer


def _left_by(shard: Shard, dead: NodeId) -> Iterator[tuple[int, Record]]:
    """The tasks that a dead node may have left behind, one after the other. All tasks are looked through for the first
    part, and once more for the last one: the end of a run that comes late may give the node some that become ready."""
    while True:
        is_fresh = dead not in shard.left
        if is_fresh:
            shard.left[dead] = shard.left_by(dead)
        left = shard.left[dead]
        while left:
            task = left.pop()
            record = shard.records.get(task)
            if record is not None:
                yield task, record
        del shard.left[dead]
        if is_fresh:
            return


def _inherit(shard: Shard, record: Record, heir: NodeId, died: bool, losses_max: int) -> Ready | None:
    rare = record.more()
    if died and (rare.announced or not rare.losses):
        rare.losses += 1
    record.owner = heir
    record.move += 1
    record.edges = None
    record.state = READY
    new_attempt(shard, record, heir)
    if rare.losses >= losses_max:
        task = record.spec.id
        error = f"task {task} was running on {losses_max} nodes when they died; it is not tried again"
        fail(shard, record, error, heir, ())
        return None
    return ready_of(record)


def entry_of(shard: Shard, key: int) -> OutboxEntry:
    """An intent, with all that the node that carries it out has to know."""
    task, verb = key >> 2, key & 3
    record = shard.records[task]
    assert record is not None
    others, mark = shard.outbox[key].others, shard.outbox[key].mark
    if verb == SATISFY:
        told, needs = (audience(record), ()) if others is None else unzip(others)
        return OutboxEntry(key, verb, task, told, record.outputs, mark=mark, needs=needs)
    if verb == REMAKE_FOR:
        return OutboxEntry(key, verb, task, others or (), mark=mark)
    # If it has not ended, only tasks that some attempt of it has spawned are to be stopped.
    ended = record.state in (STATE_FAILED, STATE_CANCELLED)
    stopped = stop_answer(shard, record, runners_of(record) if ended else ())
    if others is not None:
        return OutboxEntry(key, verb, task, others, (), stopped.nodes, stopped.error, mark=mark)
    return OutboxEntry(key, verb, task, stopped.children, (), stopped.nodes, stopped.error, stopped.watchers, mark)
