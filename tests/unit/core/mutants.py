"""Mutants of the session machine, and of the core, that hardly any fault seed notices: a unit test must notice each.

    python -m tests.unit.core.mutants                all of them: which test notices each?
    python -m tests.unit.core.mutants --only home    those whose name contains this

They need a failover, or a client that goes on with a session, at one moment among many. In simulations a graph is in
the store, and safe, before time begins: what happens to it on its way is tested here, too. The other rules of sessions
are in `tests.sim.session_mutations`.
"""

import sys

from tests.sim.mutations import Mutant
from tests.unit.store.valkey.mutants import hunt

TESTS = (
    *(
        f"tests/unit/core/{name}.py"
        for name in ("test_session_graph", "test_session_safety", "test_session", "test_outliving", "test_validating")
    ),
    "tests/contract/test_memory_store.py",
)
GRAPH, TELL, ENDS, SESSION, CALLS, WRITE = (
    f"core/{name}.py"
    for name in ("session_graph", "session_tell", "session_ends", "session", "session_calls", "session_write")
)

MUTANTS = (
    Mutant(
        "tasks are handed out before they are safe", 11, GRAPH,
        " or self._moving) and calls.is_safe:\n", " or self._moving):\n",
    ),
    Mutant(
        "tasks are handed out before all are written", 1, GRAPH,
        "        if not (calls.graph_call_count or self._struck", "        if not (self._struck",
    ),
    Mutant(
        "tasks of a dead home are handed out before they have another one", 4, GRAPH,
        "or self._struck or self._moving)", "or self._moving)",
    ),
    Mutant(
        "tasks are handed out before the store knows their new home", 4, GRAPH,
        "or self._struck or self._moving)", "or self._struck)",
    ),
    Mutant(
        "tasks of a dead home are written once", 4, GRAPH,
        "                self._struck.append(row)\n", "                pass\n",
    ),
    Mutant(
        "tasks of a dead home are handed out to it", 4, GRAPH,
        "[one for one in ready if one.spec.id not in self._apart] if self._apart else ready", "ready",
    ),
    Mutant(
        "a task gets another home each time that its first row is refused", 11, GRAPH,
        "            if self._apart.get(task, row) is row:", "            if True:",
    ),
    Mutant(
        "a moved task that the store does not take is waited for", 9, GRAPH,
        "        self._moving.discard(task)\n        if answer != OK:\n",
        "        if answer == OK:\n            self._moving.discard(task)\n        else:\n",
    ),
    Mutant(
        "a task that the store does not take is waited for", 9, GRAPH,
        "            core.ends.take_commits(core, [LoggedEnd(task, state, error, ())])\n", "",
    ),
    Mutant(
        "the rows of a graph are sent all at once", 10, GRAPH,
        "        while calls.graph_call_count < CALLS_MAX:\n", "        while True:\n",
    ),
    Mutant(
        "a planned node that has yet to join is dead", 4, TELL,
        " and node not in self._expected\n", "\n",
    ),
    Mutant(
        "a planned node that has joined cannot die", 4, TELL,
        "                self._expected.discard(node)\n", "                pass\n",
    ),
    Mutant(
        "a graph does not ask for commits that were dropped", 10, ENDS,
        "        for task in chain(self.pending, graph):\n", "        for task in self.pending:\n",
    ),
    Mutant(
        "a graph takes no answer for commits that were dropped", 10, ENDS,
        "                self._take_story(core, task, answer)\n", "                pass\n",
    ),
    Mutant(
        "the end of a task hides what it has created", 7, ENDS,
        '        ended, looked_up, cancels = self.pending.pop',
        '        self.take_commits(core, [one.task for one in ends])\n'
        '        ended, looked_up, cancels = self.pending.pop',
    ),
    Mutant(
        "a task of a graph is cancelled before it is written", 9, SESSION,
        "            if not self._is_writing_graph:\n", "            if True:\n",
    ),
    Mutant(
        "a client detaches before its graph is written", 10, SESSION,
        "return not (self.writing or self._is_writing_graph or", "return not (self.writing or",
    ),
    Mutant(
        "a late answer about the end of a log counts", 10, ENDS,
        "            if core.finding.begins_with(shard):  # else the",
        "            if True:  # else the",
    ),
    Mutant(
        "a task is cancelled before it is written", 9, TELL,
        "            if task not in self._ordered and task not in unwritten:\n",
        "            if task not in self._ordered:\n",
    ),
    Mutant(
        "a cancel that a failover has lost is not ordered again", 11, SESSION,
        "        self.cancels.want_again()\n", "",
    ),
    Mutant(
        "after a failover the log is read on", 11, SESSION,
        "        self.ends.begin_anew(event.shard)\n", "",
    ),
    Mutant(
        "nobody looks for tasks of other clients that a failover has lost", 11, SESSION,
        "            self.ends.verify(self, shard)\n", "            pass\n",
    ),
    Mutant(
        "new rows do not wait for those that are said again", 11, CALLS,
        "        for shard in [shard for shard in self._waiting if shard not in self._resending]:\n",
        "        for shard in [*self._waiting]:\n",
    ),
    Mutant(
        "a client leaves before its tasks are safe", 11, SESSION,
        "        elif self.phase == DETACHING and self._is_written and self.calls.is_safe:\n",
        "        elif self.phase == DETACHING and self._is_written:\n",
    ),
    Mutant(
        "objects are told to go once", 6, SESSION,
        "        for task in self.letting_go.tasks:\n            self.ask_once(task, Locate(task))\n", "",
    ),
    Mutant(
        "a task is opened before it has what its parents have made", 7, WRITE,
        "        for parent, made in growing.made.items() if growing is not None else ():\n",
        "        for parent, made in ():\n",
    ),
    Mutant(
        "the objects of parents and the row that opens a task come in two calls", 7, CALLS,
        "                while end < len(rows) and type(rows[end - 1]) is Satisfy:\n                    end += 1",
        "                while False:\n                    end += 1",
    ),
    Mutant(
        "children of a parent that a failover has lost are given up", 11, WRITE,
        "        elif answer == UNKNOWN and not is_sure:\n            self._early.append(row)\n            return\n"
        "        elif answer != OK and growing is None:\n",
        "        elif answer != OK and growing is None:\n",
    ),
    Mutant(
        "what is said again ends tasks that do not need that parent any more", 11, WRITE,
        "            if register.task in answer.edges:\n", "            if True:\n",
    ),
    Mutant(
        "tasks of a session that another client ends are said to be cancelled", 9, WRITE,
        "        if answer == CANCELLED and core.takes_tasks and not core.cancels.wants(task):\n",
        "        if False:\n",
    ),
    Mutant(
        "a task that is not written is asked about, and a store that forgets says that it has ended", 10, ENDS,
        "            if task in core.writing.unwritten:\n", "            if False:\n",
    ),
    Mutant(
        "a silent member is no place of an object any more", 6, WRITE,
        "                if places and is_dead:\n", "                if places:\n",
    ),
    Mutant(
        "what another client has let go of counts as ended", 10, ENDS,
        "        if core.attach_count > since + 1:", "        if True:",
    ),
    Mutant(
        "a client leaves before it is safe that its session is kept", 11, SESSION,
        "            if not self._kept:\n", "            if False:\n",
    ),
    Mutant(
        "a client keeps a session that a sweeper ends", 6, "store/memory/sessions.py",
        "        return OK if goes_on or not row.keep else REFUSED\n", "        return OK\n",
    ),
    Mutant(
        "a slow read of before the graph hides what its tasks have created", 10, ENDS,
        " or row.session != _session_to_read(core):\n", ":\n",
    ),
    Mutant(
        "a planned node that has died is waited for", 4, GRAPH,
        "        core.hand_outs.expect([node for node in self._to_join if node not in core.members])\n",
        "        core.hand_outs.expect([node for node in self._rows.nodes if node not in core.members])\n",
    ),
    Mutant(
        "tasks of a dead home go to nodes that cannot run them", 4, GRAPH,
        "owner=core.node_for(row))", "owner=core.node_for())",
    ),
    Mutant(
        "a task ends before all that it has created has ended", 11, "core/outliving.py",
        "    return None if left else run\n", "    return run\n",
    ),
    Mutant(
        "a task that is not there counts as one that has ended", 11, "core/validating.py",
        "    if ended and story is not None:", "    if ended:",
    ),
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(hunt("tests.unit.core.mutants", __doc__, MUTANTS, TESTS))
