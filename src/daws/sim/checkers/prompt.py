"""Time limits: things that must not take long."""

from collections import defaultdict
from collections.abc import Sequence

from daws.core.effects import CallStore, EffectType, Left, Restart
from daws.model.task import NodeId, TaskSpec
from daws.sim.checkers.known import NODE_BITS, Known
from daws.wire.store import Finish

LATE_TICKS = 1
"""The number of ticks within which a node hears that another run of its task has won, once no faults happen any
more."""


class Prompt:
    """A watcher of things that could wait for ever without an error."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.outrun: dict[int, int] = {}  # tasks of which others may have runs too -> when one of them won
        # By node: ends of runs that the store has not been told of, and when they came.
        self.untold: defaultdict[NodeId, dict[int, tuple[int, TaskSpec]]] = defaultdict(dict)

    # -- rule 3: rivals are told to stop -----------------------------------------------------------------------------

    def on_win(self, task: int) -> None:
        known = self.known
        if known.kernel.now_ns >= known.healed_ns:
            self.outrun.setdefault(task, known.kernel.now_ns)

    def check_rival(self, node: NodeId, task: int, attempt: int, does: str) -> None:
        """Check a run that begins or ends although another run of its task may have won."""
        won_ns = self.outrun.get(task)
        if won_ns is None or task in self.known.remade:
            return
        won = self.known.committed[task]
        if won is not None and attempt < won >> NODE_BITS:
            return  # a copy of an attempt that was struck with its owner: nobody else knew of it
        kernel = self.known.kernel
        if kernel.now_ns - won_ns > LATE_TICKS * kernel.config.tick_ns:
            self.known.fail(
                f"node {node} {does} a run of task {task} {(kernel.now_ns - won_ns) / 1e9:g} s after another has won"
            )

    # -- rule 1: what has ended is committed -------------------------------------------------------------------------

    def on_run_ended(self, node: NodeId, spec: TaskSpec, now_ns: int) -> None:
        if spec.kind not in self.known.kernel.growth:  # else what it has spawned must be safe first
            self.untold[node][spec.id] = (now_ns, spec)

    def on_step(self, node: NodeId, now_ns: int, out: Sequence[EffectType]) -> None:
        """Check that the end of a run leaves at once if other tasks wait for it. A busy node may keep other ends for a
        while."""
        untold = self.untold[node]
        if not untold:
            return
        for effect in out:
            kind = type(effect)
            if kind is CallStore:
                for row in effect.rows:  # type: ignore[union-attr]
                    if type(row) is Finish:
                        untold.pop(row.task, None)
            elif kind is Restart or kind is Left:
                untold.clear()
        delay_ns = self.known.kernel.config.commit_delay_ns
        for task, (since_ns, spec) in untold.items():
            if not spec.leaf or now_ns >= since_ns + delay_ns:
                self.known.fail(f"node {node} keeps the end of task {task} to itself, {now_ns - since_ns} ns after it")

    def on_death(self, node: NodeId) -> None:
        self.untold.pop(node, None)
