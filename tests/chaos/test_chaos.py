"""The short version of `make chaos`: three small clusters, beaten by seed, give every answer and leave nothing."""

import pytest
from msgspec.structs import replace

import daws
from tests.chaos.harness import Setup, run_seed
from tests.chaos.plan import KINDS, blows_of
from tests.chaos.work import answers_of, content_of, digest_of, graph_of, work

SHORT = replace(Setup(), tasks=150, length_s=0.1, hosts=3, blows=6, lease_s=2.0, limit_s=180.0)


@pytest.mark.parametrize(("seed", "store"), [(2, "embedded"), (1, "valkey"), (3, "private")])
def test_nothing_is_lost_whatever_is_killed_cut_or_filled(seed, store):
    seen = run_seed(seed, replace(SHORT, store=store))
    assert not seen.message, f"{seen.message}; again: python -m tests.chaos --store {store} --seed {seed} --tasks 150"
    assert seen.runs >= SHORT.tasks and seen.blows


def test_over_many_seeds_every_kind_of_blow_comes_equally_often():
    kinds = list(KINDS)
    dealt = [blow.kind for seed in range(len(kinds)) for blow in blows_of(seed, kinds, 4, 12, 2.0)]
    assert {dealt.count(kind) for kind in kinds} == {12}
    assert blows_of(3, kinds, 4, 12, 2.0) == blows_of(3, kinds, 4, 12, 2.0)


def test_answers_can_be_known_beforehand_and_differ_by_what_was_read(tmp_path):
    steps = graph_of(5, 60, 0.0)
    with daws.Cluster(1, kind="threads") as cluster:  # some of them create tasks
        made: list[daws.Future[bytes]] = []
        for step in steps:
            read = [made[one] for one in step.parents]
            made.append(cluster.submit(work, 5, (step.number, step.size_bytes, 0.0), str(tmp_path / "runs"), *read))
        assert list(map(digest_of, cluster.gather(made))) == answers_of(5, steps)
    assert content_of(5, 1, 100, ["a"]) != content_of(5, 1, 100, ["b"])
    assert sum(step.size_bytes > 64_000 for step in steps) > 15
