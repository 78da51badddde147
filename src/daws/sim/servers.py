"""The processes behind the store's shards: unreachable, slow, restarted from their log, or replaced by a replica.

Without one of these a simulated store is always there and forgets nothing. With a log, answers leave when the calls are
safe: calls since the last fsync are lost when the process dies, and no caller has received their answers. With
replicas, answers leave at once: the last calls before a replica takes over are lost although their callers have
received the answers (rule 11).
"""

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from daws.core import view
from daws.core.effects import CallStore
from daws.core.events import CallsSafe, StoreAnswered, StoreChanged
from daws.core.session_events import CommitsHeard
from daws.model.task import CLIENT, FIRST_SPAWNED_ID, NodeId
from daws.sim.machine import FATE, STORE
from daws.store.log.logged import LoggedCall, LoggedStore, StoreSettings, carry_out, go_on, set_up
from daws.store.memory.snapshot import commit_count, commits_since
from daws.strategy.rng import SplitMix64
from daws.wire.store import AnswerType, Satisfy, TakeOver, logged_task, shard_of

if TYPE_CHECKING:
    from daws.sim.kernel import Kernel

MS = 1_000_000
TOKENS_BITS = 32
"""Each client of a user counts its calls from its number and so many bits on."""
REPORT_NS = 100 * MS
BUSY_NS = 1_500 * MS
"""The time from the start in which the cluster is busy: a failover then has much to lose."""
NOTICE_NS = 300 * MS
"""The time within which every caller has noticed that another server answers, even a caller without calls."""


class ServerPlan(Struct, frozen=True):
    """The faults of the store. All of them happen before the world heals."""

    outages: int = 0  # times that a shard is unreachable for a while
    slow: int = 0  # times that a shard becomes many times slower
    restarts: int = 0  # times that the process of all shards is killed and restarts from its log
    group_ns: int = 5 * MS  # the longest time between a call and its fsync
    away_ns_max: int = 1_500 * MS
    failovers: int = 0  # times that a replica takes over a shard; there is no log then
    lag_ns: int = 1_000 * MS  # how far replicas are behind


def draw_server_plan(rng: SplitMix64) -> ServerPlan:
    kind = rng.below(3)
    return ServerPlan(
        outages=rng.below(3) + (kind == 0),
        slow=rng.below(2) + (kind == 1),
        restarts=rng.below(3) + (kind == 2),
        group_ns=(1 + rng.below(50)) * MS,
        away_ns_max=(100 + rng.below(2_000)) * MS,
    )


def draw_failovers(rng: SplitMix64) -> ServerPlan:
    return ServerPlan(
        outages=rng.below(2),
        slow=rng.below(2),
        away_ns_max=(50 + rng.below(1_000)) * MS,
        failovers=1 + rng.below(3),
        lag_ns=(20 + rng.below(1_000)) * MS,
    )


class Held(Struct, frozen=True):
    """An answer that leaves when its call is safe."""

    caller: NodeId
    call: CallStore
    answers: list[AnswerType]
    leaves_ns: int


class Heard(NamedTuple):
    """An answer that a caller has heard: when and by which server its call was served, and whether that call wrote."""

    served_ns: int
    server: int
    token: int
    wrote: bool


class Post:
    """The way of an answer to its caller, with all faults of the network.

    An answer of a server that was replaced is dropped once the caller knows of the replacement.
    """

    def __init__(self, kernel: "Kernel", servers: "Servers", shard: int, served_ns: int, wrote: bool) -> None:
        self.kernel = kernel
        self.servers = servers
        self.shard = shard
        self.served_ns = served_ns
        self.wrote = wrote
        self.server = servers.server[shard]

    @property
    def now_ns(self) -> int:
        return self.kernel.now_ns

    def push(self, at_ns: int, to: int, event: StoreAnswered) -> None:
        self.kernel.push(at_ns, FATE, lambda kernel: self._deliver(to, event))

    def _deliver(self, to: int, event: StoreAnswered) -> None:
        servers = self.servers
        if self.server < servers.known.get((to, self.shard), 0):
            return
        servers.introduce(self.kernel, to, self.shard, self.server)
        self.kernel.push(self.now_ns, to, event)
        if (to, event.token) not in servers.answered:
            # A repeated call may have two answers; only the first counts. If the call was served twice, the serve of
            # this answer decides whether it is safe, not the earlier serve whose answer was lost.
            servers.answered.add((to, event.token))
            heard = servers.heard.setdefault((to, self.shard), [])
            heard.append(Heard(self.served_ns, self.server, event.token, self.wrote))


