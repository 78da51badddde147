"""Errors around workers, as exceptions."""

from daws.model.errors import DawsError, UnavailableError, UsageError


class RemoteError(DawsError):
    """A task raised an exception that cannot be sent: it does not pickle or unpickle, or is no `Exception`.

    `kind` is the name of its class, `trace` its traceback as text, and `reason` why it could not be sent.
    """

    def __init__(self, kind: str, message: str, trace: str = "", reason: str = "") -> None:
        super().__init__(kind, message, trace, reason)
        self.kind = kind
        self.message = message
        self.trace = trace
        self.reason = reason

    def __str__(self) -> str:
        said = f"{self.kind}: {self.message}" if self.message else self.kind
        return f"{said} ({self.reason})" if self.reason else said


class RemoteTraceback(Exception):
    """The cause of an exception that was raised in a worker: its traceback there, as text."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)
        self.trace = trace

    def __str__(self) -> str:
        return f"\n{self.trace}"


class SerializeError(DawsError):
    """A result or an argument of a task cannot be sent between processes."""


class UnreadableError(DawsError):
    """The function or the arguments of a task cannot be unpickled where it runs, or its result where it is read."""


class LostInputError(DawsError):
    """The file of an object that a run was to read is damaged, or gone. The node has the object made again."""

    def __init__(self, object_id: int, why: str) -> None:
        super().__init__(object_id, why)
        self.object_id = object_id
        self.why = why

    def __str__(self) -> str:
        return f"object {self.object_id} cannot be read: {self.why}"


class ItemFailedError(DawsError):
    """A task reads the results of a map, and the call of one item has failed: the task fails as that call has."""

    def __init__(self, failure: bytes) -> None:
        super().__init__(failure)
        self.failure = failure


class ResultCountError(UsageError):
    """A task with several outputs returned another number of values."""


class WorkerStartError(UnavailableError):
    """Workers cannot be started, even after retries."""
