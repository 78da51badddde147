"""Sessions as all parts of daws know them: their numbers, and what is kept of one."""

from msgspec import Struct

from daws.model.task import FIRST_SPAWNED_ID, FROM_OUTSIDE

SESSION_BITS = 34
"""The tasks of a session are numbered from `session << SESSION_BITS` on."""
NO_SESSION = -1
SWEEPER = b"sweeper"
"""The end of the nonces of sweepers, which have a session for a while and are no clients."""


def session_of(task: int) -> int:
    """The session of a task that a client has submitted."""
    return task >> SESSION_BITS


FIRST_BROUGHT_ID = 1 << 61
"""Functions that runs bring in are numbered from here on, above all tasks that runs create. Their numbers have the
session of the run in the place where those of clients have it."""


def brought_id(session: int, digest: bytes) -> int:
    """The number of a function that a run of this session has brought in. The same bytes always have the same one."""
    return FIRST_BROUGHT_ID | session << SESSION_BITS | int.from_bytes(digest, "little") & ((1 << SESSION_BITS) - 1)


def owner_of(task: int, kind: int) -> int:
    """The session that a task belongs to, whoever has created it. The number of a task that a run has created says
    nothing of the session. The number of its function does, whether a client or a run has brought the function in."""
    number = task if task < FIRST_SPAWNED_ID or kind == FROM_OUTSIDE else kind
    return session_of(number & (FIRST_SPAWNED_ID - 1)) if number >= 0 else NO_SESSION


class SessionEntry(Struct, frozen=True, array_like=True, gc=False):
    """A session in the store. `nonce` is that of its client, empty after that has detached; `since_ns` is when it
    was opened, by the store's clock."""

    number: int
    name: str
    kept: bool
    nonce: bytes
    since_ns: int = 0
    ending: bool = False
    clients: int = 1


class HeldTask(Struct, frozen=True, array_like=True, gc=False):
    """A task that a session has in the store. `held` by its client; `listed`, unless it is a function, or only there to
    read something: then its client need not hear of it when it goes on with the session."""

    task: int
    outputs: int
    state: int
    held: bool
    listed: bool