class Notes(list[LoggedCall]):
    """A log in memory, which is never full."""

    def check(self) -> None: ...


def _caller(address: int, token: int) -> int:
    """A caller as a server knows it: the clients of a user share an address, and each has tokens of its own."""
    return address - (token >> TOKENS_BITS) if address == CLIENT else address


class Servers:
    """The store of a simulation with faults, in the place of the kernel's own. Faults happen until `horizon_ns`."""

    def __init__(self, kernel: "Kernel", plan: ServerPlan, settings: StoreSettings, horizon_ns: int, seed: int) -> None:
        self.plan = plan
        self.settings = settings
        self.horizon_ns = horizon_ns
        self.doomed = False
        self.rng = SplitMix64(seed * 6271 + 23)
        self.notes = Notes()
        self.safe = 0
        self.held: list[Held] = []
        self.away: dict[int, int] = {}  # shard -> its outages just now
        self.slow: dict[int, int] = {}  # shard -> how many times as long it takes
        self.syncs = False
        self.server = [0] * settings.shard_count  # how often each shard was replaced
        self.known: dict[tuple[int, int], int] = {}  # caller, shard -> which server it has heard of last
        self.heard: dict[tuple[int, int], list[Heard]] = {}  # caller, shard -> answers that may yet be lost, or are
        self.answered: set[tuple[int, int]] = set()  # caller, token
        self.kept_ns: dict[tuple[int, int], int] = {}  # shard, server -> up to when its successor knows what it knew
        self.begun: dict[tuple[int, int, int], int] = {}  # caller, shard, server -> last token before it was given up
        kernel.store = LoggedStore(settings, self.notes)
        kernel.store.join([machine.info for machine in kernel.machines])
        kernel.push(0, FATE, self._sync)  # the graph is in the store before anything else happens
        for _ in range(plan.outages):
            self._plan_outage(kernel, self.rng.below(settings.shard_count))
        for _ in range(plan.slow):
            self._plan_slowness(kernel, self.rng.below(settings.shard_count))
        for _ in range(plan.restarts):
            kernel.push(self.rng.below(horizon_ns), FATE, self._doom)
        for _ in range(plan.failovers):
            kernel.push(self.rng.below(min(horizon_ns, BUSY_NS)), FATE, self._fail)
        if plan.failovers:
            kernel.push(REPORT_NS, FATE, self._report)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def serve(self, kernel: "Kernel", caller: NodeId, call: CallStore) -> None:
        """Serve a call that has arrived, if the server is there."""
        shard, now_ns, costs = call.shard, kernel.now_ns, kernel.costs
        if self.away.get(shard):
            kernel.faults.note("store not there")
            return
        if self.plan.failovers and self._is_of_the_past(caller, call):
            kernel.faults.note("call of the past")
            at_ns, server = now_ns + costs.latency_ns, self.server[shard]
            kernel.push(at_ns, FATE, lambda kernel: self.introduce(kernel, caller, shard, server))
            return
        ended, noted = commit_count(kernel.store, shard), len(self.notes)
        answers = kernel.store.apply(shard, call.rows, now_ns)
        if self.plan.failovers and kernel.holds_spawned:
            # The store may forget such ends for good, before the client has read them.
            rows = commits_since(kernel.store, shard, ended)
            spawned = [row for row in rows if logged_task(row) >= FIRST_SPAWNED_ID]
            if spawned:
                kernel.tell_client(CommitsHeard(spawned))
        took_ns = (costs.store_call_ns + costs.store_row_ns * len(call.rows)) * self.slow.get(shard, 1)
        free_ns = kernel.shard_free_ns[shard] = max(now_ns, kernel.shard_free_ns[shard]) + took_ns
        if self.plan.failovers:
            kernel.faults.served(kernel, caller)
            post = Post(kernel, self, shard, now_ns, len(self.notes) > noted)
            event = StoreAnswered(call.token, answers)
            kernel.faults.send(post, STORE, caller, free_ns + costs.latency_ns, event)
            return
        self.held.append(Held(caller, call, answers, free_ns))
        if not self.syncs:
            self.syncs = True
            kernel.push(now_ns + 1 + self.rng.below(self.plan.group_ns), FATE, self._sync)

    def _is_of_the_past(self, caller: NodeId, call: CallStore) -> bool:
        """Does a call rest on answers that this server does not know?

        A real server refuses such a call. With each commit a caller says how many of its commits were acknowledged. A
        server that knows of fewer answers that it has lost something (`_COMMIT` in `store/valkey/scripts.py`). A call
        has no effect if its caller sends it before it hears of a failover, and before it has sent the lost calls again.
        Hence the end of a run never reaches a replica that has lost the tasks which the run had created in the same
        shard.
        """
        shard, token = call.shard, call.token
        who = _caller(caller, token)
        return any(
            one.token < token <= self.begun.get((who, shard, one.server), token)
            for one in self.heard.get((caller, shard), ())
            if _caller(caller, one.token) == who
            and one.wrote
            and one.served_ns > self.kept_ns.get((shard, one.server), one.served_ns)
        )

    def _sync(self, kernel: "Kernel") -> None:
        """Write all noted calls to disk, and then send their answers and show them to the checkers."""
        self.syncs = False
        if self.doomed and kernel.now_ns < self.horizon_ns:
            self._restart(kernel)
            return
        self.safe = len(self.notes)
        held, self.held = self.held, []
        for one in held:
            if kernel.checker is not None:
                kernel.checker.on_store(one.caller, one.call.rows, one.answers, kernel.now_ns)
            kernel.faults.served(kernel, one.caller)
            at_ns = max(kernel.now_ns, one.leaves_ns) + kernel.costs.latency_ns
            kernel.faults.send(kernel, STORE, one.caller, at_ns, StoreAnswered(one.call.token, one.answers))

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def _plan_outage(self, kernel: "Kernel", shard: int) -> None:
        begin_ns = self.rng.below(self.horizon_ns)
        end_ns = min(self.horizon_ns, begin_ns + self.rng.below(self.plan.away_ns_max))
        kernel.push(begin_ns, FATE, lambda kernel: self._go(kernel, shard, "store out of reach"))
        kernel.push(end_ns, FATE, lambda kernel: self._come_back(shard))

    def _go(self, kernel: "Kernel", shard: int, note: str) -> None:
        self.away[shard] = self.away.get(shard, 0) + 1
        kernel.faults.note(note)

    def _come_back(self, shard: int) -> None:
        self.away[shard] -= 1

    def _plan_slowness(self, kernel: "Kernel", shard: int) -> None:
        begin_ns = self.rng.below(self.horizon_ns)
        times = 10 + self.rng.below(300)
        kernel.push(begin_ns, FATE, lambda kernel: self._slow_down(kernel, shard, times))
        kernel.push(self.horizon_ns, FATE, lambda kernel: self._speed_up(kernel, shard))

    def _slow_down(self, kernel: "Kernel", shard: int, times: int) -> None:
        self.slow[shard] = times
        kernel.faults.note("store slowed")

    def _speed_up(self, kernel: "Kernel", shard: int) -> None:
        self.slow.pop(shard, None)
        kernel.shard_free_ns[shard] = min(kernel.shard_free_ns[shard], kernel.now_ns + MS)

    def _doom(self, kernel: "Kernel") -> None:
        """Let the process die just before its next fsync, when that hurts most."""
        self.doomed = True

    def _restart(self, kernel: "Kernel") -> None:
        """Kill the process: calls that were not safe yet are lost, and their callers have received no answer."""
        self.doomed = False
        kernel.faults.note("store restarted")
        if len(self.notes) > self.safe:
            kernel.faults.note("calls lost with the store")
        self.held.clear()
        del self.notes[self.safe :]
        back_ns = min(self.horizon_ns, kernel.now_ns + self.rng.below(self.plan.away_ns_max))
        for shard in range(self.settings.shard_count):
            self.away[shard] = self.away.get(shard, 0) + 1
        kernel.push(back_ns, FATE, self._read_log)

    def _read_log(self, kernel: "Kernel") -> None:
        for shard in range(self.settings.shard_count):
            self._come_back(shard)
        self._begin_anew(kernel)

    def _begin_anew(self, kernel: "Kernel") -> None:
        store = LoggedStore(self.settings, self.notes)
        set_up(store, self.settings)
        carry_out(store, self.notes)
        go_on(store, self.settings, kernel.now_ns)
        kernel.store = store

    # -- replicas ------------------------------------------------------------------------------------------------------

    def _fail(self, kernel: "Kernel") -> None:
        """Remove a server. After a while a replica takes its place, which does not know the latest calls."""
        shard = self.rng.below(self.settings.shard_count)
        self._go(kernel, shard, "failover")
        since_ns = max(0, kernel.now_ns - self.plan.lag_ns)
        self.kept_ns.setdefault((shard, self.server[shard]), since_ns)
        lost = [call for call in self.notes if call.shard == shard and call.now_ns > since_ns]
        if lost:
            kernel.faults.note("acknowledged and lost")
            self._take_along(kernel, lost)
        known = [call for call in self.notes if call.shard != shard or call.now_ns <= since_ns]
        self.notes[:] = known
        back_ns = min(self.horizon_ns, kernel.now_ns + self.rng.below(self.plan.away_ns_max))
        kernel.push(back_ns, FATE, lambda kernel: self._continue(kernel, shard))

    def _take_along(self, kernel: "Kernel", lost: list[LoggedCall]) -> None:
        """Often kill a node together with its server: one that would have to send a lost call again.

        The best choice is a node that has satisfied a child in another shard, or has taken over from a dead node.
        """
        if not self.rng.below(4):
            return
        count = self.settings.shard_count
        rows = [(call.shard, row) for call in lost for row in call.rows]
        writers = [row.node for _, row in rows if isinstance(row, TakeOver)]
        writers += [row.node for at, row in rows if isinstance(row, Satisfy) and shard_of(row.parent, count) != at]
        writers = sorted({node for node in writers if node in kernel.seats}) or sorted(kernel.seats)
        if writers and kernel.faults.kill(kernel, writers[self.rng.below(len(writers))]):
            kernel.faults.note("crashed with its server")

    def _continue(self, kernel: "Kernel", shard: int) -> None:
        self._come_back(shard)
        self._begin_anew(kernel)
        self.server[shard] += 1
        server = self.server[shard]
        for caller in (*kernel.seats, CLIENT):
            at_ns = kernel.now_ns + self.rng.below(NOTICE_NS)
            kernel.push(at_ns, FATE, lambda kernel, to=caller: self.introduce(kernel, to, shard, server))

    def introduce(self, kernel: "Kernel", caller: int, shard: int, server: int) -> None:
        """Tell the caller that another server answers, unless it knows already."""
        known = self.known.get((caller, shard), 0)
        if known < server:
            self.known[caller, shard] = server
            if self.resends(kernel, caller):
                tokens = kernel.client.tokens if caller == CLIENT else [view.last_token(kernel.seats[caller].core)]
                for token in tokens:
                    who = _caller(caller, token)
                    self.begun.update({(who, shard, before): token for before in range(known, server)})
            kernel.push(kernel.now_ns, caller, StoreChanged(shard))

    def resends(self, kernel: "Kernel", caller: int) -> bool:
        """Does it send again what is lost? Then it has to hear what is safe."""
        return caller == CLIENT or caller in kernel.seats

    def _report(self, kernel: "Kernel") -> None:
        """Tell nodes now and then which of their answered calls are on the replicas."""
        kernel.push(kernel.now_ns + REPORT_NS, FATE, self._report)
        safe_ns = kernel.now_ns - self.plan.lag_ns
        for (node, shard), heard in self.heard.items():
            if not self.resends(kernel, node) or kernel.faults.is_cut(STORE, node) or self.away.get(shard):
                continue
            if self.known.get((node, shard), 0) < self.server[shard]:
                continue
            now = self.server[shard]
            safe = tuple([one.token for one in heard if one.served_ns <= safe_ns and one.server == now])
            heard[:] = [one for one in heard if one.served_ns > safe_ns or one.server < now]
            if safe:
                kernel.push(kernel.now_ns, node, CallsSafe(shard, safe))
