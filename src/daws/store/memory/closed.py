"""Sessions that a shard takes nothing of any more, as ranges, because their number grows for as long as a store lives.

The numbers of tasks are in blocks: a session has one block for the tasks of its clients, and one for functions that its
runs bring in. The first is closed when the session begins to end, the other when the shard has forgotten the session.
The ends of the ranges stand in one sorted list: a block is closed if an odd number of them is not above it. Sessions
end one after the other, so there is about one range for each session that goes on.
"""

from bisect import bisect_right
from collections.abc import Iterable

from daws.model.session import FIRST_BROUGHT_ID, SESSION_BITS

FUNCTIONS = FIRST_BROUGHT_ID >> SESSION_BITS
"""The number of a session and this one are the number of the block of its functions."""


def is_closed(closed: list[int], task: int) -> bool:
    """Is this the number of a task or function that can never be created any more?"""
    return bisect_right(closed, task >> SESSION_BITS) & 1 == 1


def any_closed(closed: list[int], tasks: Iterable[int]) -> bool:
    """Is one of them such a number?"""
    blocks = {task >> SESSION_BITS for task in tasks}
    return any(bisect_right(closed, block) & 1 for block in blocks)


def close(closed: list[int], block: int) -> None:
    """Add a block to the closed ones, if it is not among them."""
    at = bisect_right(closed, block)
    if at & 1:
        return
    before, behind = closed[:at], closed[at:]
    if before and before[-1] == block:
        before.pop()  # a range ends here
    else:
        before.append(block)
    if behind and behind[0] == block + 1:
        del behind[0]  # a range begins behind it
    else:
        before.append(block + 1)
    closed[:] = before + behind
