"""Mutants of graphs in sessions that no fault seed can notice: a unit test must notice each.

    python -m tests.unit.core.mutants                all of them: which test notices each?
    python -m tests.unit.core.mutants --only home    those whose name contains this

In simulations a graph is in the store, and safe, before time begins. What happens to it on its way is tested here.
"""

import sys

from tests.sim.mutations import Mutant
from tests.unit.store.valkey.mutants import hunt

TESTS = ("tests/unit/core/test_session_graph.py",)
GRAPH, TELL, ENDS, SESSION = (
    f"core/{name}.py" for name in ("session_graph", "session_tell", "session_ends", "session")
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
        "            core.ends.take_commits(core, [(task, state, error, ())])\n", "",
    ),
    Mutant(
        "the rows of a graph are sent all at once", 10, GRAPH,
        "        while calls.graph_call_count < CALLS_MAX:\n", "        while True:\n",
    ),
    Mutant(
        "a planned node that has yet to join is dead", 4, TELL,
        " and node not in self._expected:\n", ":\n",
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
        "a task is cancelled before it is written", 9, SESSION,
        "            if not self._is_writing_graph:\n", "            if True:\n",
    ),
    Mutant(
        "a client detaches before its graph is written", 10, SESSION,
        "return not (self.writing or self._is_writing_graph or", "return not (self.writing or",
    ),
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(hunt("tests.unit.core.mutants", __doc__, MUTANTS, TESTS))
