"""The clients that are connected to a node: their tasks and orders, and what they are told of their sessions.

A client says on its link which session it has (`Here`). Output of that session's tasks, and the notes that the client
asks for, are sent on this link. An order is acknowledged on the link on which it came.
"""

from collections.abc import Callable
from typing import Any

from daws.core.events import EventType
from daws.model.session import session_of
from daws.net.link import Link
from daws.wire.messages import CancelOrder, CancelTaken, NewTasks, Submission, SubmissionTaken
from daws.wire.session import TO_NODE, Count, Counted, Depart, Fresh, Here, TaskPrinted, ToNode


class ClientLinks:
    """The links of one incarnation of a node. All methods belong to the thread of the loop."""

    def __init__(
        self,
        happened: Callable[[list[EventType]], None],
        counted: Callable[[int], Counted],
        depart: Callable[[float], None],
        notes_changed: Callable[[], None],
        learn: Callable[[Fresh], None],
    ) -> None:
        """`happened` takes messages for the node, `counted` answers a question with its number, `depart` has the node
        leave within so many seconds. `notes_changed` is called when clients want other notes than before. `learn` takes
        new tasks with the stamps of their cells, where the store is reached directly."""
        self._happened = happened
        self._counted = counted
        self._depart = depart
        self._notes_changed = notes_changed
        self._learn = learn
        self._links: set[Link[Any]] = set()
        self._of_session: dict[int, Link[Any]] = {}
        self._wishes: dict[int, Here] = {}  # of clients that want notes, by session
        self._senders: dict[int, Link[Any]] = {}  # by batch, until it was taken

    def welcome(self, link: Link[Any]) -> None:
        """Take a connection that a client has opened."""
        self._links.add(link)
        link.begin(TO_NODE, lambda said: self._on_client(link, said), lambda: self._lose(link))

    def link_of(self, session: int) -> Link[Any] | None:
        return self._of_session.get(session)

    def send(self, session: int, word: Any) -> None:
        """Tell the client of a session, if it is connected."""
        link = self._of_session.get(session)
        if link is not None:
            link.send(word)

    def send_printed(self, word: TaskPrinted) -> None:
        """Send output of a task to the client of its session. Output of no task goes to the only client there is."""
        session = session_of(word.task)
        if session not in self._of_session and word.task < 0 and len(self._of_session) == 1:
            (session,) = self._of_session
        self.send(session, word)

    def acknowledge(self, word: SubmissionTaken | CancelTaken) -> bool:
        """Send an acknowledgement to the client that waits for it. False if no client here does."""
        link = self._senders.pop(word.batch, None)
        if link is not None:
            link.send(word)
        return link is not None

    def wishes(self) -> tuple[set[int], set[int]]:
        """The sessions whose clients want to hear of runs, and of decisions."""
        return (
            {one.session for one in self._wishes.values() if one.runs},
            {one.session for one in self._wishes.values() if one.decisions},
        )

    def close(self) -> None:
        links, self._links = self._links, set()
        for link in links:
            link.flush()
            link.close()
        self._of_session.clear()
        self._wishes.clear()
        self._senders.clear()

    def _on_client(self, link: Link[Any], said: list[ToNode]) -> None:
        events: list[EventType] = []
        for word in said:
            if isinstance(word, Here):
                self._of_session[word.session] = link
                self._wish(word)
                continue
            if isinstance(word, Fresh):
                self._learn(word)
                word = word.submission
            if isinstance(word, Submission | NewTasks | CancelOrder):
                self._senders[word.batch] = link
            if isinstance(word, Depart):
                self._depart(word.within_s)
            elif isinstance(word, Count):
                if events:  # the answer counts what came before the question
                    self._happened(events)
                    events = []
                link.send(self._counted(word.number))
            else:
                events.append(word)
        if events:
            self._happened(events)

    def _wish(self, here: Here) -> None:
        before = self._wishes.pop(here.session, None)
        if here.runs or here.decisions:
            self._wishes[here.session] = here
        if before != self._wishes.get(here.session):
            self._notes_changed()

    def _lose(self, link: Link[Any]) -> None:
        self._links.discard(link)
        for session in [session for session, known in self._of_session.items() if known is link]:
            del self._of_session[session]
            self._wish(Here(session))
        for batch in [batch for batch, known in self._senders.items() if known is link]:
            del self._senders[batch]
