"""Sessions in the form that all parts of daws share: their numbers, and the records of a session."""

from msgspec import Struct

from daws.model.task import FIRST_SPAWNED_ID, FROM_OUTSIDE

SESSION_BITS = 34
"""The tasks of a session are numbered from `session << SESSION_BITS` on."""
NO_SESSION = -1
SWEEPER = b"sweeper"
"""The end of the nonces of sweepers. A sweeper has a session for a short time and is no client."""


def session_of(task: int) -> int:
    """The session of a task that a client has submitted."""
    return task >> SESSION_BITS


FIRST_BROUGHT_ID = 1 << 61
"""The first number of functions that running tasks send to the store, above all tasks that they create.

These numbers have the session of the run at the place where the numbers of clients have it.
"""


def brought_id(session: int, digest: bytes) -> int:
    """The number of a function that a run of this session has sent. The same bytes always have the same number."""
    return FIRST_BROUGHT_ID | session << SESSION_BITS | int.from_bytes(digest, "little") & ((1 << SESSION_BITS) - 1)


def owner_of(task: int, kind: int) -> int:
    """The session of a task, whether a client or a run has created it.

    The number of a task that a run has created does not name the session. The number of its function does, whether a
    client or a run has sent the function.
    """
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
    """A task that a session has in the store.

    `held` says whether its client holds the result. `listed` says whether a client that goes on with the session is
    told about the task. Functions are not listed, nor are tasks that exist only to read something.
    """

    task: int
    outputs: int
    state: int
    held: bool
    listed: bool
