"""Rows about the cluster itself, which one shard keeps: its members and its sessions.

`daws.wire.store` has all other rows.
"""

from msgspec import Struct

from daws.model.cluster import Members, NodeInfo
from daws.model.session import NO_SESSION, SessionEntry
from daws.model.task import NodeId

MEMBERSHIP_SHARD = 0
"""The shard that keeps the members of the cluster."""


class Row(Struct, frozen=True, array_like=True, gc=False, tag=True):
    """One request about one record."""


class Answer(Struct, frozen=True, array_like=True, gc=False, tag=True):
    """The answer to a row; plain integers (OK, REFUSED, …) serve where there is nothing to add."""


class Lease(Row, frozen=True):
    """Join (with `info`) or stay a member. Answers the members when they changed since `version`.

    `asked_ns` is the node's own clock when it asked: whenever the answer comes, the lease counts from then.
    """

    node: NodeId
    version: int
    info: NodeInfo | None = None
    leaving: bool = False
    asked_ns: int = 0


class Watch(Row, frozen=True):
    """Who are the members? Answered like a lease, for those who are none themselves, and for members that cannot wait
    for their next one."""

    version: int


class EnrolNode(Row, frozen=True):
    """Give a new node its number, answered by NodeEnrolled. `nonce` names the node: if it asks again, it gets the same
    number, unless many others have asked since. No number is given twice, as nobody uses one before this row is safe:
    a failover may lose the last numbers, and give them to others."""

    nonce: bytes


class UseStrategy(Row, frozen=True):
    """Let all nodes use another strategy, which stands in `Members` from then on. `version` is that of the members that
    the caller has seen last. REFUSED if the strategy was changed after that, by another caller or before a late copy of
    this row came; else OK."""

    text: str
    version: int


# Why a session is attached to.
TO_USE = 0  # by its client
TO_SWEEP = 1  # by a sweeper, if its client is gone: to hand out what that one left, or to end the session
TO_END = 2  # to end it, whoever uses it


class AttachSession(Row, frozen=True):
    """Open a session, go on with one, or stay its client: repeated before the session's lease runs out. `nonce` names
    the client. `session` is the session that it knows. Without one, `name` says which one to go on with, and a new one
    is opened if there is none. It gets the number `proposal` if there is one, which no other session ever had. A `kept`
    session goes on without a client. Answered by SessionAttached, or by UNDERWAY (another client uses it), CANCELLED
    (it is about to end) or REFUSED (it has ended, or is another's)."""

    nonce: bytes
    name: str = ""
    kept: bool = False
    session: int = NO_SESSION
    why: int = TO_USE
    proposal: int = NO_SESSION


class DetachSession(Row, frozen=True):
    """The client leaves its session, which others can go on with (`keep`), or of which nothing is left. Answered by OK,
    or by REFUSED if nobody can go on with it: the client was away for too long, and the session ends or has ended."""

    nonce: bytes
    session: int
    keep: bool


class ListSessions(Row, frozen=True):
    """Which sessions are there? Answered by SessionList."""


class CloseSession(Row, frozen=True):
    """This shard takes no more tasks of a session: whatever its client has sent before and comes late is CANCELLED."""

    session: int


class ForgetSession(Row, frozen=True):
    """Forget all tasks of a session that have ended and that nobody holds, with those that its runs have created, and
    its functions; OK when none is left, else UNDERWAY."""

    session: int


class Leased(Answer, frozen=True):
    """`members` only when they changed; `orphans` are dead incarnations whose tasks nobody has taken over yet."""

    members: Members | None = None
    orphans: tuple[NodeId, ...] = ()


class NodeEnrolled(Answer, frozen=True):
    """The number of a node."""

    node: NodeId


class SessionAttached(Answer, frozen=True):
    """The session is the caller's, which is the `clients`-th to have it. `ending`: it is the caller who ends it."""

    session: int
    name: str
    kept: bool
    ending: bool = False
    clients: int = 1


class SessionList(Answer, frozen=True):
    """All sessions, and the numbers of those whose client is there, with the ends of these clients' leases."""

    sessions: tuple[SessionEntry, ...] = ()
    attached: tuple[int, ...] = ()
    until_ns: tuple[int, ...] = ()
