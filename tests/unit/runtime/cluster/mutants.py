"""Mutants of the store's server, of sweepers and of the driver of a session: a unit test must notice each.

    python -m tests.unit.runtime.cluster.mutants                all of them: which test notices each?
    python -m tests.unit.runtime.cluster.mutants --only log     those whose name contains this

No socket and no server is needed. What the session machine itself does is tested by `tests.sim.mutants`.
"""

import sys

from tests.sim.mutations import Mutant
from tests.unit.store.valkey.mutants import hunt

FOLDER = "tests/unit/runtime/cluster"
TESTS = tuple(
    f"{FOLDER}/{name}.py"
    for name in (
        "test_serving",
        "test_sweeping",
        "test_clients",
        "test_questions",
        "test_joined",
        "direct/test_calls",
        "direct/test_clients",
    )
)
CLUSTER = "runtime/cluster"
SERVING, SWEEPING = f"{CLUSTER}/serving.py", f"{CLUSTER}/sweeping.py"
FRONT = f"{CLUSTER}/front.py"
CLIENTS, QUESTIONS, JOINED = f"{CLUSTER}/clients.py", f"{CLUSTER}/questions.py", f"{CLUSTER}/joined.py"
DRIVER = "runtime/client.py"
NODELINKS, CALLS, DESK = f"{CLUSTER}/nodelinks.py", f"{CLUSTER}/direct/calls.py", f"{CLUSTER}/direct/desk.py"

