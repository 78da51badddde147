"""The events and effects of a session's client, beside those that it shares with nodes.

From nodes it has the events `Started`, `StoreAnswered`, `CallFine`, `CallsSafe`, `StoreChanged` and `TimerFired`, the
messages `SubmissionTaken` and `CancelTaken`, and the effects `CallStore`, `Send` and `SetTimer`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daws.core.effects import Effect, EffectType
from daws.core.events import Event, EventType
from daws.model.cluster import Members
from daws.strategy.decisions import Site, Strategy
from daws.wire.ends import Outcome
from daws.wire.store import LogRow, Submit

if TYPE_CHECKING:
    from daws.model.graph import Graph  # which imports numpy

# -- events ------------------------------------------------------------------------------------------------------------


class TasksSubmitted(Event, frozen=True):
    """New tasks, and objects that were put in from outside, in this order: parents come before their children. A node
    of -1 leaves it to the session who gets the task."""

    rows: Sequence[Submit]


class PlainTasksSubmitted(Event, frozen=True):
    """New tasks that have only a function and its arguments, as columns (see `PlainTasks`). Only a client whose process
    has the node submits them so."""

    tasks: list[int]
    kinds: list[int]
    payloads: list[bytes]


class GraphSubmitted(Event, frozen=True):
    """A whole graph, whose tasks get the numbers from `first` on, and so do its objects. The strategy plans it for the
    nodes of `site`, of which some may be yet to come. The client has no futures of its tasks. A session takes one
    graph; one whose store and node are in the client's process takes none."""

    graph: "Graph"
    strategy: Strategy
    site: Site
    first: int


class TasksCancelled(Event, frozen=True):
    tasks: Sequence[int]


class TasksLetGo(Event, frozen=True):
    """The client has no future of these tasks any more. They were named by no task that is yet to be submitted."""

    tasks: Sequence[int]


class EndsHeard(Event, frozen=True):
    """Nodes, or the server of the store, have told how tasks ended: a hint that makes it fast."""

    ends: Sequence[Outcome]


class CommitsHeard(Event, frozen=True):
    """Commits as the logs have them, told before the client has read them: a store may forget what was read."""

    commits: Sequence[LogRow]


class MembersHeard(Event, frozen=True):
    """The store has told of its members without being asked: a hint that makes it fast."""

    members: Members


class Reconnected(Event, frozen=True):
    """The link to the store was lost and made anew: what was not answered is to be sent again at once."""


class CloseAsked(Event, frozen=True):
    """The client goes. A session that it is to `keep` goes on: then all that was submitted has to be in the store
    first. Else what has not ended is cancelled. A client that `hands_over` marks the session as ending and leaves the
    rest to a sweeper."""

    keep: bool
    hands_over: bool = False


# -- effects -----------------------------------------------------------------------------------------------------------


class SessionOpened(Effect, frozen=True):
    """The session can be used. `tasks` are those that it has and holds, with the number of their outputs; how those
    end, or have ended, is told. `next_task` and all numbers above it are free."""

    session: int
    name: str
    next_task: int
    tasks: tuple[tuple[int, int], ...] = ()


class SessionRefused(Effect, frozen=True):
    """The session cannot be had, or is lost to another client. `why` is what the store has answered."""

    why: int


class TasksEnded(Effect, frozen=True):
    """Each task is told of once."""

    ends: Sequence[Outcome]


class GraphAdvanced(Effect, frozen=True):
    """The number of tasks of the graph, and of those that they have created, that have not ended."""

    left: int


class StillUnwritten(Effect, frozen=True):
    """The number of tasks that are not in the store yet, when a client leaves its session."""

    count: int


class MembersSeen(Effect, frozen=True):
    """The store has answered that these are the members now."""

    members: Members


class SessionClosed(Effect, frozen=True):
    """There is nothing left to do: the session has ended, or everything of it is in the store."""

    kept: bool


SessionEvent = (
    EventType
    | TasksSubmitted
    | PlainTasksSubmitted
    | GraphSubmitted
    | TasksCancelled
    | TasksLetGo
    | EndsHeard
    | CommitsHeard
    | MembersHeard
    | Reconnected
    | CloseAsked
)
SessionEffect = (
    EffectType
    | SessionOpened
    | SessionRefused
    | TasksEnded
    | GraphAdvanced
    | MembersSeen
    | StillUnwritten
    | SessionClosed
)
