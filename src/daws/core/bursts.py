"""Short runs end in bursts: what `on_run_ended` does with each of them, in one go for all that are alike.

A worker that has short tasks waiting reports many ends at once. Where all of them are the plain kind (sent ahead, read
nothing large, made one small object, spawned nothing), a tight loop does the same in a third of the time. Whatever is
not of that kind is left to the usual handlers, in its turn.
"""

from collections.abc import Sequence

from daws.core.events import EventType, RunDone, RunEnded
from daws.core.node import HANDLERS, NodeCore, handles
from daws.core.running import SAMPLE_ALL, SAMPLE_MASK, adapt, is_sampled, learn_length, on_run_ended
from daws.core.staging import are_small
from daws.wire.store import Finish


def end_together(core: NodeCore, events: Sequence[EventType]) -> Sequence[EventType]:
    """Take in the plain ends at the beginning of these events; what is left is for the usual handlers."""
    if core.rows is None:  # the first decides when the rows of this step leave
        HANDLERS[type(events[0])](core, events[0])
        events = events[1:]
    rows, inflight, running = core.rows, core.inflight, core.running
    if rows is None or inflight is None or core.shard_count > 1 or core.plain:
        return events
    node, here = core.node, core.here
    if not here:
        core.here = here = (node,)
    first = done = core.done_count
    look_at = _next_look(core)
    slot, sent = -1, 0
    for event in events:
        if event.__class__ is not RunDone:
            break
        task = event.task
        run = running.get(task)
        if run is None or run.number != event.run or run.spawned or run.suspended:
            break
        ready = run.ready
        if ready.inputs and not are_small(ready.inputs):
            break
        if run.slot != slot:  # mostly all are of one executor
            if sent:
                inflight[slot] = sent
            slot = run.slot
            sent = inflight.get(slot, 0)
        if sent <= 2:  # the executor may fall idle now
            break
        sent -= 1
        del running[task]
        done += 1
        if done == look_at:
            core.done_count = done
            if is_sampled(done):
                learn_length(core, ready.spec.kind, event.duration_ns)
            if done == core.adapt_at:
                adapt(core)
            look_at = _next_look(core)
        spec, value = ready.spec, event.value
        rows.append(Finish(task, ready.attempt, node, ((spec.outputs[0], len(value), task, here, value),)))
        if not spec.leaf:
            core.urgent = True
    if sent:
        inflight[slot] = sent
    ended = done - first
    if ended:
        core.done_count = done
        core.ahead -= ended
        core.dirty = True
    return events[ended:]


@handles(RunDone)
def on_run_done(core: NodeCore, event: RunDone) -> None:
    """One that came alone, or that is not of the plain kind."""
    value = event.value
    on_run_ended(core, RunEnded(event.task, event.run, event.duration_ns, (len(value),), values=(value,)))


def _next_look(core: NodeCore) -> int:
    """After which end there is more to do than to count it."""
    done = core.done_count + 1
    sampled = done if done < SAMPLE_ALL else (done + SAMPLE_MASK) & ~SAMPLE_MASK
    return core.adapt_at if done <= core.adapt_at < sampled else sampled  # who never adapts has that behind him
