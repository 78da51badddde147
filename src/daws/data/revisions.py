"""The user's own modules as this process runs them, for workers of this machine that have an older version or none.

Functions and classes of modules travel by name: a worker imports the module itself. A function therefore takes along

- the source of modules that were reloaded here (`importlib.reload`, `%autoreload`): workers load it too;
- the source of modules that workers would not find, such as those that pytest imports by their path;
- the source of modules whose file was edited and that were not reloaded: a worker that imports one of them later finds
  the code that this process runs;
- `sys.path`, if it has changed since the workers were started.

Looking for changes costs nothing per task. It is done when a module is imported or reloaded (the import system says
so), once per cell of a notebook, and before a function is sent for the first time.
"""

import importlib
import os
import pickle
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from threading import RLock
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakSet

from daws.data import codec
from daws.data.local import is_local, read_source, revised, source_path

_Code = tuple[FunctionType, CodeType]


class Revision(NamedTuple):
    """One version of a module. A module that was never reloaded has the number 0: a worker that has it needs no other.

    `in_place`: functions and classes stay the same objects and get new code, as with `%autoreload`.
    """

    name: str
    path: str
    is_package: bool
    source: bytes
    number: int
    in_place: bool


class _SeenModule:
    """A module as it was when this process last looked at it."""

    __slots__ = ("codes", "number", "path", "source", "spec", "stamp")

    def __init__(self, module: ModuleType, path: str, source: bytes, number: int = 0) -> None:
        self.path = path
        self.source = source
        self.spec = module.__spec__
        self.stamp = _stamp(path)
        self.codes = _codes(module)
        self.number = number


class OwnModuleVersions:
    """The versions of this process's own modules, and of modules received from another process."""

    def __init__(self) -> None:
        self.sessions: WeakSet[Any] = WeakSet()  # sessions whose functions may have to be sent again
        self.revisions: dict[str, Revision] = {}
        self._seen: dict[str, _SeenModule] = {}
        self._count = -1
        self._path: list[str] | None = None  # when the first workers were started
        self._last_path: list[str] = []  # `sys.path` at the last look
        self._has_new_path = False
        self._is_suspect = True
        self._reloaded: dict[str, None] = {}
        self._carried: dict[bytes, bytes] = {}
        self._lock = RLock()

    def watch(self, session: Any) -> None:
        """A session begins: its workers have the path of this moment."""
        if not self.sessions:
            self._path = _whole_path()
            self._is_suspect = True
        self.sessions.add(session)
        if not any(isinstance(finder, _Listener) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Listener())

    def unwatch(self, session: Any) -> None:
        """Stop watching for a session that has ended; after the last one, imports are not watched any more."""
        self.sessions.discard(session)
        if not self.sessions:
            sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Listener)]

    def suspect(self, name: str = "") -> None:
        """A module is about to be loaded anew, or a cell begins: look again before the next function is sent."""
        if name:
            self._reloaded[name] = None
        self._is_suspect = True
        for session in tuple(self.sessions):
            session.forget_functions()

    def look(self) -> None:
        """Look for changes since the last look."""
        if self._is_suspect or self._count != len(sys.modules) or sys.path != self._last_path:
            with self._lock:
                self._look()

    def _look(self) -> None:
        self._is_suspect = False
        self._count = len(sys.modules)
        self._last_path = [*sys.path]
        had_new_path, self._has_new_path = self._has_new_path, _whole_path() != self._path
        first, self._reloaded = self._reloaded, {}
        names = [*first, *[name for name in [*sys.modules] if name not in first]]
        changed = [self._look_at(name) for name in names if name != "__main__"]
        if any(changed) or self._has_new_path or had_new_path:
            self._carried.clear()
            for session in tuple(self.sessions):
                session.forget_functions()

    def _look_at(self, name: str) -> bool:
        module = sys.modules.get(name)
        if module is None or not is_local(module) or getattr(module, "__spec__", None) is None:
            return False
        seen = self._seen.get(name)
        path = source_path(module)
        if seen is None:
            source = read_source(path, name, getattr(module.__spec__, "loader", None))
            if source is None:
                return False
            seen = self._seen[name] = _SeenModule(module, path, source)
            return not _is_found(name, path) and self._revise(module, seen, False)
        is_edited = _stamp(path) != seen.stamp
        in_place = is_edited and any(function.__code__ is not code for function, code in seen.codes)
        if seen.spec is not module.__spec__ or in_place:
            source = read_source(path, name, getattr(module.__spec__, "loader", None))
            if source is None:
                seen.spec = module.__spec__
                return False
            self._seen[name] = seen = _SeenModule(module, path, source, seen.number + 1)
            revised[name] = seen.number
            self.revisions.pop(name, None)  # the last that was loaded anew comes last
            return self._revise(module, seen, in_place)
        return is_edited and name not in self.revisions and self._revise(module, seen, False)

    def _revise(self, module: ModuleType, seen: _SeenModule, in_place: bool) -> bool:
        name = module.__name__
        is_package = hasattr(module, "__path__")
        self.revisions[name] = Revision(name, seen.path, is_package, seen.source, seen.number, in_place)
        return True

    # -- functions on their way ----------------------------------------------------------------------------------------

    def carried(self, pickled: bytes) -> bytes:
        """A pickled function of the client with all that workers have to know before they load it."""
        if self._is_suspect or self._count != len(sys.modules) or sys.path != self._last_path:
            self.look()
        return self.passed_on(pickled) if self.revisions or self._has_new_path else pickled

    def passed_on(self, pickled: bytes) -> bytes:
        """The function with its revisions, without a look for changes; for functions that tasks submit."""
        if not self.revisions and not self._has_new_path:
            return pickled
        found = self._carried.get(pickled)
        if found is None:
            path = _whole_path() if self._has_new_path else []
            what = (os.getpid(), path, tuple([tuple(one) for one in self.revisions.values()]), pickled)
            found = self._carried[pickled] = pickle.dumps(_Carried(what), 5)
        return found

    def receive(self, path: list[str], revisions: Sequence[Revision]) -> None:
        """Have the modules of another process, in the order in which it loaded them."""
        with self._lock:
            if path and sys.path[: len(path)] != path:
                self._has_new_path = True  # tasks that submit tasks pass it on
                sys.path[:] = [*path, *[one for one in sys.path if one not in path]]
                importlib.invalidate_caches()
            if not revisions:
                return
            if not any(isinstance(finder, _Received) for finder in sys.meta_path):
                sys.meta_path.insert(0, _Received())
                sys.meta_path.append(_Parents())
            for one in revisions:
                known = self.revisions.get(one.name)
                if known is not None and known.number >= one.number:
                    continue
                self._carried.clear()
                self.revisions.pop(one.name, None)
                self.revisions[one.name] = one
                module = sys.modules.get(one.name)
                if module is not None and one.number:
                    _load_anew(module, one)


