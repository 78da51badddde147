"""The task to blame for a failure, and its exception.

A task that fails because of another one ends with that one's error text and nothing else. The exception travels with
the end of the task that raised it, the *root*. The receiver of ends keeps it for a while and gives it to the tasks that
end because of it. They share the same bytes, which are freed with the last of them.
"""

import re
from collections.abc import Callable, Sequence

from daws.wire.ends import Path

BOOK_MAX = 4096
BOOK_MAX_BYTES = 1 << 26
GAP = (-1, -1)
"""The step in a path that stands for unknown tasks between the last step and the root."""
_ROOT = re.compile(r"task (\d+)(?: \(.*?\))? failed\b")
_PARENT = re.compile(r"task (\d+), which it needs, has failed\b")
"""The error of a task that was created when one that it needs had failed already, for whatever reason."""


def root_in(error: str) -> int:
    """The task that has failed, as an error text says that begins with it; -1 if it names none."""
    found = _ROOT.match(error) or _PARENT.match(error)
    return -1 if found is None else int(found[1])


def parent_in(error: str) -> int:
    """The task that an error names which may have a root of its own; -1 if it names none."""
    found = _PARENT.match(error)
    return -1 if found is None else int(found[1])


def head_of(error: str) -> str:
    """The failed task and its place, without the exception."""
    return error.partition(": ")[0]


def way(path: Path, error: str, name: Callable[[int], str]) -> str:
    """The reason why a task was not run, in one line: each task on the path to the root, and the exception of the
    root."""
    steps = []
    for task, kind in path:
        known = name(kind)
        steps.append(f"task {task} ({known})" if known else f"task {task}")
    if not steps or path[0] == GAP:
        steps[:1] = ["it"]
    has_gap = path[-1:] == (GAP,) and len(path) > 1
    between = steps[1:-1] if has_gap else steps[1:]
    head, _, rest = error.partition(" failed")
    root = f"{head.removesuffix(', which it needs, has')}, which failed{rest}" if rest else error
    needs = [*between, f"others, and these need {root}" if has_gap else root]
    return f"{steps[0]} was not run: it needs {', which needs '.join(needs)}"


class FailureBook:
    """The exceptions of roots, by task. The oldest are dropped when there are too many, or too many bytes of them."""

    __slots__ = ("_errors", "_failures", "_size_bytes")

    def __init__(self) -> None:
        self._failures: dict[int, bytes] = {}
        self._size_bytes = 0
        self._errors: dict[int, str] = {}  # by any task that failed

    def __len__(self) -> int:
        return len(self._failures)

    def find(self, task: int, error: str, failure: bytes = b"") -> tuple[str, bytes]:
        """The error that names the root of a failed task, and the root's exception. That exception is given here, or
        was given before; it is empty if unknown."""
        parent = parent_in(error)
        if parent >= 0:
            error = self._errors.get(parent, error)
        self._errors[task] = error
        if len(self._errors) > BOOK_MAX:
            del self._errors[next(iter(self._errors))]
        root = root_in(error)
        if root < 0:
            return error, failure
        known = self._failures.get(root, b"")
        if not failure or failure == known:
            return error, known
        self.keep(root, failure)
        return error, failure

    def keep(self, root: int, failure: bytes) -> None:
        """Keep the exception of a task."""
        failures = self._failures
        self._size_bytes += len(failure) - len(failures.pop(root, b""))
        failures[root] = failure
        while len(failures) > BOOK_MAX or (self._size_bytes > BOOK_MAX_BYTES and len(failures) > 1):
            self._size_bytes -= len(failures.pop(next(iter(failures))))


def once_each(failures: Sequence[tuple[str, bytes]]) -> list[bytes]:
    """Failures that travel together, by the error that names their root: each root's once, at its first place."""
    seen: set[int] = set()
    found: list[bytes] = []
    for error, failure in failures:
        root = root_in(error) if failure else -1
        found.append(b"" if root in seen else failure)
        if root >= 0:
            seen.add(root)
    return found
