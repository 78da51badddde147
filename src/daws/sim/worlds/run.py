"""A scenario carried out: a kernel is made from it and run with faults, then without, and the end is checked."""

from collections.abc import Callable
from functools import partial

from daws.core.node import NodeCore
from daws.model.states import CANCELLED, FAILED
from daws.sim.checkers import Violation
from daws.sim.checkers.remembered import check_remembered
from daws.sim.kernel import Kernel
from daws.sim.machine import FATE
from daws.sim.servers import Servers
from daws.sim.simulate import FAIR, SIMPLE, Settings, make_kernel
from daws.sim.user import SessionUser, install_user
from daws.sim.worlds.aimed import AimedFaults
from daws.sim.worlds.corpus import draw_scenario
from daws.sim.worlds.graphs import MS
from daws.sim.worlds.scenario import Scenario, WorldOutcome
from daws.sim.worlds.watch import KillerChecker, NodesChecker
from daws.store.log.logged import StoreSettings
from daws.store.memory.snapshot import unfinished_in

LIVENESS_NS = 120_000 * MS
"""After the last fault, everything must have ended within this time."""
SETTLING_NS = 20_000 * MS
"""Leases, acknowledgements and audits have settled this long after the last task has ended."""
KILLS = 3
"""A task is not tried again when this many nodes have died while they ran it."""
EVENTS_MAX = 250_000
"""Many times what any of these small runs needs: nodes that never come to rest are found out at this event."""

Deep = Callable[[NodeCore], None]


def make_scenario_kernel(scenario: Scenario, deep: Deep | None = None) -> Kernel:
    """The simulated cluster of a scenario. `deep` looks into each node after each of its steps."""
    settings = Settings(
        seed=scenario.seed,
        shards=scenario.shards,
        lease_s=scenario.lease_s,
        audit_s=4.0,
        freed_batch=scenario.freed_batch,
        memory_bytes=scenario.memory_bytes,
        digest=True,
        direct=scenario.direct,
        network=FAIR if scenario.shared_links else SIMPLE,
        retired_max=scenario.retired_max,
        replicated=scenario.is_forgetful,
    )
    kernel = make_kernel(scenario.graph, scenario.cluster, scenario.strategy, settings)
    kernel.faults = faults = AimedFaults(kernel, scenario)
    if scenario.user is not None:
        install_user(kernel, scenario.user)
    kernel.checker = checker = (NodesChecker if scenario.is_forgetful else KillerChecker)(kernel, deep)
    checker.killers = scenario.killers
    if isinstance(kernel.client, SessionUser):
        checker.known.may_be_lost = kernel.client.truth.may_be_lost
    if scenario.servers is not None:
        store = kernel.store
        made = StoreSettings(
            store.shard_count, store.lease_ns, store.replicas_max, store.history, store.direct, store.retired_max
        )
        kernel.servers = Servers(kernel, scenario.servers, made, scenario.plan.horizon_ns, scenario.seed)
    _schedule(scenario, kernel, faults)
    kernel.progress = partial(_check_rest, kernel, scenario.seed)
    return kernel


def _schedule(scenario: Scenario, kernel: Kernel, faults: AimedFaults) -> None:
    for _ in range(scenario.store_cuts):
        kernel.push(faults.rng.below(1_000 * MS), FATE, faults.cut_from_store_for_long)
    for task, at_ns in scenario.cancelled:
        kernel.push(at_ns, FATE, partial(faults.cancel, task=task))
    for index, at_ns, deadline_ns in scenario.leaves:
        kernel.tracks_runs = True  # a node that leaves recalls what it has sent ahead
        kernel.push(at_ns, FATE, partial(faults.tell_to_leave, index=index, deadline_ns=deadline_ns))


def _check_rest(kernel: Kernel, seed: int, done: int) -> None:
    if kernel.event_count > EVENTS_MAX:
        raise Violation(f"seed {seed}: {kernel.client.waiting_for} tasks have not ended at event {kernel.event_count}")


def run_scenario(seed: int, deep: Deep | None = None) -> WorldOutcome:
    """One run with faults, then without, until everything has ended; raises a Violation if anything is wrong."""
    scenario = draw_scenario(seed)
    kernel = make_scenario_kernel(scenario, deep)
    kernel.start()
    kernel.run(scenario.plan.horizon_ns + LIVENESS_NS)
    if kernel.client.waiting_for:
        raise Violation(
            f"seed {seed}: {kernel.client.waiting_for} tasks have not ended long after the last fault: {_stuck(kernel)}"
        )
    end_ns = kernel.now_ns
    kernel.run_on(end_ns + SETTLING_NS)
    if isinstance(kernel.client, SessionUser):
        kernel.client.remove_files()
    if scenario.is_forgetful:
        check_remembered(kernel)
        kernel.checker.objects.check_machines()
    else:
        _check_all(scenario, kernel)
    _check_ends(scenario, kernel.client.ended)
    if isinstance(kernel.client, SessionUser):
        kernel.client.truth.check_left()
    ended = [state for state, _ in kernel.client.ended.values()]
    return WorldOutcome(
        seed=seed,
        kind=scenario.kind,
        strategy=scenario.strategy.name,
        tasks=scenario.graph.task_count,
        failed=ended.count(FAILED),
        cancelled=ended.count(CANCELLED),
        end_ns=end_ns,
        faults=kernel.faults.injected,
        digest=kernel.digest.hexdigest(),
    )


def _check_all(scenario: Scenario, kernel: Kernel) -> None:
    checker = kernel.checker
    checker.finish(killers_allowed=True)
    checker.objects.check_freed()
    checker.ends.check_grown()
    checker.ends.check_settled()
    checker.leavers.check_left(orderly=scenario.is_peaceful)
    if scenario.is_peaceful and not scenario.returns:  # a node that has just joined is not known to all others yet
        checker.ends.check_begun_once()
    _check_killers(scenario, kernel.client.ended, checker.kills)


def _check_ends(scenario: Scenario, ended: dict[int, tuple[int, str]]) -> None:
    """No task can fail by itself, and none is cancelled unless somebody asked for it."""
    cancels = scenario.plan.cancels or scenario.cancelled
    for task, (state, error) in ended.items():
        follows = cancels and "which it needs" in error
        if state == FAILED and "nodes when they died" not in error and not follows:
            raise Violation(f"seed {scenario.seed}: task {task} failed although nothing in it can fail: {error}")
        if state == CANCELLED and not cancels and task < scenario.graph.task_count:
            raise Violation(f"seed {scenario.seed}: task {task} was cancelled although nobody asked for it")


def _check_killers(scenario: Scenario, ended: dict[int, tuple[int, str]], kills: int) -> None:
    """A killer takes down as many nodes as it may, and no more; where tasks run twice, a copy may have died besides."""
    for killer in scenario.killers:
        if killer not in ended:
            raise Violation(f"seed {scenario.seed}: task {killer} kills its nodes and was not found out")
        copied = scenario.strategy.replicate.copies_max > 0
        if kills < KILLS or (kills > KILLS and not copied):
            raise Violation(f"seed {scenario.seed}: task {killer} has killed {kills} nodes and not {KILLS}")


def _stuck(kernel: Kernel) -> str:
    """The first few tasks that have not ended, and where they are."""
    found = [
        f"task {task} state {record.state} owner {record.owner} move {record.move} edges {record.edges}"
        for task, record in unfinished_in(kernel.store)
    ]
    if isinstance(kernel.client, SessionUser):
        found = [kernel.client.describe(), *found]
    return "; ".join(found[:4]) or "all records are final, but the client has not heard of it"
