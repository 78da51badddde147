"""The error of a task that was cancelled. It is Python's own as well, whose module takes some time to import: workers
do without until a task of theirs asks for the result of one that was cancelled."""

from concurrent.futures import CancelledError

from daws.model.errors import DawsError


class TaskCancelledError(DawsError, CancelledError):
    """The task was cancelled, or a task that it needs."""
