"""The strategy is changed while tasks run."""

from pathlib import Path
from typing import Any

import pytest

from daws.client.cluster import Cluster
from daws.core.events import NewStrategy
from daws.core.journal import Journal, replay
from daws.model.cluster import Members
from daws.model.errors import ClosedError, StrategyError, UsageError
from daws.strategy import parse_strategy, register
from daws.strategy.assign.round_robin import AssignRoundRobin
from daws.strategy.decisions import Newcomer
from daws.strategy.place.keep import PlaceKeep


def part(number: int, *above: bytes) -> bytes:
    return number.to_bytes(4, "big") * 2000 + b"".join([one[:4] for one in above])


@pytest.mark.filterwarnings("ignore:strategy .* works differently")
@pytest.mark.parametrize("form", [{}, {"nodes": 2}], ids=["thread", "nodes"])
def test_a_graph_comes_out_right_whatever_strategies_it_runs_by(form: dict[str, Any], tmp_path: Path):
    names = ("mdl", "adage", "mlb:order=submission", "flds:tt=5")
    with Cluster(1, strategy="mlb", journal=tmp_path, explain=True, **form) as cluster:
        rows = [cluster.submit(part, number) for number in range(20)]
        for level, name in enumerate(names, 1):
            cluster.use_strategy(name)
            assert cluster.strategy == parse_strategy(name) and name in repr(cluster)
            rows = [
                cluster.submit(part, 100 * level + number, rows[number - 1], rows[number - 7]) for number in range(20)
            ]
        for number, made in enumerate(cluster.gather(rows)):
            last = 100 * len(names)
            below = [last - 100 + (number - 1) % 20, last - 100 + (number - 7) % 20]
            assert made == part(last + number, *[part(one) for one in below])
        place = rows[3].explain().reasons["place"]
        assert place["threshold"] == parse_strategy("flds").place.t  # type: ignore[attr-defined]
    for path in tmp_path.iterdir():
        journal = Journal.from_bytes(path.read_bytes())
        told = [event for _, events in journal.inputs() for event in events if isinstance(event, NewStrategy)]
        assert len(told) == len(names) and replay(journal) is None


@pytest.mark.parametrize(("name", "planner"), [("heft", "heft"), ("adage", "critical-path")])
def test_who_is_not_itself_without_a_graph_says_so_when_it_is_chosen(name: str, planner: str):
    said = f"^strategy '{name}' works differently .* assign={planner} .* 'daws sim'"
    with pytest.warns(UserWarning, match=said) as told:
        cluster = Cluster(1, kind="threads", strategy=name)
    assert len(told) == 1 and told[0].filename == __file__
    with cluster:
        for other in ("flds", "daws"):
            cluster.use_strategy(other)  # a warning would be an error here
        with pytest.warns(UserWarning, match=f"^strategy '{name}' works differently") as told:
            cluster.use_strategy(name)
        assert told[0].filename == __file__
        assert cluster.submit(part, 3).result() == part(3)


def test_what_makes_no_sense_is_refused_and_nothing_changes():
    with Cluster(1, strategy="mlb") as cluster:
        for name in ("mbl", "mlb:replicate=given", "flds:tt=-1", "flds:nothing=1"):
            with pytest.raises(StrategyError) as refused:
                cluster.use_strategy(name)
            assert "\n" not in str(refused.value)
        assert cluster.strategy.name == "mlb"
        told: list[BaseException] = []

        def callback(future: Any) -> None:
            try:
                cluster.use_strategy("mdl")
            except UsageError as error:
                told.append(error)

        future = cluster.submit(pow, 2, 3)
        future.add_done_callback(callback)
        assert future.result() == 8 and cluster.submit(pow, 2, 3).result() == 8
        assert "callbacks" in str(told[0])
    with pytest.raises(ClosedError):
        cluster.use_strategy("mdl")


class PlaceMine(PlaceKeep, frozen=True):
    """Somebody's own."""


def test_answers_of_users_own_are_known_here_and_not_to_processes():
    register("place", "mine-alone", PlaceMine)
    with Cluster(1) as cluster:
        cluster.use_strategy("mlb:place=mine-alone")
        assert cluster.submit(pow, 2, 3).result() == 8
    with Cluster(1, node="process") as cluster:
        with pytest.raises(StrategyError, match=r"Cluster\(strategy=…\)"):
            cluster.use_strategy("mlb:place=mine-alone")
        assert cluster.submit(pow, 2, 3).result() == 8


def test_tasks_that_need_something_else_go_around_by_themselves():
    """Every other task needs two cores: by the numbers of all tasks they would all go to one of two nodes."""
    asked: list[Newcomer] = []

    class Noted(AssignRoundRobin, frozen=True):
        def home(self, newcomer: Newcomer, members: Members, seed: int) -> int:
            asked.append(newcomer)
            return super().home(newcomer, members, seed)

    with Cluster(2, nodes=2) as cluster:
        session: Any = cluster._session
        session._assign = Noted()
        cluster.gather([cluster.options(cores=1 + number % 2).submit(abs, number) for number in range(8)])
    first = asked[0].number  # the function has a number of the same series
    assert [one.turn - first for one in asked] == [0, 1, 1, 2, 2, 3, 3, 4]


def test_what_is_no_strategy_is_refused_in_words():
    with pytest.raises(UsageError, match=r"^strategy=5: give a name, such as 'flds:tt=5', or a Strategy$"):
        Cluster(1, strategy=5)  # type: ignore[arg-type]
    with Cluster(1) as cluster, pytest.raises(UsageError, match=r"^strategy=None: give a name"):
        cluster.use_strategy(None)  # type: ignore[arg-type]
