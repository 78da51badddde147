"""The published systems as strategies: each is a list of answers, and nothing else tells them apart."""

from functools import cached_property
from math import inf
from typing import Any

from msgspec import Struct

from daws.strategy.decisions import Strategy
from daws.strategy.registry import DECISIONS, answer_class

DEFAULT = "daws"


class Preset(Struct, frozen=True, dict=True):
    """A strategy with a name, one line on what it does, and its source.

    It is built when it is used for the first time: most programs use one, and all together take 1.5 ms of each start.
    """

    name: str
    summary: str
    paper: str
    given: dict[str, str]  # the answer to each decision
    parameters: dict[str, dict[str, Any]]

    @cached_property
    def strategy(self) -> Strategy:
        built = {
            decision: answer_class(decision, self.given[decision])(**self.parameters.get(decision, {}))
            for decision in DECISIONS
        }
        return Strategy(name=self.name, **built)


_PILOTS = {"acquire": "per-resource", "bind": "late"}
"""The answers about pilots of presets that have none of their own."""
_LONG_TASKS: dict[str, dict[str, Any]] = {"place": {"t": inf}, "balance": {"poll_max_ms": 1000.0}}
"""Settings for tasks of minutes: idle nodes need not ask ten times a second."""
_MATRIX_PAPER = "MATRIX (2015), section 2.2"
_MATRIX = {
    "assign": "dealt",
    "place": "daws",
    "order": "data-size",
    "match": "contexts",
    "balance": "steal",
    "relax": "never",
    "replicate": "never",
    "cache": "all",
    "adapt": "nothing",
}
_ADAGE = {
    "assign": "critical-path",
    "place": "home",
    "order": "critical-path",
    "match": "contexts",
    "balance": "give",
    "relax": "never",
    "replicate": "given",
    "cache": "all",
    "adapt": "nothing",
}
_CONSTELLATION = {
    "assign": "round-robin",
    "place": "keep",
    "order": "context-rank",
    "match": "contexts",
    "balance": "random-steal",
    "relax": "never",
    "replicate": "never",
    "cache": "none",
    "adapt": "nothing",
}


def _preset(
    name: str, summary: str, paper: str, given: dict[str, str], parameters: dict[str, dict[str, Any]] | None = None
) -> Preset:
    return Preset(name, summary, paper, _PILOTS | given, parameters or {})


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _preset(
            "mlb",
            "load balancing above all: every ready task may be stolen",
            _MATRIX_PAPER,
            _MATRIX,
            {"place": {"t": inf}},
        ),
        _preset(
            "mdl",
            "data locality above all: tasks that read anything run where it is",
            _MATRIX_PAPER,
            _MATRIX,
            {"place": {"t": 0.0}},
        ),
        _preset(
            "rlds",
            "rigid mix: tasks with much data stay with it, the others may be stolen",
            _MATRIX_PAPER,
            _MATRIX,
        ),
        _preset(
            "flds",
            "flexible mix: as rlds, but what would wait too long may be stolen after all",
            _MATRIX_PAPER,
            _MATRIX | {"relax": "above"},
        ),
        _preset(
            "daws",
            "known graphs are planned, tasks stay near their data, and waiting tasks may be stolen",
            "none; ADAGE's planning and MATRIX's stealing, played through with links and copies",
            _MATRIX | {"assign": "forecast", "place": "planned", "order": "critical-path", "relax": "above"},
            {"balance": {"hand": "first", "settle": 0.004}, "order": {"patience": 0.02, "room_mb": 4.0}},
        ),
        _preset(
            "matrix",
            "adaptive: starts as flds, turns to mdl or mlb by how much data moves",
            "MATRIX (2015), sections 2.2 and 4.4",
            _MATRIX | {"relax": "above", "adapt": "matrix"},
            {"relax": {"tt_rule": "journal", "tt_min": 0.025, "tt_max": 0.1}},
        ),
        _preset(
            "adage",
            "plans by the critical path; overloaded nodes give copies of tasks away, the first to finish wins",
            "ADAGE (2021), section III",
            _ADAGE,
        ),
        _preset(
            "constellation",
            "contexts say which executors may run a task; idle nodes ask one random node for one task",
            "Ibis/Constellation (2011), section 3.3",
            _CONSTELLATION,
        ),
        _preset(
            "master-worker",
            "one node collects all ready tasks; idle nodes ask it for one task",
            "Ibis/Constellation (2011), section 3.3",
            _CONSTELLATION | {"assign": "one", "place": "master", "balance": "master-worker", "relax": "above"},
            {"relax": {"tt": 0.0}},
        ),
        _preset(
            "albatross",
            "late binding: to the data if its node has room, else to the first node that pulls a batch",
            "Albatross (2016); ADAGE (2021), section II",
            _MATRIX | {"assign": "hashed", "place": "late", "order": "submission", "relax": "above"},
            {"balance": {"probes": 1, "neighbours": 1, "rumours": "no", "most": 10}},
        ),
        _preset(
            "sparrow",
            "batch sampling: two reservations per task, bound to the first node that comes for it",
            "Sparrow (2013), sections 3.2 and 3.3",
            _CONSTELLATION | {"order": "submission", "balance": "sample"},
        ),
        _preset(
            "data-diffusion",
            "one dispatcher with an index of cached data hands each idle node the task of which it has most",
            "Falkon, data diffusion (2008)",
            _CONSTELLATION
            | {
                "assign": "one",
                "place": "master",
                "order": "submission",
                "balance": "index",
                "relax": "above",
                "cache": "all",
            },
            {"relax": {"tt": 0.0}},
        ),
        _preset(
            "heft",
            "plans by upward rank into the slot where each task ends first; nothing is moved afterwards",
            "HEFT (Topcuoglu, Hariri and Wu, 2002)",
            _ADAGE | {"assign": "heft", "balance": "none", "replicate": "never"},
        ),
        _preset(
            "aimes",
            "one pilot on each of a few resources; tasks go to any pilot that is active",
            "AIMES (2016), section VI, experiments 3 and 4",
            _MATRIX | {"order": "submission"},
            _LONG_TASKS,
        ),
        _preset(
            "swift",
            "many small pilots; each task is tied to a resource before any pilot runs",
            "AIMES (2016), section VI, experiments 1 and 2",
            _MATRIX | {"order": "submission", "acquire": "many-small", "bind": "resource"},
            _LONG_TASKS,
        ),
        _preset(
            "random",
            "tasks go to random nodes and stay there: the baseline for all others",
            "none; a baseline",
            _CONSTELLATION | {"assign": "hashed", "place": "random", "order": "submission", "balance": "none"},
        ),
    )
}
"""All presets by name, in the order in which they are shown."""