MUTANTS = (
    Mutant(
        "answers leave before they are safe", 11, SERVING,
        "        self._when_safe(let_go)\n", "        let_go()\n",
    ),
    Mutant(
        "a node that is back does not hear what it owns", 11, FRONT,
        "                asker.send(Submission(CLIENT, self._batches, answer.ready))\n", "                pass\n",
    ),
    Mutant(
        "two batches of the server have one number", 11, FRONT,
        "                self._batches += 1\n", "",
    ),
    Mutant(
        "nodes keep what belongs to a session that has ended", 6, FRONT,
        "                self.send_quietly(asker, OpenSessions([*self._open]))\n", "                pass\n",
    ),
    Mutant(
        "functions of a session that has ended are waited for", 6, FRONT,
        "        over = [function for function in self._wanted if", "        over = [function for function in () if",
    ),
    Mutant(
        "runs wait for a function that is gone with its session", 6, FRONT,
        "                    asker.send(Forgotten([function]))\n", "                    pass\n",
    ),
    Mutant(
        "a node is told that a task is lost which it is about to create", 10, FRONT,
        "        if asker.is_client:  # else", "        if True:  # else",
    ),
    Mutant(
        "a strategy that another client has changed meanwhile stays", 1, FRONT,
        "while answer == REFUSED:", "if answer == REFUSED:",
    ),
    Mutant(
        "an old link cuts off the node that is back", 11, SERVING,
        "        if self.nodes.get(caller.node) is caller:\n            del self.nodes[caller.node]\n"
        "        if self._clients",
        "        self.nodes.pop(caller.node, None)\n        if self._clients",
    ),
    Mutant(
        "an old link cuts off the client that is back", 10, SERVING,
        "        if self._clients.get(caller.session) is caller:\n", "        if caller.session in self._clients:\n",
    ),
    Mutant(
        "a tool that ends a session is taken for its client", 10, SERVING,
        "isinstance(answer, SessionAttached) and not answer.ending", "isinstance(answer, SessionAttached)",
    ),
    Mutant(
        "the log is dropped before the slowest client has read it", 10, SERVING,
        "min(read, default=self._told_to)", "max(read, default=self._told_to)",
    ),
    Mutant(
        "the log is kept from its beginning for a client that comes late", 10, SERVING,
        "caller.session, caller.read_to = answer.session, self._told_to",
        "caller.session = answer.session",
    ),
    Mutant(
        "the end of a log counts as read", 10, SERVING,
        "if type(row) is ReadLog and row.start != LOG_END:", "if type(row) is ReadLog:",
    ),
    Mutant(
        "a client that waits for nothing keeps the whole log", 10, SERVING,
        "max(min(read, default=self._told_to), self._told_to - UNREAD_MAX)",
        "min(read, default=self._told_to)",
    ),
    Mutant(
        "ends of tasks that runs have created are told to no node", 10, FRONT,
        "                of_creator.setdefault(creator, []).append(one)\n", "                pass\n",
    ),
    Mutant(
        "an acknowledgement does not reach the sweeper", 11, SERVING,
        "                self._sweeper.hear(word)\n", "                pass\n",
    ),
    Mutant(
        "a client may say that a node has died", 4, SERVING,
        "        if not self._is_private:\n", "        if False:\n",
    ),
    Mutant(
        "a client may be a node", 4, FRONT,
        "        if asker.is_client:\n            asker.send", "        if False:\n            asker.send",
    ),
    Mutant(
        "a node that hopes for work waits for its answer", 8, SERVING,
        "caller.is_client or call.hopes or not", "caller.is_client or not",
    ),
    Mutant(
        "a quiet answer comes after a later one", 11, SERVING,
        "        if self.quiet:\n            self.send_quiet()\n        self._unsent", "        self._unsent",
    ),
    Mutant(
        "a session is swept while its client has a lease", 11, SWEEPING,
        "entry.number not in listed.attached and ", "",
    ),
    Mutant(
        "a session that was left in good order is swept", 11, SWEEPING,
        " and (entry.nonce or entry.ending)", "",
    ),
    Mutant(
        "a session is swept twice at a time", 11, SWEEPING,
        "if is_left and entry.number not in swept:", "if is_left:",
    ),
    Mutant(
        "a sweeper that was refused never tries again", 11, SWEEPING,
        "isinstance(effect, SessionClosed | SessionRefused)", "isinstance(effect, SessionClosed)",
    ),
    Mutant(
        "two sessions of a sweeper share their calls", 11, SWEEPING,
        "            first_token=self._next,\n", "            first_token=FIRST_TOKEN,\n",
    ),
    Mutant(
        "a sweeper makes a call while it hears of another", 11, SWEEPING,
        "        if self._is_at_work:\n            return\n", "",
    ),
    Mutant(
        "a sweeper keeps calls of which nothing will be heard", 11, SWEEPING,
        "        self._machines.clear()\n", "",
    ),
    Mutant(
        "sessions of a sweeper have one client", 11, SWEEPING,
        "            os.urandom(NONCE_BYTES) + SWEEPER,\n", "            bytes(NONCE_BYTES),\n",
    ),
    Mutant(
        "an acknowledgement goes to the client that was heard last", 11, CLIENTS,
        "                self._senders[word.batch] = link\n",
        "                self._senders = dict.fromkeys([*self._senders, word.batch], link)\n",
    ),
    Mutant(
        "a count misses what came before the question", 9, CLIENTS,
        "                if events:  # the answer counts what came before the question\n"
        "                    self._happened(events)\n                    events = []\n",
        "",
    ),
    Mutant(
        "an old link takes the new one of its session with it", 10, CLIENTS,
        "self._of_session.items() if known is link]", "self._of_session.items()]",
    ),
    Mutant(
        "stamps come after their tasks", 1, CLIENTS,
        "                self._learn(word)\n", "",
    ),
    Mutant(
        "a node that is gone is waited for", 9, QUESTIONS,
        "            self._leave_out(node, number)\n", "            pass\n",
    ),
    Mutant(
        "an answer that comes late is one to the next question", 9, QUESTIONS,
        "self._open.get(counted.number, ", "self._open.get(max(self._open, default=0), ",
    ),
    Mutant(
        "calls that a lost link had are not repeated", 11, JOINED,
        "self._step(MembersHeard(word.members), Reconnected())", "self._step(MembersHeard(word.members))",
    ),
    Mutant(
        "ends that the store had lost are asked for once", 10, JOINED,
        "        self._ask_again()  # an end that the store has lost is known to it when the task has run again\n", "",
    ),
    Mutant(
        "a failure is told before it is known", 10, JOINED,
        "            outcomes = [one for one in outcomes if one.task not in self._dim]\n", "",
    ),
    Mutant(
        "a task is let go of before its readers are submitted", 6, JOINED,
        "        else:  # those were named by tasks that were submitted before\n", "        if gone:\n",
    ),
    Mutant(
        "a kept session lets go of tasks", 6, JOINED,
        "if released and not self.kept:", "if released:",
    ),
    Mutant(
        "a kept session is left with tasks that are not in the store", 11, JOINED,
        "            if self.kept and self.new_tasks:\n", "            if False:\n",
    ),
    Mutant(
        "a timer of an earlier attempt is taken for one of the next", 11, DRIVER,
        "        if machine is self._machine:\n            self._step(event)\n",
        "        machine.step(time.monotonic_ns(), [event], [])\n",
    ),
    Mutant(
        "a session is waited for while its client renews its lease", 11, JOINED,
        "self._rival.is_alive(self.name, word.answers[0])", "False",
    ),
    Mutant(
        "a session is not waited for though its client may be dead", 11, JOINED,
        "self._rival.is_alive(self.name, word.answers[0])", "True",
    ),
    Mutant(
        "a cancel of waiting tasks stops those that run", 9, JOINED,
        "self._cancel(tuple([task for task in tasks if task not in started]))", "self._cancel(tasks)",
    ),
    Mutant(
        "a cancel overtakes its task", 9, DRIVER,
        "            self._take_in()  # the store must know of them first\n", "            break\n",
    ),
    Mutant(
        "a node that comes does not hear whose client this is", 10, NODELINKS,
        "        self._tell([node for node in members.nodes if node not in before])\n", "",
    ),
    Mutant(
        "a node whose link was lost does not hear whose client this is", 10, NODELINKS,
        "        self._loop.call_later(AGAIN_S, self._tell_again, node)\n", "        pass\n",
    ),
    Mutant(
        "a call is safe as soon as it is answered", 11, CALLS,
        "unsafe[0][0] <= safe:", "unsafe[0][0] >= 0:",
    ),
    Mutant(
        "what changes nothing is never safe", 11, CALLS,
        "            self._on_safe(call.shard)  # what has changed nothing rests on what may be safe by now\n", "",
    ),
    Mutant(
        "what was lost is safe later", 11, CALLS,
        "        self._unsafe[shard].clear()\n", "",
    ),
    Mutant(
        "answers of an earlier life count", 11, CALLS,
        "if answered.cancelled() or life != self._lives[call.shard]:", "if answered.cancelled():",
    ),
    Mutant(
        "a call under way is made again", 11, CALLS,
        "        if call.token not in under_way:", "        if True:",
    ),
    Mutant(
        "calls to a lost server stay under way", 11, CALLS,
        "        self._under_way[shard].clear()\n", "",
    ),
    Mutant(
        "a new server is not told of", 11, CALLS,
        "                self._tell(StoreChanged(shard))\n", "",
    ),
    Mutant(
        "any server may answer", 11, CALLS,
        "identity=self._identities[shard])", "identity=self._store.identity(shard))",
    ),
    Mutant(
        "a task that was let go of stays cached", 6, DESK,
        "            forget_unended(self.store.cache_of, released)\n", "            pass\n",
    ),
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(hunt("tests.unit.runtime.cluster.mutants", __doc__, MUTANTS, TESTS))
