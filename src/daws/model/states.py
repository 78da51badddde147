"""The states of a task, and which of them are final. They are plain integers, which are compared millions of times.

The store knows a task that a node owns as READY or SUSPENDED. Whether it is queued, staging or running is known to that
node alone (`daws.core.places`).
"""

WAITING = 0  # some parents are not done
READY = 1  # owned by a node; queued, staging in or running there
STAGING_IN = 2  # its owner fetches what it reads
RUNNING = 3
SUSPENDED = 4  # waits for tasks that it spawned; its executor is free
STAGING_OUT = 5
DONE = 6
FAILED = 7
CANCELLED = 8
REMAKING = 9  # done before; runs again only to make a lost object

STATE_NAMES = (
    "waiting",
    "ready",
    "staging-in",
    "running",
    "suspended",
    "staging-out",
    "done",
    "failed",
    "cancelled",
    "remaking",
)
FINAL = frozenset((DONE, FAILED, CANCELLED))
