"""A recorded command, run in a folder that all commands of a workflow share, unless it is up to date.

Runs in workers, so it imports nothing that takes time before it is called.
"""

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from daws.model.errors import CommandError, UsageError

if TYPE_CHECKING:
    from daws.workers.commands import CommandSpec
    from daws.workers.running import Runner
    from daws.workflows.records import Mode

Words = str | tuple[str, ...]
"""A line for a shell, or a program and its arguments."""
Ended = tuple[bool, int]
"""Whether a command ran, and how many nanoseconds it took: this time, or when it ran."""


class RecordedCommand:
    """A function for the commands of one kind of task, because schedulers tell tasks apart by their function.

    `like` is a command without its words: its folder and limits are those of all commands of the workflow.
    """

    __slots__ = ("__name__", "_at", "folder", "like", "mode")

    def __init__(self, kind: str, like: "CommandSpec", mode: "Mode" = "rerun", at: "Runner | None" = None) -> None:
        self.__name__ = kind
        self.like = like
        self.folder = like.cwd
        self.mode: Mode = mode
        self._at = at

    def __reduce__(self) -> tuple[type["RecordedCommand"], tuple[str, "CommandSpec", str]]:
        return RecordedCommand, (self.__name__, self.like, self.mode)

    def daws_bound_to(self, runner: "Runner") -> "RecordedCommand":
        return RecordedCommand(self.__name__, self.like, self.mode, runner)

    def __call__(
        self,
        after: object,
        task: str,
        words: Words,
        reads: tuple[str, ...],
        writes: tuple[str, ...],
        shared: tuple[str, ...] = (),
    ) -> Ended:
        """Run a command; `after` is only waited for. Files are named as seen from the folder. `shared` are outputs that
        other commands write, too."""
        from daws.workflows.records import CommandRecords, command_digest

        shown = words if isinstance(words, str) else " ".join(words)
        self._expect(shown, reads, "cannot read {}: there is no such file")
        records = CommandRecords(self.folder)
        recorded = records.of(task)
        command = command_digest(words, reads, writes)
        before = inputs_of(words, reads, writes)
        if not records.why(recorded, command, before, writes, self.mode):
            return False, 0 if recorded is None else recorded.duration_ns
        if recorded is not None:  # what an earlier run has left, perhaps half of it
            for name in set(writes).difference(reads, shared):
                with suppress(FileNotFoundError, IsADirectoryError):
                    os.unlink(os.path.join(self.folder, name))
        records.begin(task)
        digests = {name: records.digest(name) for name in before}
        try:
            duration_ns = self._run(words, writes)
            self._expect(shown, writes, "ended well, but has not written {}")
        except CommandError:
            records.fail(task)
            raise
        records.done(task, command, digests, writes, duration_ns)
        return True, duration_ns

    def _run(self, words: Words, writes: tuple[str, ...]) -> int:
        from msgspec.structs import replace

        from daws.workers.commands import RunCommand

        if self._at is None:
            raise UsageError("commands run in workers; give them to a cluster")
        for name in writes:
            os.makedirs(os.path.dirname(os.path.join(self.folder, name)), exist_ok=True)
        line, argv = (words, ()) if isinstance(words, str) else ("", words)
        began_ns = time.monotonic_ns()
        RunCommand(self.__name__, self._at)(replace(self.like, argv=argv, line=line))
        return time.monotonic_ns() - began_ns

    def _expect(self, shown: str, names: tuple[str, ...], complaint: str) -> None:
        for name in names:
            if not os.path.exists(os.path.join(self.folder, name)):
                raise CommandError(f"`{shown}` {complaint.format(repr(name))}", shown, 0)


def inputs_of(words: Words, reads: tuple[str, ...], writes: tuple[str, ...]) -> tuple[str, ...]:
    """The files whose content decides: what is read and not written, too, and a program that is named by its path."""
    program = () if isinstance(words, str) or "/" not in words[0] else (words[0],)
    return tuple(dict.fromkeys([*[name for name in reads if name not in writes], *program]))
