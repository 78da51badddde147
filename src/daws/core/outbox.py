"""Carrying out what stands in outboxes of the store: intents that outlive the node that had them.

Whoever commits, fails or cancels a task finds its children in the answer and tells them. `telling` counts what an entry still waits
for; at zero the entry is cleared (lazily, many at a time). If this node dies before, the next owner of the entry does it all again.
"""

from daws.core.calls import ANSWERED, ask, ask_shard
from daws.core.effects import Send
from daws.core.node import NodeCore, handles
from daws.model.task import Input, NodeId
from daws.wire.messages import Awake, StopDone, StopOrder, Wake
from daws.wire.store import (
    REMAKE_FOR,
    SATISFY,
    SHARD_BLOCK_BITS,
    AnswerType,
    Cancel,
    Clear,
    OutboxEntry,
    Remake,
    Row,
    Satisfy,
    Stopped,
    outbox_key,
)

CLEAR_BATCH = 64
EVERY_ATTEMPT = 1 << 30


def tell_children(core: NodeCore, key: int, task: int, children: tuple[int, ...], inputs: tuple[Input, ...]) -> None:
    core.telling[key] = len(children)
    node = core.node
    for child in children:
        ask(core, child, Satisfy(child, task, node, inputs))


def told(core: NodeCore, key: int) -> None:
    """One of those that an outbox entry names has been told."""
    left = core.telling.get(key)
    if left is None:
        return
    if left > 1:
        core.telling[key] = left - 1
    else:
        del core.telling[key]
        clear(core, key)


def clear(core: NodeCore, key: int) -> None:
    shard = (key >> 2 >> SHARD_BLOCK_BITS) % core.config.shard_count
    keys = core.clearing.get(shard)
    if keys is None:
        core.clearing[shard] = [key]
        return
    keys.append(key)
    if len(keys) >= CLEAR_BATCH:
        del core.clearing[shard]
        ask_shard(core, shard, Clear(core.node, tuple(keys)))


def send_clears(core: NodeCore) -> None:
    for shard, keys in core.clearing.items():
        ask_shard(core, shard, Clear(core.node, tuple(keys)))
    core.clearing = {}


def ask_unknown_again(core: NodeCore) -> None:
    """Rows about tasks that were not in the store yet."""
    rows, core.unknown = core.unknown, []
    for row in rows:
        ask(core, row.task, row)


def carry_out(core: NodeCore, entry: OutboxEntry) -> None:
    """Do what a dead node had meant to do."""
    if entry.verb == SATISFY:
        if entry.others:
            tell_children(core, entry.key, entry.task, entry.others, entry.inputs)
        else:
            clear(core, entry.key)
    elif entry.verb == REMAKE_FOR:
        ask_for_remakes(core, entry.task, entry.others, ())
    else:
        spread_stop(core, entry.task, Stopped(entry.key, entry.others, entry.nodes, entry.error, entry.watchers))


def ask_for_remakes(core: NodeCore, waiter: int, producers: tuple[int, ...], gone: tuple[NodeId, ...]) -> None:
    core.telling[outbox_key(waiter, REMAKE_FOR)] = len(producers)
    for producer in producers:
        ask(core, producer, Remake(producer, waiter, core.node, gone))


def promise(core: NodeCore, child: int, parent: int, key: int) -> None:
    """The answer to a satisfy of this edge ends the intent `key` (and not, as usual, the parent's own)."""
    if core.promised is None:
        core.promised = {}
    core.promised[child, parent] = key


# -- ends that spread -----------------------------------------------------------------------------------------------------


def spread_stop(core: NodeCore, task: int, stopped: Stopped) -> None:
    """A task was cancelled or failed: so are its children, and who runs it is told to stop."""
    nodes = [node for node in stopped.nodes if node in core.members]
    count = len(stopped.children) + len(nodes) + len(stopped.watchers)
    if not count:
        clear(core, stopped.key)
        return
    core.telling[stopped.key] = count
    for child in stopped.children:
        ask(core, child, Cancel(child, core.node, stopped.error, task))
    for watcher in stopped.watchers:
        promise(core, watcher, task, stopped.key)
        ask(core, watcher, Satisfy(watcher, task, core.node))
    if nodes and core.stops is None:
        core.stops = {}
    for node in nodes:
        assert core.stops is not None
        core.stops[task, node] = (stopped.key, EVERY_ATTEMPT)
        core.out.append(Send(node, StopOrder(core.node, task, stopped.key, EVERY_ATTEMPT)))


@handles(StopDone)
def on_stop_done(core: NodeCore, message: StopDone) -> None:
    if core.stops is not None and core.stops.pop((message.task, message.sender), None) is not None:
        told(core, message.key)


# -- tasks that wait for tasks ----------------------------------------------------------------------------------------------


def wake(core: NodeCore, task: int, key: int, owner: NodeId) -> None:
    """The last of the tasks that a suspended task waited for has ended: its owner must hear of it."""
    if owner == core.node:
        wake_here(core, task)
        told(core, key)
        return
    if owner not in core.members:
        told(core, key)  # whoever takes it over runs it again from the start
        return
    if core.wakes is None:
        core.wakes = {}
    core.wakes[task] = (owner, key)
    core.out.append(Send(owner, Wake(core.node, task, key)))


def wake_here(core: NodeCore, task: int) -> None:
    run = core.running.get(task)
    if run is not None and run.suspended and (core.resumable is None or run not in core.resumable):
        if core.resumable is None:
            core.resumable = []
        core.resumable.append(run)
        core.dirty = True


@handles(Wake)
def on_wake(core: NodeCore, message: Wake) -> None:
    wake_here(core, message.task)
    core.out.append(Send(message.sender, Awake(core.node, message.task, message.key)))


@handles(Awake)
def on_awake(core: NodeCore, message: Awake) -> None:
    if core.wakes is not None and core.wakes.get(message.task) == (message.sender, message.key):
        del core.wakes[message.task]
        told(core, message.key)


def repeat_orders(core: NodeCore) -> None:
    """On each tick: say again what was not acknowledged; who is no member any more need not be told."""
    for task, (owner, key) in list((core.wakes or {}).items()):
        if owner in core.members:
            core.out.append(Send(owner, Wake(core.node, task, key)))
        else:
            assert core.wakes is not None
            del core.wakes[task]
            told(core, key)
    for (task, node), (key, attempt) in list((core.stops or {}).items()):
        if node in core.members:
            core.out.append(Send(node, StopOrder(core.node, task, key, attempt)))
        else:
            assert core.stops is not None
            del core.stops[task, node]
            told(core, key)


def ignore(core: NodeCore, row: Row, answer: AnswerType) -> None:
    """Nothing follows from the answer."""


ANSWERED[Clear] = ignore
