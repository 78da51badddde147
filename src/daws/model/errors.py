"""The errors that daws raises on purpose: one root, and four families that say who has to act.

The caller is wrong (`UsageError`), a peer is wrong (`PeerError`), something is unavailable for now
(`UnavailableError`), or daws itself is wrong (`InternalError`). Errors around workers are in `workers/errors.py`, and
the error of a cancelled task is in `client/cancelled.py`. Messages are one line and name the next step. Inside the core
a failure is data; this file has only errors that leave a function as an exception.
"""

from collections.abc import Sequence


class DawsError(Exception):
    """The base class of all errors of daws."""


class UsageError(DawsError):
    """The caller asked for something that makes no sense. The same request will fail again."""


class PeerError(DawsError):
    """Another node, worker or client broke the protocol."""


class UnavailableError(DawsError):
    """A node, store or worker does not answer now; `retry` says whether trying again can help."""

    def __init__(self, message: str, retry: bool) -> None:
        super().__init__(message)
        self.retry = retry

    def __reduce__(self) -> tuple[type["UnavailableError"], tuple[str, bool]]:
        # Exceptions pickle as type(*args); args holds the message alone, so that str() stays readable.
        return type(self), (str(self), self.retry)


class InternalError(DawsError):
    """A bug in daws. `story` has the events before it, oldest first."""

    def __init__(self, message: str, story: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.story = tuple(story)

    def __str__(self) -> str:
        return "\n  ".join((super().__str__(), *self.story))


class GraphError(UsageError):
    """A graph that cannot run: a cycle, an object that no task makes, a negative length."""


class ContextError(UsageError):
    """A context that cannot be read, or that no executor offers."""


class WorkloadError(UsageError):
    """An unknown workload, an unknown key, or a value out of bounds."""


class WorkflowError(UsageError):
    """A workflow file that makes no sense; the message begins with the file and the line or JSON path."""


class StrategyError(UsageError):
    """An unknown strategy, decision or answer, or a value out of bounds."""


class ClusterError(UsageError):
    """A cluster that makes no sense: no nodes, no cores, a negative bandwidth."""


class TaskFailedError(DawsError):
    """A task could not run because a task that it needs has failed; the message names that task."""


class CommandError(TaskFailedError):
    """A command failed: not found, an exit code, a signal, a timeout, or an output that is missing.

    `command` is its line. `code` is its exit code, or the negated signal that ended it. As in shells, 127 means not
    found and 126 not executable. `stdout` and `stderr` are the end of its output.
    """

    def __init__(self, message: str, command: str, code: int, stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__(message)
        self.command = command
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    def __reduce__(self) -> tuple[type["CommandError"], tuple[str, str, int, bytes, bytes]]:
        return type(self), (str(self), self.command, self.code, self.stdout, self.stderr)


class CommandTimeoutError(CommandError, TimeoutError):
    """A command ran longer than its `timeout` allows. It was killed with all processes that it had started."""


class TaskKilledError(DawsError):
    """A task ended with its worker: killed, crashed, out of time or out of memory. Other tasks are not affected."""


class TaskTimeoutError(TaskKilledError, TimeoutError):
    """A task ran longer than its `timeout` allows, and was stopped with its worker."""


class ClosedError(UsageError):
    """The cluster is closed or broken."""


class UnpicklableError(UsageError):
    """An argument, function, result or exception that cannot travel to another process; `what` says which."""

    def __init__(self, message: str, what: str) -> None:
        super().__init__(message)
        self.what = what

    def __reduce__(self) -> tuple[type["UnpicklableError"], tuple[str, str]]:
        return type(self), (str(self), self.what)


class DamagedObjectError(PeerError):
    """The bytes of an object were cut off or overwritten after they had been written."""


class NoSpaceError(UnavailableError):
    """An object fits neither into memory nor onto the scratch disk. A retry can help when other objects are deleted."""

    def __init__(self, message: str, object_id: int, size_bytes: int) -> None:
        super().__init__(message, retry=True)
        self.object_id = object_id
        self.size_bytes = size_bytes

    def __reduce__(self) -> tuple[type["NoSpaceError"], tuple[str, int, int]]:  # type: ignore[override]
        return type(self), (str(self), self.object_id, self.size_bytes)


class LogError(UsageError):
    """The log of a store cannot be used: it is in use, damaged, of another format, or no log at all."""


class StoreFullError(UnavailableError):
    """The store cannot write its log, so it accepts no change: its disk is full or fails."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retry=True)

    def __reduce__(self) -> tuple[type["StoreFullError"], tuple[str]]:  # type: ignore[override]
        return type(self), (str(self),)
