"""The mutants: small changes to the core or the store that take a rule out or weaken it.

Each replaces a piece of source text. A piece that is not found exactly as often as expected is an error: a mutant that
changes nothing would prove nothing. The rules are those of the design, by number.
"""

from msgspec import Struct

RULES = {
    1: "readiness is told, never polled",
    2: "moving is claiming",
    3: "commit by run",
    4: "death",
    5: "lost objects",
    6: "references",
    7: "growing graphs",
    8: "no self-made deadlock",
    9: "cancel",
    10: "the client reads a log",
    11: "acknowledged is not yet safe",
}


class Mutant(Struct, frozen=True):
    """In `module`, `old` becomes `new`; `count` says how often `old` stands there.

    Most mutants are noticed soon. `where` names the kinds of scenario in which the others are, for those in a hurry.
    """

    name: str
    rule: int
    module: str
    old: str
    new: str
    count: int = 1
    where: tuple[str, ...] = ()


MUTANTS = (
    # -- 1. readiness is told ---------------------------------------------------------------------------------------
    Mutant(
        "a commit leaves nothing in the outbox", 1, "store/memory/life.py",
        "        shard.outbox[key] = HeldIntent(row.node, None, mark)\n",
        "",
    ),
    Mutant(
        "a commit that tells its own shard forgets the others", 1, "store/memory/life.py",
        "    shard.outbox[key] = HeldIntent(node, tuple(left), mark)\n",
        "",
        where=("cancelled", "last words",),
    ),
    Mutant(
        "edges are counted, not named", 1, "store/memory/life.py",
        "            if row.parent not in edges or (record.rare is not None and record.rare.need != row.need):\n"
        "                return OK\n"
        "            edges = tuple(edge for edge in edges if edge != row.parent)\n",
        "            edges = edges[1:]\n",
    ),
    Mutant(
        "who is told again hears nothing", 1, "store/memory/life.py",
        "            return ready_of(record, AGAIN)\n",
        "            return OK\n",
    ),
    Mutant(
        "a commit that is repeated does not name who became ready", 1, "store/memory/life.py",
        "            found.append(ready_of(child, AGAIN))\n",
        "            pass\n",
    ),
    Mutant(
        "an heir forgets the outbox", 1, "store/memory/estates.py",
        "        if intent.holder == row.dead:\n",
        "        if False:\n",
    ),
    Mutant(
        "entries are cleared before anybody was told", 1, "core/outbox.py",
        "    number = intend(core, len(children), key, mark)\n",
        "    number = intend(core, len(children), key, mark)\n"
        "    _send_clear(core, (key >> 8) % core.shard_count, [(key, mark)])\n",
        where=("cancelled", "last words",),
    ),
    Mutant(
        "a late clear erases a newer entry", 1, "store/memory/outbox.py",
        "and (not row.marks or row.marks[number] == entry.mark)",
        "",
        where=("last words", "cut off"),
    ),
    Mutant(
        "calls that were not answered are not repeated", 1, "core/store_calls.py",
        "            core.out.append(call)\n    store.old_token",
        "            pass\n    store.old_token",
    ),
    Mutant(
        "ends are kept as long as there is something to do", 1, "core/node.py",
        "            or now_ns >= store.held_until_ns\n",
        "",
    ),
    Mutant(
        "ends for which others wait are kept", 1, "core/commits.py",
        "    add_end(core, task, row, not spec.leaf or bool(error))\n",
        "    add_end(core, task, row, bool(error))\n",
    ),
    # -- 2. moving is claiming --------------------------------------------------------------------------------------
    Mutant(
        "a claim does not compare the move", 2, "store/memory/moving.py",
        "    if record.owner == row.owner and record.move == row.move:\n",
        "    if record.owner == row.owner:\n",
    ),
    Mutant(
        "a claim does not count the move", 2, "store/memory/moving.py",
        "        record.owner = row.node\n        record.move += 1\n        record.edges = ~row.why",
        "        record.owner = row.node\n        record.edges = ~row.why",
    ),
    Mutant(
        "the receiver queues before it has claimed", 2, "core/claims.py",
        "        begin_claim(core, ready, message.sender, message.why)\n",
        "        _receive(core, ready, message.why)\n        continue\n",
    ),
    Mutant(
        "the receiver queues what it was refused", 2, "core/claims.py",
        "    elif why in (STOLEN, COPY) and not core.transfer.claims",
        "    elif why == PUSH:\n        _receive(core, ready, why)\n"
        "    elif why in (STOLEN, COPY) and not core.transfer.claims",
    ),
    Mutant(
        "the lender forgets at once", 2, "core/transfer.py",
        "    if why != COPY:\n",
        "    if False:\n",
    ),
    Mutant(
        "the lender never takes back", 2, "core/transfer.py",
        "(core.now_ns - lent.since_ns >= older_than_ns or lent.to not in core.members)",
        "lent.to not in core.members",
    ),
    Mutant(
        "the lender takes back without a claim", 2, "core/transfer.py",
        "    _claim_from_self(core, ready, BACK)\n",
        "    from daws.core.placement import enqueue\n\n    enqueue(core, ready, False)\n",
    ),
    Mutant(
        "what is told again is taken again", 2, "core/placement.py",
        "        if holds(core, ready.spec.id, ready.attempt, ready.move):\n",
        "        if False:\n",
        where=("rush",),
    ),
    Mutant(
        "what is granted again is taken again", 2, "core/claims.py",
        "        if not (again and _has_it(core, row.task, answer, why)):\n",
        "        if True:\n",
    ),
    # -- 3. commit by run -------------------------------------------------------------------------------------------
    Mutant(
        "any run may commit", 3, "store/memory/life.py",
        "    if not mine or record.attempt != row.attempt:\n",
        "    if False:\n",
        where=("cut off", "exiled"),
    ),
    Mutant(
        "a run commits as often as it asks", 3, "store/memory/life.py",
        "    if record.state != READY and record.state != SUSPENDED:\n        return _finished_before(",
        "    if record.state not in (READY, SUSPENDED, STATE_DONE):\n        return _finished_before(",
    ),
    Mutant(
        "a commit that is repeated is refused", 3, "store/memory/life.py",
        "        elif not row.error and record.state == STATE_DONE:\n",
        "        elif False:\n",
    ),
    Mutant(
        "the winner is not written down", 3, "store/memory/life.py",
        "    record.owner = row.node\n    if row.error:\n        return fail(",
        "    if row.error:\n        return fail(",
        where=("fan-in", "pipeline",),
    ),
    Mutant(
        "rivals are not told to stop", 3, "core/commits.py",
        "        if answer.rivals:\n            stop_rivals(core, answer.rivals, task, row.attempt)\n",
        "",
    ),
    # -- 4. death ---------------------------------------------------------------------------------------------------
    Mutant(
        "tasks start after the lease has run out", 4, "core/schedule.py",
        "    if core.now_ns >= core.membership.leased_until_ns:\n        return",
        "    if False:\n        return",
        where=("cut off", "exiled"),
    ),
    Mutant(
        "plain tasks start after the lease has run out", 4, "core/plain.py",
        " or core.now_ns >= core.membership.leased_until_ns:\n        return False\n    inflight",
        ":\n        return False\n    inflight",
        where=("cut off", "exiled"),
    ),
    Mutant(
        "a lease is trusted for too long", 4, "core/lease.py",
        "row.asked_ns + core.config.lease_ns // 2",
        "core.now_ns + 2 * core.config.lease_ns",
        where=("cut off", "exiled"),
    ),
    Mutant(
        "the dead may own what they tell", 4, "store/memory/life.py",
        "        if row.node in shard.dead:\n            # The last edge",
        "        if False:\n            # The last edge",
        where=("last words",),
    ),
    Mutant(
        "the dead are not struck", 4, "store/memory/estates.py",
        "    shard.dead.add(row.dead)\n",
        "",
        where=("last words",),
    ),
    Mutant(
        "an heir forgets suspended tasks", 4, "store/memory/estates.py",
        "        if record.owner != row.dead or record.state not in (READY, SUSPENDED):\n",
        "        if record.owner != row.dead or record.state != READY:\n",
    ),
    Mutant(
        "an estate is told only once", 4, "store/memory/estates.py",
        "    if said is not None and row.part <= said[0]:\n",
        "    if False:\n",
    ),
    Mutant(
        "buried when the first shard was taken over", 4, "core/membership.py",
        "        return not self.burying[dead]\n",
        "        return self.burying[dead] >= 0\n",
        where=("heirs",),
    ),
    Mutant(
        "what one heir got is forgotten when another is done", 4, "store/memory/members.py",
        "        other.estates.pop((row.dead, row.node), None)  # this heir has received all its answers\n",
        "        for pair in [pair for pair in other.estates if pair[0] == row.dead]:\n"
        "            del other.estates[pair]\n",
        where=("heirs", "last words", "cut off"),
    ),
    Mutant(
        "a new attempt has the old number", 4, "store/memory/moving.py",
        "    record.attempt += 1\n",
        "",
    ),
    Mutant(
        "losses are not counted", 4, "store/memory/estates.py",
        "        rare.losses += 1\n",
        "        rare.losses = 1\n",
        where=("deadly",),
    ),
    Mutant(
        "two losses are enough", 4, "store/memory/estates.py",
        "    if rare.losses >= losses_max:\n",
        "    if rare.losses >= losses_max - 1:\n",
        where=("deadly",),
    ),
    Mutant(
        "tasks are sent ahead behind a suspect", 4, "core/send_ahead.py",
        " and spec.needs is None and not run.ready.mode & SUSPECT:\n                heap",
        " and spec.needs is None:\n                heap",
        where=("sent ahead", "rush"),
    ),
    Mutant(
        "suspects are sent ahead", 4, "core/send_ahead.py",
        "        if ready is None or ready.spec.needs is not None or ready.mode & SUSPECT:\n"
        "            return\n        if core.executors.ahead",
        "        if ready is None or ready.spec.needs is not None:\n"
        "            return\n        if core.executors.ahead",
        where=("rush",),
    ),
    Mutant(
        "suspects run unannounced", 4, "core/schedule.py",
        "        if ready.mode & SUSPECT:\n            claim_own(core, ready, ANNOUNCE)\n            continue\n",
        "",
        where=("deadly",),
    ),
    Mutant(
        "who leaves goes on starting tasks", 4, "core/leaving.py",
        "        core.membership.lease(0)\n",
        "",
        where=("leaving",),
    ),
    Mutant(
        "who leaves does not wait for its runs", 4, "core/leaving.py",
        '        ("runs that have not ended", core.executors.running),\n',
        "",
        where=("leaving",),
    ),
    Mutant(
        "who leaves does not wait until its tasks are claimed", 4, "core/leaving.py",
        '        ("tasks that it has offered", core.transfer.lent),\n',
        "",
        where=("leaving",),
    ),
    Mutant(
        "who leaves does not clear what it has carried out", 4, "core/leaving.py",
        "        send_clears(core)\n",
        "        pass\n",
        where=("leaving",),
    ),
    Mutant(
        "who leaves does not wait for those who read", 4, "core/leaving.py",
        "None if core.leaving.is_late else core.objects.made",
        "None",
        where=("leaving",),
    ),
    Mutant(
        "who leaves does not ask what is still its own", 4, "core/leaving.py",
        "    elif leaving.shards_left == NOT_ASKED:\n",
        "    elif leaving.shards_left == NOT_ASKED:\n"
        "        _say_farewell(core, _left_behind(core))\n    elif False:\n",
        where=("leaving",),
    ),
    # -- 5. lost objects --------------------------------------------------------------------------------------------
    Mutant(
        "nobody asks for a remake", 5, "core/remake.py",
        "        ask_for_remakes(core, answer.key, answer.mark, row.task, row.producers, gone)\n",
        "        pass\n",
    ),
    Mutant(
        "the wish for a remake dies with its node", 5, "store/memory/remaking.py",
        "    intend(shard, key, row.node, row.producers)\n",
        "    shard.marks += 1\n",
    ),
    Mutant(
        "whoever asks for a remake runs it", 5, "core/remake.py",
        "        claim_remake(core, answer, row.intent)",
        "        from daws.core.placement import accept\n\n        accept(core, answer)",
    ),
    Mutant(
        "a remake counts as a first commit", 5, "store/memory/life.py",
        "    if rare is not None and rare.remaking:\n        rare.remaking = False\n        told",
        "    if False:\n        rare.remaking = False\n        told",
    ),
    Mutant(
        "only the first who asks hears of the remake", 5, "store/memory/remaking.py",
        "        rare.waiters += ((row.waiter, row.need),)\n",
        "        pass\n",
    ),
    Mutant(
        "places of the dead count", 5, "store/memory/remaking.py",
        "        gone = (*row.gone, *shard.dead)\n",
        "        gone = ()\n",
    ),
    Mutant(
        "an answer to an older need is taken", 5, "store/memory/life.py",
        "            if row.parent not in edges or (record.rare is not None and record.rare.need != row.need):\n",
        "            if row.parent not in edges:\n",
        2,
        where=("cut off", "last words",),
    ),
    Mutant(
        "tasks start without what they read", 5, "core/objects.py",
        "    objects, inputs = core.objects.sizes, ready.inputs\n",
        "    objects, inputs = core.objects.sizes, [one for one in ready.inputs if one.producer < 0]\n",
    ),
    Mutant(
        "a late word has made again what was made since", 5, "store/memory/remaking.py",
        "(row.waiter, row.need) in record.rare.waiters and _is_somewhere(record):\n",
        "False:\n",
    ),
    # -- 6. references ----------------------------------------------------------------------------------------------
    Mutant(
        "objects are freed after the first reader", 6, "core/objects.py",
        "        here.made[producer] = Made(left, entry.since_ns, entry.objects)\n        return\n",
        "        here.made[producer] = Made(left, entry.since_ns, entry.objects)\n",
    ),
    Mutant(
        "objects are never freed", 6, "core/objects.py",
        "    del here.made[producer]\n    for object_ in entry.objects:\n",
        "    return\n    for object_ in objects:\n",
    ),
    Mutant(
        "nobody looks after releases that got lost", 6, "core/objects.py",
        "        _audit(core, core.config.audit_ns)\n",
        "",
    ),
    Mutant(
        "a node believes to have the objects that it has dropped", 6, "core/objects.py",
        "        del here.sizes[object_]\n        core.out.append(DropObject(object_))\n",
        "        core.out.append(DropObject(object_))\n",
        where=("failover", "fan-out", "fan-in"),
    ),
    Mutant(
        "a node believes to have the copies that it has dropped", 6, "core/objects.py",
        "    objects.copied_bytes -= objects.sizes.pop(object_)\n    core.out.append(DropObject(object_))\n",
        "    objects.copied_bytes -= objects.sizes[object_]\n    core.out.append(DropObject(object_))\n",
        where=("failover", "little memory"),
    ),
    Mutant(
        "a copy is dropped while others read it", 6, "core/objects.py",
        "        copies[one.object] = readers = max(0, readers - 1)\n",
        "        copies[one.object] = readers = 0\n",
    ),
    Mutant(
        "what is being read is evicted", 6, "core/objects.py",
        "            if not readers:\n                _drop_copy(core, object_)\n",
        "            _drop_copy(core, object_)\n",
        where=("little memory",),
    ),
    Mutant(
        "records retire before their children", 6, "store/memory/references.py",
        "        if one.children and not _have_retired(store, one.children):\n",
        "        if False:\n",
    ),
    Mutant(
        "a sink is forgotten while an intent of it stands", 6, "store/memory/references.py",
        "(record.rare.holders or has_intent(home, task))",
        "record.rare.holders",
    ),
    Mutant(
        "who has not heard from the store yet has kept it", 6, "core/handover.py",
        "        for one in adoption.objects:\n            ask(core, producer, AddPlace(producer, one, core.node))\n",
        "        self.forget(adoption)\n        core.out.append(Send(adoption.sender, Kept(core.node, (producer,))))\n",
    ),
    # -- 7. growing graphs ------------------------------------------------------------------------------------------
    Mutant(
        "a new task has no edge to itself", 7, "core/spawn.py",
        "Create(seedling.spec, seedling.parents, (), (), core.node, True, seedling.held)",
        "Create(seedling.spec, seedling.parents, (), (), core.node, False, seedling.held)",
    ),
    Mutant(
        "nobody registers with the parents", 7, "core/spawn.py",
        "        ask(core, parent, Register(parent, name, waits))\n    if not seedling.parents:\n",
        "        pass\n    if True:\n",
    ),
    Mutant(
        "a parent that is done does not say so", 7, "core/spawn.py",
        "        ask(core, row.child, Satisfy(row.child, row.task, core.node, answer.inputs))\n",
        "        pass\n",
    ),
    Mutant(
        "children of a lost attempt live on", 7, "store/memory/moving.py",
        "    if rare.spawned:\n"
        "        intend(shard, outbox_key(record.spec.id, STOP), node, all_spawned(rare))\n",
        "",
    ),
    Mutant(
        "a task is done before its children are safe", 7, "core/schedule.py",
        "    if run.number != event.run or run.growing:\n",
        "    if run.number != event.run:\n",
        where=("growing", "long children",),
    ),
    Mutant(
        "a spawner's record does not list its children", 7, "store/memory/growing.py",
        "    spawned[row.attempt] = (*known, *(task for task in row.tasks if task not in known))\n",
        "",
    ),
    Mutant(
        "what a remake spawned lives on", 7, "store/memory/life.py",
        "            intend(shard, outbox_key(row.task, STOP), row.node, all_spawned(rare))\n",
        "",
        where=("long children",),
    ),
    Mutant(
        "whoever has remade a task does not stop what it spawned", 7, "core/commits.py",
        "        if answer.stop is not None:\n            spread_stop(core, task, answer.stop)\n",
        "",
        where=("growing", "long children",),
    ),
    Mutant(
        "children of failed tasks are not born so", 7, "core/spawn.py",
        "        ask(core, row.child, Cancel(row.child, core.node, error))\n",
        "        assert error\n",
        where=("born late",),
    ),
    # -- 8. no self-made deadlock -----------------------------------------------------------------------------------
    Mutant(
        "a waiting task keeps its executor", 8, "core/spawn.py",
        "    core.recall_behind(run)\n    core.executors.release(run)\n",
        "    core.recall_behind(run)\n",
    ),
    Mutant(
        "tasks behind a waiting one are not recalled", 8, "core/spawn.py",
        "    core.recall_behind(run)\n",
        "",
        where=("sent ahead",),
    ),
    Mutant(
        "a waiting task is not woken from afar", 8, "core/outbox.py",
        "        own_outbox(core).wakes[number, task] = (owner, core.membership.lease_count)\n"
        "        core.out.append(Send(owner, Wake(core.node, task, number)))\n",
        "        told(core, number)\n",
    ),
    Mutant(
        "kinds that nobody has seen are sent ahead", 8, "core/send_ahead.py",
        "    seen = core.lengths.kinds.get(kind)\n    if seen is None:\n        return 0\n",
        "    seen = core.lengths.kinds.get(kind) or type('Seen', (), dict(count=1, total_ns=0, made_bytes=0))\n",
        where=("sent ahead",),
    ),
    Mutant(
        "tasks are sent behind kinds that nobody has seen", 8, "core/send_ahead.py",
        "            if seen and seen.total_ns <= short_ns * seen.count and spec",
        "            if (not seen or seen.total_ns <= short_ns * seen.count) and spec",
        where=("sent ahead",),
    ),
    Mutant(
        "an attempt that is over says that the next one waits", 8, "core/spawn.py",
        "    if seedling is None or seedling.run.ready.attempt != row.attempt:\n",
        "    if seedling is None:\n",
        where=("deserted",),
    ),
    Mutant(
        "an attempt that is over has opened the wait of the next one", 8, "core/spawn.py",
        "    if seedling is not None and seedling.opens:",
        "    if seedling is not None:",
        where=("deserted",),
    ),
    # -- 9. cancel --------------------------------------------------------------------------------------------------
    Mutant(
        "cancel does not spread", 9, "core/outbox.py",
        "    for child in stopped.children:\n"
        "        ask(core, child, Cancel(child, core.node, stopped.error, task, number))\n",
        "    for child in stopped.children:\n        told(core, number)\n",
    ),
    Mutant(
        "a run that ends after the cancel wins", 9, "store/memory/life.py",
        "    if record.state != READY and record.state != SUSPENDED:\n        return _finished_before(",
        "    if record.state not in (READY, SUSPENDED) and FINAL_CODE.get(record.state) != CANCELLED:\n"
        "        return _finished_before(",
        where=("cancelled", "growing",),
    ),
    Mutant(
        "a cancel dies with the node that spreads it", 9, "store/memory/stopping.py",
        "    intend(shard, outbox_key(row.task, STOP), row.node, None)\n"
        "    return stop_answer(shard, record, runners_of(record))\n",
        "    return stop_answer(shard, record, runners_of(record))\n",
        where=("cancelled",),
    ),
    Mutant(
        "a client gives its order only once", 9, "core/session_tell.py",
        "            if nodes and (sent_ns == NOT_SENT or now_ns - sent_ns >= after_ns):\n",
        "            if nodes and sent_ns == NOT_SENT:\n",
        where=("cancelled",),
    ),
    # -- 10. the log ------------------------------------------------------------------------------------------------
    Mutant(
        "some commits are not in the log", 10, "store/memory/life.py",
        '        shard.log.append(wire.LoggedEnd(row.task, STATE_DONE, "", spawned) if spawned else row.task)\n',
        "",
    ),
    Mutant(
        "commits of growing tasks do not name their children", 10, "store/memory/life.py",
        '        shard.log.append(wire.LoggedEnd(row.task, STATE_DONE, "", spawned) if spawned else row.task)\n',
        "        shard.log.append(row.task)\n",
    ),
    Mutant(
        "failures are not in the log", 10, "store/memory/stopping.py",
        "    shard.log.append(wire.LoggedEnd(task, STATE_FAILED, error, ()))\n",
        "",
        where=("deadly",),
    ),
    Mutant(
        "the client skips rows", 10, "core/session_ends.py",
        "        self._read_to[shard] = answer.next\n        if answer.trimmed:\n",
        "        self._read_to[shard] = answer.next + bool(answer.rows)\n        if answer.trimmed:\n",
        where=("bot",),
    ),
    Mutant(
        "the client hands out once and does not ask", 10, "core/session_tell.py",
        "            elif now_ns - sent.last_ns >= after_ns:\n",
        "            elif sent.last_ns == NOT_SENT:\n",
        where=("bot",),
    ),
    Mutant(
        "a node gets one batch of a graph", 10, "core/session_tell.py",
        "        if sent.node in self._later:\n            self._next.append(sent.node)\n",
        "",
        where=("bot",),
    ),
    Mutant(
        "a graph counts the commits of its session alone", 10, "core/session_ends.py",
        "    return core.session if core.graph is None else NO_SESSION\n",
        "    return core.session\n",
        where=("grown",),
    ),
    Mutant(
        "a graph does not count what its tasks have created", 10, "core/session_graph.py",
        "                self.left += name not in self._ended_spawned\n",
        "",
        where=("grown",),
    ),
    Mutant(
        "a hand-out that comes twice is taken twice", 10, "core/claims.py",
        "    if had_before(core, message.batch):\n        return\n",
        "",
    ),
    # -- 11. a store that forgets, and one that begins anew ----------------------------------------------------------
    Mutant(
        "nothing is kept", 11, "core/unsafe.py",
        "        if rows:\n            self.count += 1\n",
        "        if not call:\n            self.count += 1\n",
        where=("failover",),
    ),
    Mutant(
        "what is said again is not kept", 11, "core/failover.py",
        "    keeping.keep(call, answers)  # this server may be replaced as well\n",
        "",
        where=("failover",),
    ),
    Mutant(
        "nobody asks what it owns", 11, "core/failover.py",
        "            ask_shard(core, shard, Owned(core.node, RECONCILES, OWNED_MAX, True))\n",
        "",
        where=("failover",),
    ),
    Mutant(
        "nobody asks who owns something and is no member", 11, "core/failover.py",
        "            if shard == MEMBERSHIP_SHARD:\n                _look_for_strangers(core)\n",
        "",
        where=("grown",),
    ),
    Mutant(
        "a client waits for what a forgotten run had created", 11, "core/session_graph.py",
        "        for name in self._creations.pop(task, ()):\n            self._disown(name)\n",
        "",
        where=("grown",),
    ),
    Mutant(
        "nothing waits until it is safe", 11, "core/unsafe.py",
        "    if keeping is None or not (keeping.rows or keeping.resending):\n",
        "    if True:\n",
        where=("failover",),
    ),
    Mutant(
        "an intent is cleared before it is safe", 11, "core/outbox.py",
        "    if core.keeping is not None:\n        when_safe",
        "    if False:\n        when_safe",
        where=("failover",),
    ),
    Mutant(
        "a task ends before what it has created is safe", 11, "core/spawn.py",
        "        when_safe(core, partial(_is_safe, core, run))\n",
        "        _is_safe(core, run)\n",
        where=("grown",),
    ),
    Mutant(
        "the client reads on in a log that has changed", 11, "core/session_ends.py",
        "        self._read_to[shard] = 0\n",
        "        pass\n",
        where=("failover",),
    ),
    Mutant(
        "the client counts an end twice", 11, "core/session_graph.py",
        "        self.left -= has_ended.count(1) - before\n",
        "        self.left -= len(tasks)\n",
        where=("failover",),
    ),
    Mutant(
        "the client counts the end of a task twice that has created others", 11, "core/session_graph.py",
        "            if self._has_ended[place]:\n                return True\n",
        "",
        where=("grown",),
    ),
    Mutant(
        "the client counts the end of a created task twice", 11, "core/session_graph.py",
        "            if task in self._ended_spawned:\n                return True\n",
        "",
        where=("grown",),
    ),
    Mutant(
        "a node may be unknown to the server that takes over", 11, "core/failover.py",
        "        core.take_members(Members(0, core.members.infos, core.members.strategy))\n"
        "        ask_shard(core, shard, Lease(core.node, 0, core.info, asked_ns=core.now_ns))\n",
        "        pass\n",
        where=("failover",),
    ),
    Mutant(
        "a lost commit does not answer those who asked for a remake", 11, "store/memory/life.py",
        "        if rare is not None and rare.waiters:",
        "        if False:",
        where=("failover",),
    ),
    Mutant(
        "who is known to nobody is not taken over from", 11, "core/membership.py",
        "    if owner < 0 or owner in core.members:\n",
        "    if True:\n",
        where=("grown",),
    ),
    Mutant(
        "who waits is not told again", 11, "core/spawn.py",
        "    for parent in row.parents:\n        ask(core, parent, Register(parent, row.task, True))\n",
        "    pass\n",
        where=("grown",),
    ),
    Mutant(
        "a task that a store gives back is not claimed", 11, "core/transfer.py",
        "    _claim_from_self(core, ready, RECOVERED)\n",
        "    from daws.core.placement import accept\n\n    accept(core, ready)\n",
        where=("grown",),
    ),
    Mutant(
        "who joins is not noted", 11, "store/log/logged.py",
        "            return row.leaving or (row.info is not None and row.node not in self.infos)\n",
        "            return row.leaving\n",
    ),
    Mutant(
        "leases from before a restart never run out", 11, "store/log/logged.py",
        "    store.leases = dict.fromkeys(store.infos, until_ns)\n",
        "",
    ),
)  # fmt: skip
"""Six rules of failovers are not here, because no seed among thousands needs them: they take two deaths, two failovers
or tasks of minutes. They are needed all the same, and a unit test notices when one is taken out (`test_resending`):

- `is_refused` keeps a Create that was refused: test_a_task_that_another_had_created_is_created_again_if_that_was_lost
- `on_store_changed` forgets `given_up`: test_a_move_of_before_a_failover_does_not_hide_the_same_move_that_comes_…
- `on_unready_answer` forgets a move that was refused: test_a_move_that_the_store_has_forgotten_does_not_hide_the_same_…
- `accept` calls off an earlier attempt: test_a_run_of_before_makes_way_for_the_next_attempt
- `_look_for_strangers` asks all shards who is struck: test_a_node_that_was_struck_hears_so_from_shards_that_have_not_…
- `_may_not_wait` stops a run: test_a_run_that_waits_is_over_if_the_task_has_ended_elsewhere
"""
