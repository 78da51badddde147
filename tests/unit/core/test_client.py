"""The client: it puts a graph into the store, hands ready tasks out until they are taken, and reads the log."""

import numpy as np

from daws.core.client import BATCH_GROWTH, BATCH_TASKS, FIRST_BATCH_TASKS, ClientCore
from daws.core.effects import CallStore, EffectType, Send, SetTimer
from daws.core.events import EventType, Started, StoreAnswered, StoreChanged, TimerFired
from daws.core.node import NodeConfig
from daws.model.cluster import Members
from daws.model.graph import Graph
from daws.model.graph_builder import GraphBuilder
from daws.model.states import CANCELLED, DONE, FAILED
from daws.model.task import CLIENT, spawned_id
from daws.store.memory import MemoryStore
from daws.strategy import parse_strategy
from daws.strategy.decisions import Site
from daws.testing import members_of
from daws.wire.messages import CancelOrder, CancelTaken, Submission, SubmissionTaken
from daws.wire.store import Create, Finish, Leased, Log, LogRow, Watch

MEMBERS = members_of(2)


def bag(count: int) -> Graph:
    builder = GraphBuilder()
    for _ in range(count):
        builder.add_task("one", 1_000_000)
    return builder.build()


def chain() -> Graph:
    builder = GraphBuilder()
    first = builder.add_task("one", 1_000_000, (), (10_000,))
    builder.add_task(
        "two",
        1_000_000,
        [first],
        (),
    )
    return builder.build()


LATER = NodeConfig().tick_ns


def test_what_is_said_of_lengths_reaches_the_nodes():
    graph = bag(3)
    assert [row.spec.estimate_ns for row in created(client_of(graph))] == [0, 0, 0], "nobody knows true lengths"
    told = graph.changed(estimate_ns=[5, 0, 7])
    assert [row.spec.estimate_ns for row in created(client_of(told))] == [5, 0, 7]


def test_ranks_are_made_of_estimates_where_there_are_any():
    graph = chain()
    ranked = "mlb:assign=round-robin,order=critical-path"
    assert [row.spec.rank for row in created(client_of(graph, ranked))] == [2_000_000, 1_000_000]
    told = graph.changed(estimate_ns=[5, 7])
    assert [row.spec.rank for row in created(client_of(told, ranked))] == [12, 7]


def client_of(graph: Graph, strategy: str = "mlb:assign=round-robin", shards: int = 1) -> ClientCore:
    places = np.zeros(graph.external_count, dtype=np.int64)
    return ClientCore(graph, parse_strategy(strategy), Site(MEMBERS, 1e9, places, 0), NodeConfig(shard_count=shards))


def created(client: ClientCore) -> list[Create]:
    return [row for call in client.create_calls() for row in call.rows if isinstance(row, Create)]


def stepped(client: ClientCore, *events: EventType, now_ns: int = 0) -> list[EffectType]:
    out: list[EffectType] = []
    client.step(now_ns, events, out)
    return out


def submissions(out: list[EffectType]) -> list[Submission]:
    return [effect.message for effect in out if isinstance(effect, Send) and isinstance(effect.message, Submission)]


def answered(client: ClientCore, out: list[EffectType], start: int, *rows: LogRow) -> None:
    """The log of the (only) shard goes on with these rows, from number `start` on."""
    (call,) = [effect for effect in out if isinstance(effect, CallStore)]
    stepped(client, StoreAnswered(call.token, [Log(start + len(rows), list(rows))]))


def test_the_graph_is_described_with_both_ends_of_each_edge():
    first, second = created(client_of(chain()))
    assert (first.children, first.parents, first.spec.leaf) == ((1,), (), False)
    assert (second.children, second.parents, second.spec.leaf) == ((), (0,), True)
    assert second.spec.inputs == first.spec.outputs == (0,)
    assert second.owner == -1, "who waits belongs to nobody"


def test_only_ready_tasks_are_handed_out():
    client = client_of(chain())
    created(client)
    (batch,) = submissions(stepped(client, Started(MEMBERS)))
    assert [ready.spec.id for ready in batch.tasks] == [0]


def test_everybody_gets_a_few_tasks_before_anybody_gets_many():
    client = client_of(bag(4000))
    created(client)
    batches = submissions(stepped(client, Started(MEMBERS)))
    assert [len(batch.tasks) for batch in batches] == [FIRST_BATCH_TASKS, FIRST_BATCH_TASKS]


