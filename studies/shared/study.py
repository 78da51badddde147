"""What a study is, and what it reports."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from daws.model.errors import UsageError

NOTABLE_PERCENT = 10.0
"""Differences from the paper above this need a reason on the page."""
PAPERS = "paper"


class Row(NamedTuple):
    """One number of the paper beside ours; None where the paper gives none."""

    keys: tuple[str, ...]
    paper: float | None
    daws: float

    @property
    def percent(self) -> float | None:
        """By how much ours is above the paper's."""
        return None if not self.paper else 100 * (self.daws / self.paper - 1)

    @property
    def is_notable(self) -> bool:
        return self.percent is not None and abs(self.percent) > NOTABLE_PERCENT


class Table(NamedTuple):
    """Numbers of one quantity, in one unit. `paper` says what the column of the paper is, if that is not obvious."""

    title: str
    keys: tuple[str, ...]
    unit: str
    rows: Sequence[Row]
    paper: str = PAPERS
    daws: str = "daws"

    @property
    def has_paper(self) -> bool:
        return any(row.paper is not None for row in self.rows)

    @property
    def is_papers(self) -> bool:
        """Or is it something else that stands beside ours?"""
        return self.paper.startswith(PAPERS)


class Claim(NamedTuple):
    """Something that was published or is aimed at, whether it holds in this run, and by which numbers."""

    text: str
    holds: bool
    seen: str


class Report(NamedTuple):
    """What came of a study. `why` explains what differs from the paper, in sentences that hold whatever came out; other
    files that belong to the page are in `more`, by name."""

    tables: Sequence[Table]
    claims: Sequence[Claim]
    why: Sequence[str]
    picture: Any
    more: Mapping[str, str] = {}


class Asked(NamedTuple):
    """How a study is to be run. Quick ones show that it works; their numbers mean little."""

    quick: bool = False
    jobs: int = 1
    files: Path | None = None
    quiet: bool = True


class Study(NamedTuple):
    """`shows` is one line for the list; `setup` a few sentences on what is run; `takes_files` if `--files` matters."""

    name: str
    title: str
    paper: str
    shows: str
    setup: str
    run: Callable[[Asked], Report]
    takes_files: bool = False


def check_files(study: Study, files: Path | None) -> None:
    if files is not None and not study.takes_files:
        raise UsageError(f"{study.name} has no use for --files: it reads no workflow files")
