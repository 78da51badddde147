"""The states of a task, and which of them are final. Plain integers: they are compared millions of times."""

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

# What may follow what. The core never looks at this table; tests, invariants and the documentation do.
TRANSITIONS: dict[int, tuple[int, ...]] = {
    WAITING: (READY, FAILED, CANCELLED),
    READY: (STAGING_IN, RUNNING, WAITING, FAILED, CANCELLED),
    STAGING_IN: (RUNNING, WAITING, READY, FAILED, CANCELLED),
    RUNNING: (SUSPENDED, STAGING_OUT, READY, FAILED, CANCELLED),
    SUSPENDED: (RUNNING, READY, FAILED, CANCELLED),
    STAGING_OUT: (DONE, READY, FAILED, CANCELLED),
    DONE: (REMAKING,),
    REMAKING: (DONE, WAITING),
    FAILED: (),
    CANCELLED: (),
}
