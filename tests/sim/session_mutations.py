"""The mutants of sessions: of the client's machine, and of what the store keeps of sessions. See `mutations`."""

from tests.sim.mutations import Mutant

SESSION_MUTANTS = (
    # -- 2. moving is claiming ----------------------------------------------------------------------------------------
    Mutant(
        "a hand-out of a client that was replaced is taken however late it comes", 2, "core/claims.py",
        "    known = core.transfer.given_up\n",
        "    known = {}\n",
    ),
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
        "        number = store.session_count + 1\n",
        "        number = len(store.sessions) + 1\n",
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
        "a session never ends if what was lost is to be made again", 5, "store/memory/remaking.py",
        " or wire.session_of(row.task) in shard.closed",
        "",
    ),
    # -- 6. references ------------------------------------------------------------------------------------------------
    Mutant(
        "a task is let go of before those that read it are written", 6, "core/session_write.py",
        "if one not in self.unwritten and not self._needed.get(one)]",
        "if one not in self.unwritten]",
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
        "a new task may be open before it has what its parents have made", 7, "core/session_write.py",
        "                growing.made[row.task] = answer.inputs\n",
        "                core.ask(row.child, Satisfy(row.child, row.task, core.node_for(row.child), answer.inputs))\n",
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
        "tasks are said to be cancelled when their session was lost", 9, "core/session_write.py",
        "        if answer == CANCELLED and core.takes_tasks and not core.cancels.wants(task):\n",
        "        if False:\n",
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
        "                out.append(Send(node, message))\n\n\nclass Cancels",
        "                pass\n\n\nclass Cancels",
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
        "a late answer about the end of a log hides ends", 10, "core/session_ends.py",
        "            if core.finding.begins_with(shard):",
        "            if True:",
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
    # -- 11. acknowledged is not yet safe -----------------------------------------------------------------------------
    Mutant(
        "a client forgets what was acknowledged", 11, "core/session_calls.py",
        "            self._keep(token, shard, rows, answers)\n",
        "            pass\n",
    ),
    Mutant(
        "a task is given up whose parent is to be written once more", 11, "core/session_write.py",
        "self._was_sure(row.task, row.child) and row.task not in self.unwritten\n",
        "self._was_sure(row.task, row.child)\n",
    ),
    Mutant(
        "the end of a lost parent is not known to what is said again", 11, "core/session_write.py",
        "                self._doom(core, register, refusal)\n",
        "                self._end_as(core, row.task, core.ends.fate_of(register.task))\n",
    ),
    Mutant(
        "a session is used before it is safe", 11, "core/session.py",
        "self._is_attached and self.calls.is_safe and not self.finding.is_under_way:\n",
        "self._is_attached and not self.finding.is_under_way:\n",
    ),
    Mutant(
        "a task that may be on its way is not handed out again", 11, "core/session_write.py",
        "            core.hand_outs.add(submit.node, Ready(submit.spec, 0, 0, (), AGAIN))\n",
        "            pass\n",
    ),
)  # fmt: skip
"""Other rules are not here: no seed among some hundreds needs them. Tests notice when one of these is taken out:

- a closed session gets no more tasks: `AttachingContract`
- nodes are told again that objects may go: test_what_is_let_go_of_is_told_to_those_who_have_it_until_it_is_gone
- each end is told once: test_ends_are_read_from_the_log_and_told_once

Nothing notices yet when one of these is taken out; they need worlds that aim at them:

- a task is cancelled after it is written (`Cancels.flush`), and once more after a failover (`Cancels.want_again`)
- the end of the log is asked for before a session is searched (`Finding.begin`)
- after a failover logs are read anew (`SessionEnds.begin_anew`), lost tasks of other clients are looked for
  (`SessionEnds.verify`), and new rows wait (`SessionCalls.flush`)
- a client detaches when all is safe (`SessionCore._go_on`)
"""