class _Carried:
    """Pickles as a call of `arrive`, so that to load it is to load the function inside."""

    def __init__(self, what: tuple[Any, ...]) -> None:
        self.what = what

    def __reduce__(self) -> tuple[Any, ...]:
        return arrive, self.what


def arrive(origin: int, path: list[str], revisions: Iterable[tuple[Any, ...]], pickled: bytes) -> Any:
    """Load a function that was carried, in a worker."""
    if origin != os.getpid():  # a worker that is a thread has the modules of its client
        own.receive(path, [Revision(*one) for one in revisions])
    return codec.loads(pickled, copy=True)


own = OwnModuleVersions()


class _Listener:
    """A finder that finds nothing, and notices modules that are reloaded."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> None:
        if target is not None and own.sessions:
            own.suspect(name)


class _Received:
    """A finder of received modules, which comes before all other finders."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        found = own.revisions.get(name)
        if found is None:
            return None
        folders = [os.path.dirname(found.path)] if found.is_package else None
        loader = _Loader(found)
        return spec_from_file_location(name, found.path, loader=loader, submodule_search_locations=folders)


class _Parents:
    """A finder of packages that have no file, and that no other finder finds."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        start = f"{name}."
        if any(known.startswith(start) for known in own.revisions):
            return ModuleSpec(name, None, is_package=True)
        return None


class _Loader(SourceFileLoader):
    """A loader of source code that is not (or no longer) in the file."""

    def __init__(self, revision: Revision) -> None:
        super().__init__(revision.name, revision.path)
        self._revision = revision

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._revision.source, self._revision.path)

    def get_data(self, path: str) -> bytes:
        return self._revision.source if path == self._revision.path else super().get_data(path)


def _load_anew(module: ModuleType, revision: Revision) -> None:
    before = dict(vars(module))
    importlib.reload(module)
    if revision.in_place:
        for name, old in before.items():
            new: Any = vars(module).get(name)
            if new is old or type(new) is not type(old) or getattr(old, "__module__", "") != module.__name__:
                continue
            if _renew(old, new) if isinstance(old, FunctionType) else isinstance(old, type) and _renew_class(old, new):
                setattr(module, name, old)


def _renew(old: FunctionType, new: Any) -> bool:
    """Give a function the code of its new version; all other references to it see the new code too."""
    try:
        old.__code__ = new.__code__
    except ValueError:  # one that has other free variables
        return False
    for name in ("__defaults__", "__kwdefaults__", "__doc__", "__annotations__"):
        setattr(old, name, getattr(new, name))
    old.__dict__.update(new.__dict__)
    return True


def _renew_class(old: Any, new: Any) -> bool:
    for name, value in [*vars(new).items()]:
        if name in ("__dict__", "__weakref__"):
            continue
        had = vars(old).get(name)
        if isinstance(had, FunctionType) and isinstance(value, FunctionType) and _renew(had, value):
            continue
        try:
            setattr(old, name, value)
        except (AttributeError, TypeError):  # an enum, or one that cannot be changed
            return False
    return True


def _codes(module: ModuleType) -> list[_Code]:
    """The functions of a module and of its classes, with their code."""
    found: list[_Code] = []
    for value in [*vars(module).values()]:
        if getattr(value, "__module__", None) != module.__name__:
            continue
        inside = [*vars(value).values()] if isinstance(value, type) else [value]
        found += [(one, one.__code__) for one in inside if isinstance(one, FunctionType)]
    return found


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _is_found(name: str, path: str) -> bool:
    """Would a worker find this very file under this name?"""
    parent = name.rpartition(".")[0]
    where: Any = None
    if parent:
        above = sys.modules.get(parent)
        where = getattr(above, "__path__", None)
        if where is None or (source_path(above) and not _is_found(parent, source_path(above))):
            return False
    try:
        spec = PathFinder.find_spec(name, where)
    except Exception:
        return False
    return spec is not None and spec.origin is not None and _same(spec.origin, path)


def _same(one: str, other: str) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _whole_path() -> list[str]:
    try:
        here = os.getcwd()
    except FileNotFoundError:
        here = "/"
    return [os.fspath(entry) or here for entry in sys.path]