def test_a_node_gets_the_next_batch_when_it_has_taken_the_one_before():
    client = client_of(bag(4000))
    created(client)
    first, second = submissions(stepped(client, Started(MEMBERS)))
    out = stepped(client, SubmissionTaken(0, first.batch))
    (third,) = submissions(out)
    assert len(third.tasks) == BATCH_GROWTH * len(first.tasks), "more than before"
    assert [effect.to for effect in out if isinstance(effect, Send)] == [0], "the other one has not answered yet"
    assert not stepped(client, SubmissionTaken(0, first.batch)), "what comes twice counts once"
    assert submissions(stepped(client, TimerFired(0), now_ns=LATER)) == [second, third], "one for each is under way"


def test_batch_after_batch_everything_is_handed_out_once():
    client = client_of(bag(4000))
    created(client)
    handed: list[int] = []
    sizes: list[int] = []
    batches = submissions(stepped(client, Started(MEMBERS)))
    while batches:
        batch = batches.pop(0)
        handed += [ready.spec.id for ready in batch.tasks]
        sizes.append(len(batch.tasks))
        batches += submissions(stepped(client, SubmissionTaken(0, batch.batch)))
    assert sorted(handed) == list(range(4000))
    assert max(sizes) == BATCH_TASKS
    assert not submissions(stepped(client, TimerFired(0)))


def watched(client: ClientCore, answer: Leased) -> list[EffectType]:
    """The client looks at the log and asks who the members are; returns what it does at the next look."""
    (call,) = [effect for effect in stepped(client, TimerFired(0)) if isinstance(effect, CallStore)]
    assert call.rows[1] == Watch(client.members.version)
    stepped(client, StoreAnswered(call.token, [Log(0), answer]))
    return stepped(client, TimerFired(0))


def test_it_watches_the_members_and_turns_to_those_who_live():
    client = client_of(bag(4))
    created(client)
    client.cancel((1,), [])
    later = Members(5, members_of(4).infos[2:])
    for answer in (Leased(later), Leased(), Leased(Members(6, ()))):
        sent = [effect for effect in watched(client, answer) if isinstance(effect, Send)]
        assert client.members == later
        assert {effect.to for effect in sent if isinstance(effect.message, CancelOrder)} <= {2, 3}


def test_only_the_first_shard_knows_the_members():
    client = client_of(bag(2), shards=2)
    created(client)
    calls = [effect for effect in stepped(client, TimerFired(0)) if isinstance(effect, CallStore)]
    assert [len(call.rows) for call in calls] == [2, 1]


def test_a_batch_is_handed_out_until_it_is_taken():
    client = client_of(bag(2))
    created(client)
    first, second = submissions(stepped(client, Started(MEMBERS)))
    stepped(client, SubmissionTaken(0, first.batch))
    assert not submissions(stepped(client, TimerFired(0), now_ns=LATER - 1)), "it may still be on its way"
    assert submissions(stepped(client, TimerFired(0), now_ns=LATER)) == [second]
    assert not submissions(stepped(client, TimerFired(0), now_ns=LATER + 1)), "now that one is"
    assert submissions(stepped(client, TimerFired(0), now_ns=2 * LATER)) == [second]
    stepped(client, SubmissionTaken(1, second.batch), SubmissionTaken(1, second.batch))
    assert submissions(stepped(client, TimerFired(0), now_ns=3 * LATER)) == []


def test_the_log_is_read_to_its_end_each_entry_once():
    client = client_of(bag(3))
    created(client)
    stepped(client, Started(MEMBERS))
    first = stepped(client, TimerFired(0))
    second = stepped(client, TimerFired(0))
    answered(client, first, 0, 1)
    answered(client, second, 0, 1, 0)
    answered(client, first, 0, 1)
    assert client.waiting_for == 1 and not client.is_done
    answered(client, stepped(client, TimerFired(0)), 2, 2)
    assert client.is_done


def test_it_remembers_who_did_not_end_well():
    client = client_of(bag(3))
    created(client)
    stepped(client, Started(MEMBERS))
    answered(client, stepped(client, TimerFired(0)), 0, (0, FAILED, "bad", ()), (1, CANCELLED, "", ()), 2)
    assert client.is_done
    assert client.ended == {0: (FAILED, "bad"), 1: (CANCELLED, "")}


def test_it_waits_for_spawned_tasks_of_committed_attempts_in_any_order():
    name, other, stray = 1 << 60, (1 << 60) + 1, (1 << 60) + 2
    client = client_of(bag(1))
    created(client)
    stepped(client, Started(MEMBERS))
    answered(client, stepped(client, TimerFired(0)), 0, name, (stray, CANCELLED, "", ()))
    assert client.waiting_for == 1
    answered(client, stepped(client, TimerFired(0)), 2, (0, DONE, "", (name, other)))
    assert client.waiting_for == 1
    answered(client, stepped(client, TimerFired(0)), 3, other)
    assert client.is_done


