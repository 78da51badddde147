"""Links that are shared: all transfers under way at a node's link get a max-min fair part of it.

A transfer takes part in two links, out of its source and into its receiver, and is as fast as the tighter of the two
lets it be. Each link offers a share: the rate of each transfer that its other link does not hold back already. When a
transfer begins or ends, its two links compute their shares anew. A link passes a change of its share on to the links at
the other ends of its transfers, and so on. At rest this is the max-min fair allocation over all transfers.

Gains of less than `TOLERANCE` are left unused: a change then stays near its origin and costs a few links instead of all
of them. Losses are always passed on: no link carries more than it can.
"""

from collections import deque
from collections.abc import Callable
from math import inf

from daws.sim.machine import FATE, Machine

TOLERANCE = 0.01
VISITS_MAX = 8
"""The most times that a link computes its share for one change. More was never seen to be needed."""
NS_PER_S = 1_000_000_000
EMPTY_BYTES = 0.5
"""Less than this is nothing: rates are floats, and times whole nanoseconds."""

Push = Callable[[int, int, Callable[[object], None]], None]
Done = Callable[[int], None]
"""Called with the time when the last byte has left the link."""


class FairLink:
    """One direction of a node's network card."""

    __slots__ = ("bytes_per_s", "flows", "is_out", "share")

    def __init__(self, bytes_per_s: float, is_out: bool) -> None:
        self.bytes_per_s = bytes_per_s
        self.is_out = is_out
        self.flows: dict[Flow, None] = {}
        self.share = inf  # bytes per second of each transfer that nothing else holds back; infinite if there is room

    def fair_share(self) -> float:
        """The level up to which transfers may fill this link, those that are held back elsewhere less."""
        flows = self.flows
        if not flows:
            return inf
        # Most of the time of a simulation with many transfers is spent here.
        if self.is_out:
            limits = [share if (share := flow.to.share) < flow.most else flow.most for flow in flows]
        else:
            limits = [share if (share := flow.source.share) < flow.most else flow.most for flow in flows]
        left = self.bytes_per_s
        if min(limits) * len(limits) >= left:
            return left / len(limits)
        limits.sort()
        for number, limit in enumerate(limits):
            share = left / (len(limits) - number)
            if limit >= share:
                return share
            left -= limit
        return inf


class Flow:
    """A transfer under way."""

    __slots__ = ("armed_ns", "done", "left_bytes", "most", "rate", "since_ns", "source", "to")

    def __init__(self, source: FairLink, to: FairLink, size_bytes: int, most: float, now_ns: int, done: Done) -> None:
        self.source = source
        self.to = to
        self.most = most  # bytes per second, whatever the links have left
        self.left_bytes = float(size_bytes)
        self.rate = 0.0
        self.since_ns = now_ns  # when `left_bytes` was right
        self.armed_ns = 1 << 62  # when it is looked at next
        self.done = done

    def fair_rate(self) -> float:
        return min(self.most, self.source.share, self.to.share)

    def settle(self, now_ns: int) -> None:
        self.left_bytes -= self.rate * (now_ns - self.since_ns) / NS_PER_S
        self.since_ns = now_ns

    def end_ns(self) -> int:
        return self.since_ns + int(max(0.0, self.left_bytes) * NS_PER_S / self.rate) + 1


class FairNetwork:
    """All links of a cluster. `push(at_ns, FATE, function)` enters what is to happen later."""

    def __init__(self, bytes_per_s: float, push: Push, tolerance: float = TOLERANCE) -> None:
        self.bytes_per_s = bytes_per_s
        self.push = push
        self.tolerance = tolerance
        self.outs: dict[Machine, FairLink] = {}
        self.ins: dict[Machine, FairLink] = {}

    def begin(self, source: Machine, to: Machine, size_bytes: int, most: float, now_ns: int, done: Done) -> None:
        """A transfer begins now; it is never faster than `most` bytes per second."""
        out = self.outs.get(source)
        if out is None:
            self.outs[source] = out = FairLink(self.bytes_per_s, True)
        into = self.ins.get(to)
        if into is None:
            self.ins[to] = into = FairLink(self.bytes_per_s, False)
        flow = Flow(out, into, size_bytes, most, now_ns, done)
        out.flows[flow] = into.flows[flow] = None
        self._share_anew(flow, now_ns)
        self._speed(flow, now_ns)

    def _share_anew(self, changed: Flow, now_ns: int) -> None:
        """A transfer has come or gone."""
        visits: dict[FairLink, int] = {}
        dirty = deque((changed.source, changed.to))
        waiting = {changed.source, changed.to}
        touched: dict[Flow, None] = {}
        while dirty:
            link = dirty.popleft()
            waiting.discard(link)
            visits[link] = visited = visits.get(link, 0) + 1
            old, new = link.share, link.fair_share()
            if visited > VISITS_MAX or old <= new <= old * (1 + self.tolerance):
                continue
            link.share = new
            touched.update(link.flows)
            slowest = min(old, new)
            for flow in link.flows:
                other = flow.to if link.is_out else flow.source
                # Who is held back more tightly at the other end does not notice.
                if other not in waiting and slowest < other.share * (1 + self.tolerance) and slowest < flow.most:
                    waiting.add(other)
                    dirty.append(other)
        for flow in touched:
            self._speed(flow, now_ns)

    def _speed(self, flow: Flow, now_ns: int) -> None:
        """Let it go on at its present rate, and look at it when it should have ended, if nobody looks earlier."""
        rate = flow.fair_rate()
        if rate != flow.rate:
            flow.settle(now_ns)
            flow.rate = rate
        end_ns = flow.end_ns()
        if end_ns < flow.armed_ns:
            flow.armed_ns = end_ns
            self.push(end_ns, FATE, lambda _: self._look_at(flow, end_ns))

    def _look_at(self, flow: Flow, now_ns: int) -> None:
        if flow.armed_ns != now_ns:
            return  # it ended earlier, or will be looked at earlier
        flow.settle(now_ns)
        if flow.left_bytes > EMPTY_BYTES:
            flow.armed_ns = 1 << 62
            self._speed(flow, now_ns)  # it was slowed down meanwhile
            return
        flow.armed_ns = -1
        del flow.source.flows[flow], flow.to.flows[flow]
        self._share_anew(flow, now_ns)
        flow.done(now_ns)
