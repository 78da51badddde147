"""How ends of tasks are told: as they happen, and again to callers that ask.

A client or node that was not connected when a task ended asks for it by the task. The record has the outcome as long as
the task is held.
"""

from msgspec.structs import replace

from daws.wire.ends import Outcome
from daws.workers.roots import once_each

LOST = "the store does not know task {} any more: it was restarted without what it knew, or its session has ended"


def with_each_failure_once(outcomes: list[Outcome]) -> list[Outcome]:
    """Keep each failure in one outcome only, for a message to one listener. A hundred thousand tasks may have failed
    because of one."""
    bad = [at for at, one in enumerate(outcomes) if one.failure]
    if len(bad) > 1:
        for at, failure in zip(bad, once_each([(outcomes[at].error, outcomes[at].failure) for at in bad]), strict=True):
            if not failure:
                outcomes[at] = replace(outcomes[at], failure=b"")
    return outcomes