def test_every_shard_has_its_log():
    client = client_of(bag(200), shards=3)
    store = MemoryStore(3)
    for call in client.create_calls():
        store.apply(call.shard, call.rows, 0)
    stepped(client, Started(MEMBERS))
    for task in range(200):
        store.apply((task >> 6) % 3, [Finish(task, 0, task % 2)], 0)
    calls = [effect for effect in stepped(client, TimerFired(0)) if isinstance(effect, CallStore)]
    assert [call.shard for call in calls] == [0, 1, 2]
    for call in calls:
        stepped(client, StoreAnswered(call.token, store.apply(call.shard, call.rows, 0)))
    assert client.is_done


def test_it_looks_more_and_more_rarely():
    client = client_of(bag(1))
    created(client)
    waits = []
    for now_ns in (0, 10**9, 10**10, 10**11):
        out = stepped(client, TimerFired(0) if now_ns else Started(MEMBERS), now_ns=now_ns)
        waits += [effect.at_ns - now_ns for effect in out if isinstance(effect, SetTimer)]
    assert waits == sorted(waits) and len(set(waits)) > 2


def test_a_cancel_is_repeated_to_other_nodes_until_the_store_knows():
    client = client_of(bag(4))
    created(client)
    out: list[EffectType] = []
    client.cancel((1, 2), out)
    orders = [effect for effect in out if isinstance(effect, Send) and isinstance(effect.message, CancelOrder)]
    again = [
        effect
        for effect in stepped(client, TimerFired(0))
        if isinstance(effect, Send) and isinstance(effect.message, CancelOrder)
    ]
    assert orders[0].message == again[0].message and orders[0].to != again[0].to
    stepped(client, CancelTaken(0, orders[0].message.batch))  # type: ignore[union-attr]
    assert not client.cancels
    assert orders[0].message.sender == CLIENT


def test_ends_that_are_overheard_count_once_and_only_those_of_created_tasks():
    graph = bag(2)
    config = NodeConfig(replicated=True)
    client = ClientCore(graph, parse_strategy("mlb"), Site(MEMBERS, 1e9, np.zeros(0, dtype=np.int64), 0), config)
    good, bad = spawned_id(0, 0, 0), spawned_id(0, 0, 1)
    client.overhear([1, good, (bad, FAILED, "bad", ())])
    assert client.waiting_for == 2 and client.ended == {bad: (FAILED, "bad")}
    client.overhear([good])
    answered(client, stepped(client, TimerFired(0)), 0, good, (0, DONE, "", (good, bad)), 1)
    assert client.is_done


def reads_a_log_that_was_forgotten(client: ClientCore, *rows: LogRow) -> None:
    """Another server answers, whose log has this from its beginning."""
    stepped(client, StoreChanged(0))
    answered(client, stepped(client, TimerFired(0)), 0, *rows)


def forgetful_client() -> ClientCore:
    config = NodeConfig(replicated=True)
    return ClientCore(bag(1), parse_strategy("mlb"), Site(MEMBERS, 1e9, np.zeros(0, dtype=np.int64), 0), config)


def test_what_a_forgotten_run_had_created_is_not_waited_for():
    client = forgetful_client()
    old, new = spawned_id(0, 0, 0), spawned_id(0, 1, 0)
    answered(client, stepped(client, TimerFired(0)), 0, (0, DONE, "", (old,)))
    assert client.waiting_for == 1
    reads_a_log_that_was_forgotten(client, (0, DONE, "", (new,)))
    assert client.waiting_for == 1, "but what the next one has created is"
    reads_a_log_that_was_forgotten(client, (0, DONE, "", (new,)), new)
    assert client.is_done


def test_nor_is_what_these_have_created():
    client = forgetful_client()
    old, new = spawned_id(0, 0, 0), spawned_id(0, 1, 0)
    answered(client, stepped(client, TimerFired(0)), 0, (old, DONE, "", (spawned_id(old, 0, 0),)))
    assert client.waiting_for == 1, "nobody knows yet whether its creator counts"
    reads_a_log_that_was_forgotten(client, (0, DONE, "", (old,)))
    assert client.waiting_for == 1, "of which the end was read before"
    reads_a_log_that_was_forgotten(client, new, (0, DONE, "", (new,)))
    assert client.is_done
