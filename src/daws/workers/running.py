"""One order after the other: from pickled arguments to serialized results. The same in processes and in threads."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import RLock
from typing import Any

from daws.data import codec
from daws.data.calls import PARKED, SHARED, WRITABLE, load_parts
from daws.data.codec import PLAIN_CALL
from daws.data.envelope import opened, sealed
from daws.data.functions import name_of
from daws.data.tags import folder_of, levels_in, pickle_in, root_of, split
from daws.model.errors import DamagedObjectError, NoSpaceError, UnpicklableError
from daws.wire.worker import INPUTS_ALONE, Execute, ObjectFile, Prepare, Written
from daws.workers.coroutines import awaiting, is_coroutine, run_coroutine
from daws.workers.errors import ItemFailedError, LostInputError, ResultCountError, UnreadableError
from daws.workers.mappings import KEPT_BYTES_MIN, Mappings
from daws.workers.slots import filled


class FileResult:
    """A result that is a file: its content if it is small, else the file that it was moved to."""

    __slots__ = ("result",)

    def __init__(self, result: bytes | Written) -> None:
        self.result = result


NO_KWARGS: dict[str, Any] = {}
NOTHING = (codec.dumps(None),)
"""The results of most functions that have none."""


class Runner:
    """A runner that knows functions by number, and calls them.

    `announce` is told of commands (see `programs.run`). `is_process`: this process runs nothing but tasks, one at a
    time.
    """

    __slots__ = (
        "_folder",
        "_folders",
        "_functions",
        "_levels",
        "_loading",
        "_modules",
        "_numbers",
        "_pickled",
        "_surrounds",
        "_tags",
        "announce",
        "captures",
        "free_folders",
        "held_max_bytes",
        "hold_output",
        "hooks",
        "inline_max_bytes",
        "is_process",
        "mappings",
        "runs_folder",
        "scratch",
        "segments",
        "use_levels",
    )

    def __init__(self, prepare: Prepare, announce: Callable[[int], None], is_process: bool) -> None:
        self._folder = prepare.folder
        self.inline_max_bytes = prepare.inline_max_bytes
        self.held_max_bytes = prepare.inline_max_bytes  # values up to this size come back without a file
        self.segments = _segments(prepare.memory, prepare.scratch) if prepare.scratch else None
        self.scratch = prepare.scratch or prepare.folder
        self.runs_folder = runs_folder(prepare)
        self.free_folders: list[str] = []
        self.announce = announce
        self.is_process = is_process
        self.mappings = Mappings() if is_process else None
        self.captures = is_process and prepare.capture
        self.hold_output: Callable[[bool], None] = _ignore  # called when output is to be hidden or shown
        self._functions: dict[int, Callable[..., Any]] = {}
        self._numbers: dict[int, int] = {}  # by identity of the function
        self._pickled: dict[int, bytes] = {}
        self._tags: dict[int, bytes] = {}  # of functions that need modules of their client
        self._folders: dict[int, str] = {}  # where these are
        self._modules: Any = None  # the modules in use, as soon as a function needed any
        self._levels: dict[int, bytes] = {}  # of the loggers of its client
        self._surrounds = False  # some function needs modules or levels
        self.use_levels: Callable[[bytes], None] = _ignore
        self.hooks: Any = None  # the values that a set-up has set, as soon as there was one
        self._loading = RLock()  # one thread at a time: no other may put modules aside that are being imported

    def set_up(self, pickled: bytes) -> None:
        """Run a hook before any task."""
        from daws.workers.hooks import Hooks  # most workers have none

        if self.hooks is None:
            self.hooks = Hooks()
        self.hooks.set_up(pickled)

    def tear_down(self, pickled: bytes) -> None:
        """Run a hook after all tasks."""
        if self.hooks is None:
            codec.loads(pickled)()
        else:
            self.hooks.tear_down(pickled)

    def learn(self, function: int, pickled: bytes) -> None:
        self._pickled[function] = pickled
        self._numbers.pop(id(self._functions.pop(function, None)), None)

    def forget(self, functions: Iterable[int]) -> None:
        """None of these is called any more, and nothing goes on that it began."""
        folders: set[str] = set()
        gone = set(functions)
        for identity, number in [*self._numbers.items()]:  # two threads may have loaded the same function
            if number in gone:
                self._numbers.pop(identity, None)
        for number in gone:
            self._functions.pop(number, None)
            self._pickled.pop(number, None)
            self._tags.pop(number, None)
            self._levels.pop(number, None)
            folders.add(self._folders.pop(number, ""))
        for folder in folders.difference([*self._folders.values()], ("",)):
            with self._loading:
                self._modules.forget(folder)

    def number_of(self, function: Callable[..., Any]) -> int | None:
        """The number under which this very function was called here, so that it need not be pickled once more."""
        number = self._numbers.get(id(function))
        return number if number is not None and self._functions.get(number) is function else None

    def execute(self, order: Execute) -> tuple[bytes | int | Written, ...]:
        """The results of a call, or the exception that was raised on the way to them."""
        try:
            function = self._functions[order.function]
        except KeyError:
            function = self._unpickled(order.function)
        if self._surrounds:
            self.surround(order.function)
        args: Sequence[Any]
        kwargs: dict[str, Any]
        try:
            if order.arguments == INPUTS_ALONE:
                args, kwargs = [self.value(one) for one in order.inputs], NO_KWARGS
            elif order.arguments[0] == PLAIN_CALL:
                args, kwargs = codec.loads(order.arguments), NO_KWARGS
            elif order.inputs:
                args, kwargs = self._filled(order.arguments, order.inputs)
            else:
                args, kwargs = codec.loads(order.arguments)
        except (LostInputError, ItemFailedError):
            raise
        except Exception as error:
            message = f"{name_of(function)}: the arguments cannot be loaded in a worker: {_said(error)}"
            raise UnreadableError(message) from error
        value = function(*args, **kwargs)
        if value is None and len(order.outputs) < 2:
            return NOTHING
        if not order.outputs:
            return (codec.dumps(run_coroutine(value) if is_coroutine(value) else value, "the result"),)
        try:
            return self._kept(value, order)
        except UnpicklableError as error:
            if is_coroutine(value):  # of a function that is none itself
                return self._kept(run_coroutine(value), order)
            mend = getattr(function, "without_unpicklable", None)  # it has results of its own that are fine
            if mend is not None:
                return self._kept(mend(value), order)
            raise UnpicklableError(f"{name_of(function)}: {error}", error.what) from error
        except ResultCountError as error:
            raise ResultCountError(f"{name_of(function)} should return {error}") from None

    def _kept(self, value: Any, order: Execute) -> tuple[bytes | int | Written, ...]:
        if len(order.outputs) == 1:
            return (self._keep(value, order.outputs[0], order, "the result"),)
        results: list[bytes | int | Written] = []
        try:
            for at, one in enumerate(self._several(value, len(order.outputs))):
                results.append(self._keep(one, order.outputs[at], order, f"result {at + 1}"))
        except BaseException:
            self._drop(results, order.outputs)
            raise
        return tuple(results)

    def origin_of(self, function: int) -> tuple[int, bytes]:
        """The root and the tag of a function that was called here. Functions that it submits have the same root, and
        need the same modules."""
        return root_of(function, self._pickled.get(function, b"")), self._tags.get(function, b"")

    def levels_of(self, function: int) -> bytes:
        """The levels of loggers of a function; functions that it submits have the same."""
        return self._levels.get(function, b"")

    def surround(self, function: int) -> None:
        """Prepare for a run of this function: its own modules, and the levels of its client's loggers. A function that
        needs no modules runs with those in use, if other runs go on beside it."""
        self.use_levels(self._levels.get(function, b""))
        folder = self._folders.get(function, "")
        if self._modules is not None and (folder or self.is_process):
            with self._loading:
                self._modules.use(folder)

    def _unpickled(self, number: int) -> Callable[..., Any]:
        tag, pickled = split(self._pickled[number])
        try:
            if tag:
                self._tags[number] = tag
                self._folders[number] = folder_of(tag, self.scratch)
                self._surrounds = True
            if levels := levels_in(pickled):
                self._levels[number] = levels
                self._surrounds = True
            function: Callable[..., Any] = self._loaded(number, pickled)
        except Exception as error:
            raise UnreadableError(f"the function cannot be loaded in a worker: {_said(error)}") from error
        bind = getattr(type(function), "daws_bound_to", None)
        if bind is not None:  # one of ours, that has to know where it runs
            function = bind(function, self)
        function = awaiting(function)
        self._functions[number] = function
        self._numbers[id(function)] = number
        return function

    def _loaded(self, number: int, pickled: bytes) -> Any:
        with self._loading:
            if self._modules is None and number in self._folders:
                from daws.workers.modules import ModulesInUse  # most workers see no client but their own

                self._modules = ModulesInUse()
            self.surround(number)
            loaded = codec.loads(pickle_in(pickled), copy=True)  # arrays that it uses are its own
            return loaded if self.hooks is None else self.hooks.applied(loaded)

    def _filled(self, arguments: bytes, inputs: tuple[bytes | ObjectFile, ...]) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments of a call that has inputs; those of a writable one are its own."""
        reader: Any = self
        if arguments[0] == WRITABLE:
            reader, arguments = _PrivateReader(self), arguments[1:]
            if arguments == INPUTS_ALONE:
                return [reader.value(one) for one in inputs], NO_KWARGS
        if arguments[0] == PARKED:
            arguments = bytes(reader.value(inputs[int(arguments[1:])]))
        if arguments[0] == PLAIN_CALL:
            return codec.loads(arguments), NO_KWARGS
        if arguments[0] == SHARED:
            load = partial(load_parts, value=lambda number: reader.value(inputs[number]))
            return filled(inputs, reader, load, arguments)  # type: ignore[no-any-return]
        return filled(inputs, reader, codec.loads, arguments)  # type: ignore[no-any-return]

    def value(self, one: bytes | ObjectFile, private: bool = False) -> Any:
        """The value of an input, loaded when the arguments name it. Large ones are shared with other tasks."""
        if isinstance(one, bytes):
            return codec.loads(one)
        return loaded(one, self._folder, private, self.mappings)

    def file(self, one: bytes | ObjectFile, name: str) -> Any:
        """An input that is a file."""
        from daws.data.outside import File, Small, Stored, small_file  # most workers never see one

        if isinstance(one, bytes):
            return File.of(name, Small(one, self.scratch))
        if one.held:
            return File.of(name, Small(small_file(one.held), self.scratch))
        path = os.path.join(self._folder, one.path)
        if one.object is not None:
            size = os.stat(path).st_size if os.path.exists(path) else -1
            if size != one.size_bytes:
                why = "its file is gone" if size < 0 else f"it has {size:,} bytes and should have {one.size_bytes:,}"
                raise LostInputError(one.object, why)
        return File.of(name, Stored(path, self.scratch))

    def _several(self, value: Any, count: int) -> Sequence[Any]:
        try:
            values = tuple(value)
        except TypeError:
            raise ResultCountError(f"{count} results, not a {type(value).__name__}") from None
        if len(values) != count:
            raise ResultCountError(f"{count} results, it returned {len(values)}")
        return values

    def _keep(self, value: Any, output: int | str, order: Execute, what: str) -> bytes | int | Written:
        """Small results come back inline, others go to their file, which appears when it is complete."""
        if type(value) is FileResult:
            return value.result
        made = codec.encode(value, self.held_max_bytes, what)
        if isinstance(made, bytes):
            return made if len(made) <= self.inline_max_bytes else sealed(int(output), made)
        made = made.as_file(int(output) if self.segments is not None else 0)
        size_bytes: int = made.size_bytes
        if self.segments is not None:
            try:
                return Written(self.segments.write(made, int(output)), size_bytes)
            except NoSpaceError as error:  # the first of its objects has the number of the task
                text = f"task {order.outputs[0]}: {what} cannot be kept: {error}"
                raise NoSpaceError(text, error.object_id, error.size_bytes) from error
        path = os.path.join(self._folder, str(output))
        partial = f"{path}.{order.run}"
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            try:
                made.write_to(fd)
            finally:
                os.close(fd)
            os.rename(partial, path)
        except BaseException:
            os.unlink(partial)
            raise
        return size_bytes

    def _drop(self, results: list[bytes | int | Written], outputs: Sequence[int | str]) -> None:
        """Remove the first results, which will not be reported because a later one failed."""
        for result, output in zip(results, outputs, strict=False):
            if not isinstance(result, bytes):
                os.unlink(result.path if isinstance(result, Written) else os.path.join(self._folder, str(output)))


