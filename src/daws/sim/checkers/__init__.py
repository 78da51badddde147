"""Checkers: small independent programs that watch what a simulated cluster does, and stop at the first thing that
must not happen.

They believe nothing that a node says about itself: they see the rows that reached the store and its answers, the
effects that were carried out, and the graph. What they know of the truth they keep themselves.

    known      what was seen so far, whichever of them needs it
    checker    the one that the kernel talks to: it deals with what is usual, and hands everything else on
    commits    each task ends once, and what it spawned ends with it or stands on its own feet
    runs       who may begin what, where, and beside what else
    objects    nothing is read that is not there, nothing is dropped that will be read
    leaving    whoever leaves in good order leaves nothing behind
    prompt     what must not take long
    ends       when all has ended: what is left, and whether anything was lost
"""

from daws.sim.checkers.checker import Checker
from daws.sim.checkers.known import Violation

__all__ = ["Checker", "Violation"]
