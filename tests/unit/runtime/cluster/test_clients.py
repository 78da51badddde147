"""The clients that are connected to a node: what they say, and what they are told."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import msgpack, structs

from daws.core.events import NewStrategy
from daws.model.session import SESSION_BITS
from daws.model.task import FIRST_SPAWNED_ID, Ready, TaskSpec
from daws.net.handshake import Hello
from daws.runtime.cluster.clients import ClientLinks
from daws.wire.cluster import Ends
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, NewTasks, Submission, SubmissionTaken
from daws.wire.notes import Counters
from daws.wire.session import Count, Counted, Depart, Fresh, Here, TaskPrinted
from daws.wire.store import Submit

COUNTED = Counted(Counters(4, 1, 2, 3, 4), [7])
SEVEN = Ready(TaskSpec(7), 0, 0)


class Client:
    """A link to a client, as a node has it."""

    def __init__(self, links: ClientLinks) -> None:
        self.peer = Hello("tests", "client")
        self.heard: list[Any] = []
        self.is_open = True
        self.is_flushed = False
        links.welcome(self)  # type: ignore[arg-type]

    def begin(self, decoder: Any, received: Callable[[list[Any]], None], lost: Callable[[], None]) -> None:
        self._decoder, self._received, self.lose = decoder, received, lost

    def says(self, *said: Any) -> None:
        self._received(self._decoder.decode(msgpack.encode(said)))

    def send(self, word: Any) -> None:
        self.heard.append(word)

    def flush(self) -> None:
        self.is_flushed = True

    def close(self) -> None:
        self.is_open = False


class Node:
    def __init__(self) -> None:
        self.happened: list[Any] = []
        self.departs: list[float] = []
        self.changes = 0
        self.stamps: list[Any] = []
        self.links = ClientLinks(
            self.happened.append,
            self.count,
            self.departs.append,
            self.change,
            self.stamps.append,
        )

    def count(self, number: int) -> Counted:
        self.happened.append("counted")
        return structs.replace(COUNTED, number=number)

    def change(self) -> None:
        self.changes += 1

    def client(self, session: int, runs: bool = False, decisions: bool = False) -> Client:
        made = Client(self.links)
        made.says(Here(session, runs, decisions))
        return made


@pytest.fixture
def node() -> Node:
    return Node()


def test_what_clients_tell_a_node_happens_together_and_is_acknowledged_to_who_said_it(node: Node):
    one, two = node.client(1), node.client(2)
    submission, order = Submission(-1, 5, (SEVEN,)), CancelOrder(-1, 6, (7,))
    put = NewTasks(-1, 8, (Submit(TaskSpec(9), (), 4),))
    one.says(submission, NewStrategy("flds"), order)
    two.says(put)
    assert node.happened == [[submission, NewStrategy("flds"), order], [put]]
    assert node.links.acknowledge(SubmissionTaken(4, 8)) and node.links.acknowledge(CancelTaken(4, 6))
    assert node.links.acknowledge(SubmissionTaken(4, 5))
    assert one.heard == [CancelTaken(4, 6), SubmissionTaken(4, 5)] and two.heard == [SubmissionTaken(4, 8)]
    assert not node.links.acknowledge(SubmissionTaken(4, 5)), "nobody waits for it any more"


def test_an_acknowledgement_for_a_client_that_is_gone_goes_nowhere(node: Node):
    one, two = node.client(1), node.client(2)
    one.says(Submission(-1, 5, (SEVEN,)))
    two.says(Submission(-1, 6, (SEVEN,)))
    one.lose()
    assert not node.links.acknowledge(SubmissionTaken(4, 5))
    assert node.links.acknowledge(SubmissionTaken(4, 6)) and not one.heard


def test_stamps_of_new_tasks_are_learnt_before_the_node_hears_of_them(node: Node):
    one = node.client(1)
    submission = Submission(-1, 5, (SEVEN,))
    one.says(Fresh(submission, ((7, b"stamp"),)))
    assert node.stamps == [Fresh(submission, ((7, b"stamp"),))] and node.happened == [[submission]]
    assert node.links.acknowledge(SubmissionTaken(4, 5)) and one.heard


def test_a_count_has_what_came_before_the_question(node: Node):
    one = node.client(1)
    before, after = Submission(-1, 5, (SEVEN,)), Submission(-1, 6, (SEVEN,))
    one.says(before, Count(3), after)
    assert node.happened == [[before], "counted", [after]] and one.heard == [structs.replace(COUNTED, number=3)]


def test_a_node_is_told_to_leave(node: Node):
    node.client(1).says(Depart(5.0))
    assert node.departs == [5.0] and not node.happened


def test_output_goes_to_the_client_of_its_session_alone(node: Node):
    one, two = node.client(1), node.client(2)
    printed = TaskPrinted((2 << SESSION_BITS) + 7, 1, b"hello")
    node.links.send_printed(printed)
    node.links.send_printed(TaskPrinted((3 << SESSION_BITS) + 7, 1, b"of a session whose client is away"))
    assert (one.heard, two.heard) == ([], [printed])


def test_output_of_no_task_goes_to_the_only_client(node: Node):
    one = node.client(1)
    printed = TaskPrinted(-1, 2, b"a worker warns")
    node.links.send_printed(printed)
    two = node.client(2)
    node.links.send_printed(printed)
    assert (one.heard, two.heard) == ([printed], []), "with two, it is known of neither"


def test_a_session_is_on_the_link_where_its_client_was_heard_last(node: Node):
    before = node.client(1)
    after = node.client(1)
    node.links.send(1, Ends([Outcome(7)]))
    before.lose()
    node.links.send(1, Ends([Outcome(8)]))
    assert (before.heard, after.heard) == ([], [Ends([Outcome(7)]), Ends([Outcome(8)])])
    linked: object = node.links.link_of(1)
    assert linked is after
    after.lose()
    assert node.links.link_of(1) is None
    node.links.send(1, Ends([Outcome(9)]))
    assert len(after.heard) == 2


def test_notes_are_taken_while_a_client_asks_for_them(node: Node):
    node.client(1)
    assert node.changes == 0 and node.links.wishes() == (set(), set())
    two, three = node.client(2, runs=True), node.client(3, runs=True, decisions=True)
    assert node.links.wishes() == ({2, 3}, {3}) and node.changes == 2
    two.says(Here(2, True))  # now and then, so that its link stays open
    assert node.changes == 2
    three.lose()
    assert node.links.wishes() == ({2}, set()) and node.changes == 3
    two.says(Here(2))
    assert node.links.wishes() == (set(), set()) and node.changes == 4


def test_notes_go_on_if_an_older_link_of_their_client_is_lost(node: Node):
    before = node.client(1, runs=True)
    node.client(1, runs=True)
    before.lose()
    assert node.links.wishes() == ({1}, set())


def test_a_node_that_ends_sends_what_is_left_and_knows_nobody(node: Node):
    one = node.client(1, runs=True)
    one.says(Submission(-1, 5, (SEVEN,)))
    node.links.close()
    assert one.is_flushed and not one.is_open
    assert not node.links.acknowledge(SubmissionTaken(4, 5)) and node.links.link_of(1) is None
    assert node.links.wishes() == (set(), set())


def test_output_of_tasks_that_runs_have_created_names_a_task_of_the_session(node: Node):
    """The node has found the session by the run before; of any other number nobody knows whose it is."""
    one = node.client(1)
    node.links.send_printed(TaskPrinted(FIRST_SPAWNED_ID + 5, 1, b"?"))
    assert not one.heard