class _PrivateReader:
    """A reader of inputs for a task that may change them."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.file = runner.file

    def value(self, one: bytes | ObjectFile) -> Any:
        return self._runner.value(one, private=True)


def loaded(one: ObjectFile, folder: str = "", private: bool = False, mappings: Mappings | None = None) -> Any:
    """The value in a file; a LostInputError if the file is damaged. Changes of a `private` value are seen by this
    reader alone."""
    try:
        if one.held:
            content = opened(memoryview(one.held), one.object)
        else:
            path = os.path.join(folder, one.path)
            map_it = partial(codec.open_file, path, one.object, private)
            if mappings is None or private or one.object is None or one.size_bytes < KEPT_BYTES_MIN:
                content = map_it()
            else:
                content = mappings.content(one.object, path, map_it)
    except (DamagedObjectError, FileNotFoundError) as error:
        if one.object is None:
            raise
        why = "its file is gone" if isinstance(error, FileNotFoundError) else str(error)
        raise LostInputError(one.object, why) from None
    return codec.loads(content, copy=bool(one.held))


def runs_folder(prepare: Prepare) -> str:
    """Where the folders of a worker's commands are."""
    return f"{prepare.scratch or prepare.folder}/runs-{prepare.name}"


def _segments(memory: str, scratch: str) -> Any:
    from daws.data.segments import Segments  # type: ignore[import-not-found, unused-ignore]

    return Segments(memory or None, scratch)


def _ignore(_: object) -> None:
    pass


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
