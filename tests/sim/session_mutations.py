"""The mutants of sessions: of the client's machine, and of what the store keeps of sessions. See `mutations`."""

from tests.sim.mutations import Mutant

SESSION_MUTANTS = (
    # -- 4. death: clients that are gone ------------------------------------------------------------------------------
    Mutant(
        "a client does not renew the lease of its session", 4, "core/session.py",
        "        self._attach()  # the lease of the session\n",
        "",
    ),
    Mutant(
        "a session that is in use can be had", 4, "store/memory/sessions.py",
        "        if row.why != TO_END and is_attached(store, entry, now_ns):\n            return UNDERWAY\n",
        "",
    ),
    Mutant(
        "numbers of sessions are given again", 4, "store/memory/sessions.py",
        "else store.session_count + 1\n",
        "else len(store.sessions) + 1\n",
    ),
    Mutant(
        "a sweeper ends what is kept", 4, "store/memory/sessions.py",
        "(row.why == TO_SWEEP and not entry.kept)",
        "row.why == TO_SWEEP",
    ),
    Mutant(
        "a client that goes on does not hand out what was left", 4, "core/session_find.py",
        "                core.hand_outs.add(owner, ready)\n",
        "                pass\n",
    ),
    Mutant(
        "a client that goes on gives numbers that were given", 4, "core/session.py",
        "        first = max(next_task + (GAP if tasks else 0), unused)\n",
        "        first = next_task\n",
    ),
    Mutant(
        "a client that goes on does not ask how tasks have ended", 4, "core/session.py",
        "                self.ends.find(self, one.task, one.state)\n",
        "                pass\n",
    ),
    # -- 5. lost objects ----------------------------------------------------------------------------------------------
    Mutant(
        "objects are written before any node knows that it has them", 5, "core/session_write.py",
        "            self._unheard[task] = set(row.outputs[0].places)\n            core.hand_outs.put(row)\n"
        "            return\n",
        "            pass\n",
        where=("live session",),
    ),
    Mutant(
        "a node that is no member yet takes objects", 5, "core/submit.py",
        "core.phase == Phase.JOINING and any(",
        "False and any(",
        where=("live session, store fails",),
    ),
    Mutant(
        "a remake that was given up loses what it reads", 5, "store/memory/stopping.py",
        "            record.inputs = (*record.inputs, *[one for one in rare.lost if one.object not in known])\n",
        "",
        where=("live session, store forgets",),
    ),
    # -- 6. references ------------------------------------------------------------------------------------------------
    Mutant(
        "a task is let go of before those that read it are written", 6, "core/session_write.py",
        "if one not in self.unwritten and not self._needed.get(one)]",
        "if one not in self.unwritten]",
    ),
    Mutant(
        "who hands a session over does not mark it as ending", 6, "core/session.py",
        "        why = TO_END if self.phase == CLOSING and self._why == TO_USE else self._why\n",
        "        why = TO_END if self.phase == CLOSING and not self._hands_over else self._why\n",
        where=("live session",),
    ),
    Mutant(
        "an object whose nodes have died is taken for a function", 6, "store/memory/sessions.py",
        "any(one.value and not one.places for one in record.outputs)",
        "any(not one.places for one in record.outputs)",
        where=("live session, store forgets", "live session"),
    ),
    Mutant(
        "an ended session is not forgotten", 6, "store/memory/sessions.py",
        "            forget(store, shard, task)\n",
        "            pass\n",
    ),
    Mutant(
        "a session ends before all shards have forgotten it", 6, "core/session.py",
        "        if answer == OK and self._unforgotten is not None:\n",
        "        if self._unforgotten is not None:\n",
    ),
    # -- 7. growing graphs --------------------------------------------------------------------------------------------
    Mutant(
        "parents in other shards are not told", 7, "core/session_write.py",
        "        core.ask(parent, Register(parent, child))\n",
        "        core.ask(child, Open(child, core.node_for(child)))\n",
    ),
    Mutant(
        "a parent that is done gives nothing to a new task", 7, "core/session_write.py",
        "                growing.made[row.task] = answer.inputs\n",
        "                pass\n",
    ),
    Mutant(
        "a new task is opened before all its parents know of it", 7, "core/session_write.py",
        "            growing.left.discard(row.task)\n            if not growing.left:\n",
        "            growing.left.discard(row.task)\n            if True:\n",
    ),
    Mutant(
        "what a killed client has begun is not completed", 7, "core/session_find.py",
        "                core.writing.complete(core, submit)\n",
        "                pass\n",
    ),
    Mutant(
        "a task with a parent that has failed waits for ever", 7, "core/session_write.py",
        "        core.cancels.want(task, error)\n\n    def on_cancelled",
        "        pass\n\n    def on_cancelled",
    ),
    # -- 9. cancel ----------------------------------------------------------------------------------------------------
    Mutant(
        "a cancel is sent once", 9, "core/session_tell.py",
        "(sent_ns == NOT_SENT or now_ns - sent_ns >= after_ns)",
        "sent_ns == NOT_SENT",
    ),
    Mutant(
        "a session that ends cancels nothing", 9, "core/session.py",
        "        for task in unfinished:\n            self.cancels.want(task)\n",
        "",
    ),
    # -- 10. the client reads a log -----------------------------------------------------------------------------------
    Mutant(
        "a call is sent once", 10, "core/session_calls.py",
        "                out.append(one.call)\n",
        "                pass\n",
    ),
    Mutant(
        "a hand-out is sent once", 10, "core/session_tell.py",
        "                out.append(Send(node, sent.message))\n        return silent\n",
        "                pass\n        return silent\n",
    ),
    Mutant(
        "a doubled answer counts twice", 10, "core/session_calls.py",
        "        one = self._sent.pop(token, None)\n",
        "        one = self._sent.get(token)\n",
    ),
    Mutant(
        "a task that is done is told without what it has made", 10, "core/session_ends.py",
        "                    self.find(core, task)\n",
        "                    self.over(core, task, state)\n",
    ),
    Mutant(
        "a client does not care for commits that were dropped", 10, "core/session_ends.py",
        "        if answer.trimmed:\n",
        "        if answer.trimmed < 0:\n",
    ),
    Mutant(
        "a reader that comes late does not hear what it has missed", 10, "store/memory/reading.py",
        "    return wire.Log(start + len(rows), found, start - row.start)\n",
        "    return wire.Log(start + len(rows), found)\n",
    ),
    Mutant(
        "a client detaches while tasks are on their way", 10, "core/session.py",
        "        elif self.phase == DETACHING and self._is_written and self.calls.is_safe:\n",
        "        elif self.phase == DETACHING:\n",
    ),
    Mutant(
        "an end that was pushed is told once more", 10, "core/session_ends.py",
        "            if ended(one.task, NOT_PENDING) is None:\n",
        "            ended(one.task, NOT_PENDING)\n            if True:\n",
        where=("live session",),
    ),
    # -- 11. acknowledged is not yet safe -----------------------------------------------------------------------------
    Mutant(
        "a client forgets what was acknowledged", 11, "core/session_calls.py",
        "            self._keep(token, shard, rows, [None] * len(rows) if answers is None else answers)\n",
        "            pass\n",
    ),
    Mutant(
        "a session is used before it is safe", 11, "core/session.py",
        "self._is_attached and self._may_open and not self.finding.is_under_way:\n",
        "self._is_attached and not self.finding.is_under_way:\n",
    ),
    Mutant(
        "a task that may be on its way is not handed out again", 11, "core/session_write.py",
        "            core.hand_outs.add(submit.node, Ready(submit.spec, 0, 0, (), AGAIN))\n",
        "            pass\n",
    ),
)  # fmt: skip
"""Other rules are not here: no seed among some hundreds needs them. Most are in `tests.unit.core.mutants`. Tests
notice when one of the others is taken out:

- a closed session gets no more tasks: `AttachingContract`
- an old hand-out is not taken: test_a_hand_out_that_is_older_than_one_that_came_before_is_not_taken
- lost objects of a closed session are not made again: `AttachingContract`
- objects of an ended session go: test_what_the_client_has_put_here_goes_if_its_session_has_ended_meanwhile

The end of the log is asked for before a session is searched (`Finding.begin`). Without that nothing is missed, since a
late answer does not count: the log is then read from its beginning.
"""
