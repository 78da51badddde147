"""A study, and the report that it returns."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from daws.model.errors import UsageError

NOTABLE_PERCENT = 10.0
"""A difference from the paper above this percentage needs a reason on the page."""
PAPERS = "paper"


class Row(NamedTuple):
    """One number of the paper beside the number of daws; None if the paper gives none."""

    keys: tuple[str, ...]
    paper: float | None
    daws: float

    @property
    def percent(self) -> float | None:
        """The difference from the paper's number, in percent."""
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
        """Whether the first column has the paper's numbers, and not another reference."""
        return self.paper.startswith(PAPERS)


class Claim(NamedTuple):
    """A statement that was published or is an aim, whether it holds in this run, and the numbers that show it."""

    text: str
    holds: bool
    seen: str


class Report(NamedTuple):
    """The result of a study.

    `why` explains the differences from the paper, in sentences that hold for any result. `more` has other files of the
    page, by name.
    """

    tables: Sequence[Table]
    claims: Sequence[Claim]
    why: Sequence[str]
    picture: Any
    more: Mapping[str, str] = {}


class Asked(NamedTuple):
    """The settings of a study. A quick run shows that the study works; its numbers mean little."""

    quick: bool = False
    jobs: int = 1
    files: Path | None = None
    quiet: bool = True


class Study(NamedTuple):
    """A study. `shows` is one line for the list, `setup` a few sentences on what is run. `takes_files` says whether
    `--files` matters.
    """

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
