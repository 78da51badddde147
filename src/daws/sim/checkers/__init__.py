"""Checkers: small independent programs that watch a simulated cluster, and stop at the first thing that must not
happen.

They believe nothing that a node says about itself: they see the rows that reached the store and its answers, the
effects that were carried out, and the graph. They keep their own record of the truth.

    known      facts that more than one checker needs
    checker    the checker that the kernel calls: it handles the usual events, and passes all others on
    commits    each task ends once, and its spawned tasks end with it or become independent
    runs       which node may begin which task, on which executor, and beside which other tasks
    objects    nothing is read that is not there, nothing is dropped that will be read
    leaving    a node that leaves in good order leaves nothing behind
    prompt     things that must not take long
    ends       when all has ended: nothing is left over, and nothing was lost
"""

from daws.sim.checkers.checker import Checker
from daws.sim.checkers.known import Violation

__all__ = ["Checker", "Violation"]
