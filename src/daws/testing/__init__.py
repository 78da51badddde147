"""Doubles for those who test daws or a strategy of their own: a driver that records, builders, and a small cluster.

Nothing here is needed to run anything.
"""

from daws.testing.build import created, members_of, ready, task
from daws.testing.driver import Driver
from daws.testing.flock import Flock

__all__ = ["Driver", "Flock", "created", "members_of", "ready", "task"]
