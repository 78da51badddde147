"""A cluster with options for the tasks that are submitted by it: what `cluster.options(…)` gives."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from daws.client.hints import answer_to
from daws.client.options import Options, options_of
from daws.client.signatures import ClusterMethods, Signatures

if TYPE_CHECKING:
    from daws.client.commands import Command, CommandFuture, Word
    from daws.client.future import Future


class Submitter(Signatures):
    """The cluster with options for tasks that `cluster.options(…)` returns."""

    __slots__ = ("_checked", "_cluster", "_given")

    def __init__(self, cluster: ClusterMethods, given: dict[str, Any]) -> None:
        self._checked = options_of(**given)
        self._cluster = cluster
        self._given = given

    def run(self, words: "Command | str | Sequence[Word]", **described: Any) -> "CommandFuture":
        """Run a program as `Cluster.run` does."""
        future: CommandFuture = self._cluster._run(words, described, self._given)
        return future

    def _with_options(self, options: dict[str, Any]) -> "Submitter":
        """The same with some other options."""
        return self._cluster._with_options({**self._given, **options})

    def _of(self, function: Any) -> tuple[Callable[..., Any], Options]:
        """The function to send, and its options: those of a task, and on top those given here."""
        if getattr(type(function), "_is_task", False):
            return function._sent_function(), options_of(**{**function._given, **self._given})
        return function, self._checked

    def __repr__(self) -> str:
        given = ", ".join([f"{name}={value!r}" for name, value in self._given.items()])
        return f"{self._cluster!r}.options({given})"


answer_to(Submitter)


class SeveralSubmitter(Submitter):
    """Submits tasks with several outputs. For type checkers alone: no object has this class."""

    if TYPE_CHECKING:

        def submit(  # type: ignore[override]
            self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
        ) -> "tuple[Future[Any], ...]": ...
