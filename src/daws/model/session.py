"""Sessions as all parts of daws know them: their numbers, and what is kept of one."""

from msgspec import Struct

SESSION_BITS = 34
"""The tasks of a session are numbered from `session << SESSION_BITS` on."""
NO_SESSION = -1


def session_of(task: int) -> int:
    """The session of a task that a client has submitted."""
    return task >> SESSION_BITS


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
