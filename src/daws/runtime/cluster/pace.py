"""How long new tasks of a client wait for others that go with them.

While nodes have enough to do, tasks wait: with many nodes, a message to each of them for every task or two costs more
than the tasks do.
"""

from daws.model.cluster import Members

TASKS_PER_TURN = 4096
PACE_S_MAX = 0.05
PACE_PER_NODE_S = 0.0005
"""The longest time that tasks wait, and the time for each node."""
ENOUGH = 4
"""Tasks for each executor, and work for so many turns."""


class Pace:
    """The pace follows from when tasks were taken in last, and how many have ended since."""

    def __init__(self) -> None:
        self.ended = 0
        self.is_cut_short = False  # the last turn: it had bytes enough
        self._turned_s = 0.0
        self._members = Members(0, ())
        self._slots = 0  # executors of all members

    def turn(self, now_s: float) -> None:
        """Tasks are taken in now."""
        self._turned_s, self.ended = now_s, 0

    def wait_s(self, now_s: float, pending: int, new: int, members: Members) -> float:
        """How long new tasks may wait for others. Not at all, if what nodes have might be done before.

        `pending` tasks have not ended, and `new` of them have not been taken in.
        """
        ahead = pending - new  # those that nodes have, or at least so many
        if members is not self._members:
            self._members = members
            self._slots = sum([group.count for info in members.infos for group in info.executors])
        if not members or self.is_cut_short or new >= TASKS_PER_TURN or ahead < ENOUGH * self._slots:
            return 0.0
        pace_s = min(PACE_S_MAX, PACE_PER_NODE_S * len(members.infos))
        since_s = now_s - self._turned_s
        if ahead * since_s < ENOUGH * pace_s * self.ended:
            return 0.0
        return pace_s - since_s
