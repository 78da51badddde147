"""The repairs that were made to the content of a file, counted for a summary in one line."""

from collections import Counter

# By key: the text for one, and for several.
WORDS = {
    "runtime-missing": ("task without a runtime taken as 0 s", "tasks without a runtime taken as 0 s"),
    "runtime-negative": ("negative runtime taken as 0 s", "negative runtimes taken as 0 s"),
    "size-missing": ("file without a size taken as empty", "files without a size taken as empty"),
    "size-negative": ("negative size taken as unknown", "negative sizes taken as unknown"),
    "sizes-differ": ("file with several sizes", "files with several sizes"),
    "writers": ("file with several writers", "files with several writers"),
    "control": ("edge without data", "edges without data"),
    "undeclared": ("edge known from files alone", "edges known from files alone"),
    "against": (
        "file read before it is written, taken from outside",
        "files read before they are written, taken from outside",
    ),
    "cores": ("task with less than a core given one", "tasks with less than a core given one each"),
    "need": ("need that is no number left out", "needs that are no numbers left out"),
    "link": ("file used neither as input nor as output left out", "files used neither as input nor as output left out"),
    "empty-reference": ("empty reference left out", "empty references left out"),
    "executed-twice": (
        "task executed more than once, the last counts",
        "tasks executed more than once, the last counts",
    ),
    "executed-unknown": ("execution of an unknown task left out", "executions of unknown tasks left out"),
    "version": ("file without a schema version", "files without a schema version"),
}


class RepairNotes:
    """The number of repairs by key; `lines()` has one line for each kind of repair."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, key: str, count: int = 1) -> None:
        if count:
            self.counts[key] += count

    def lines(self) -> tuple[str, ...]:
        return tuple(
            f"{self.counts[key]:,} {words[self.counts[key] > 1]}" for key, words in WORDS.items() if self.counts[key]
        )
