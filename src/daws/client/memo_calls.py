"""Calls as results are found by: what a call depends on, and why there is no result of it."""

import sys
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from daws.client.future import CANCELLED, FAILED, PENDING, Future
from daws.client.options import OUTPUTS_MAX, Args, Function, Kwargs, Options
from daws.data.fingerprint import Fingerprint, Unknown, Versions
from daws.data.functions import dumps_function, inside_of, name_of
from daws.data.memo import Note
from daws.data.outside import File

NEVER = "it never ran before"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class MemoCall:
    """One call, as it is looked up and kept."""

    __slots__ = ("args", "key", "name", "parts")

    def __init__(self, name: str, parts: dict[str, str], args: list[tuple[str, str]], outputs: int) -> None:
        self.name = name
        self.parts = parts
        self.args = args
        said = repr((1, name, sorted(parts.items()), args, outputs))
        self.key = blake2b(said.encode(errors="replace"), digest_size=16).hexdigest()


class Before:
    """The calls of one function that are known: those of earlier runs, and the code that this run has called."""

    def __init__(self, notes: Iterable[Note]) -> None:
        self._parts: dict[tuple[Any, ...], dict[str, str]] = {}  # by arguments: what the code was, the last time
        self._keys: set[str] = set()
        self._others: set[tuple[int, tuple[Any, ...]]] = set()  # all arguments but one
        for note in notes:
            args = tuple(note.args)
            self._keys.add(note.key)
            self._parts[args] = note.parts
            for at in range(len(args)):
                self._others.add((at, args[:at] + args[at + 1 :]))

    def why(self, call: MemoCall) -> str:
        """Why there is no result of this call, in a few words."""
        args = tuple(call.args)
        before = self._parts.get(args)
        self._parts[args] = call.parts
        if call.key in self._keys:
            return "its result is not there any more"
        if before is not None:
            if before == call.parts:
                return "it gave no result before"
            changed = [name for name in {**before, **call.parts} if before.get(name) != call.parts.get(name)]
            return f"{' and '.join(changed[:3])}{' and others' if len(changed) > 3 else ''} changed"
        if not self._keys:
            return NEVER
        changed = [label for at, (label, _) in enumerate(args) if (at, args[:at] + args[at + 1 :]) in self._others]
        return f"{changed[0]} changed" if len(changed) == 1 else "it never ran with these arguments"


class CallKeys:
    """The keys of calls. Code and versions are looked at once for all calls of a function."""

    def __init__(self) -> None:
        self.by_task: dict[int, str] = {}  # keys of tasks whose results count as the calls that make them
        self._codes: dict[bytes, tuple[str, frozenset[str]]] = {}
        self._versions = Versions()

    def of_call(self, function: Function, args: Args, kwargs: Kwargs, options: Options) -> MemoCall:
        """The call of a function. Raises Unknown if an argument is not known yet."""
        marks = self.marks()
        pickled = dumps_function(function)
        code = self._codes.get(pickled)
        if code is None:
            digest = marks.digest(function, "the function")
            code = self._codes[pickled] = digest, frozenset(marks.needs)
        marks.needs = set(code[1])
        given = [(f"argument {at + 1}", value) for at, value in enumerate(args)]
        given += [(f"argument {name!r}", kwargs[name]) for name in sorted(kwargs)]
        digests = self.digests(marks, given)
        parts = {"the function": code[0], "Python": PYTHON, **self._versions.of(marks.needs)}
        if options.memo:
            parts["its memo version"] = options.memo
        return MemoCall(full_name(function), parts, digests, options.outputs)

    def marks(self) -> Fingerprint:
        return Fingerprint(self._of_future, Future)

    def digests(self, marks: Fingerprint, given: list[tuple[str, Any]]) -> list[tuple[str, str]]:
        """The digests of labelled values. Raises Unknown if one of them is not known yet."""
        found = []
        for label, value in given:
            try:
                found.append((label, marks.digest(value, label)))
            except Unknown:
                raise Unknown(f"{label} is the result of a task without memo") from None
        return found

    def _of_future(self, future: Future[Any]) -> str | tuple[Any]:
        known: str = getattr(future, "_key", "")
        if known:
            return known
        key = self.by_task.get(future.task)
        if key is not None:
            return f"{key}.{future.object % OUTPUTS_MAX if future.object != future.task else 0}"
        if future._state in (PENDING, FAILED, CANCELLED):
            raise Unknown
        result: Any = future.result()
        return (result.content_digest(),) if isinstance(result, File) else (result,)


def full_name(function: Any) -> str:
    """The name of a function with its module: this is part of the keys of results."""
    inside = inside_of(function)
    return f"{(inside if hasattr(inside, '__qualname__') else type(inside)).__module__}.{name_of(inside)}"
