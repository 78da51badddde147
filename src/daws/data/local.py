"""The user's own modules: which they are, their sources, and their imports.

A module is *local* if it has source code that is neither a part of Python, nor of daws, nor in a folder for installed
packages. The source of a module is kept until the module is reloaded, so that it is the code that this process runs.
Imports are found in the text: one too many does no harm, and nothing is imported to find out.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.util import resolve_name
from typing import Any

INSTALLED = frozenset(["site-packages", "dist-packages"])
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[ \t]*[\w.]*)[ \t]+import[ \t]*(?:\(([^)]*)\)|([^\n;]*))|import[ \t]+([^\n;]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PYTHON = os.path.dirname(os.path.realpath(os.__file__))


class LocalModule:
    """`spec` is what its module had when it was read, None if it was not loaded; `revision` how often it had been
    loaded anew."""

    __slots__ = ("imports", "is_package", "name", "path", "revision", "source", "spec")

    def __init__(self, name: str, path: str, is_package: bool, source: bytes, spec: object = None) -> None:
        self.name = name
        self.path = path
        self.is_package = is_package
        self.source = source
        self.spec = spec
        self.revision = revised.get(name, 0)
        self.imports = imports_in(source.decode(errors="replace"), name if is_package else name.rpartition(".")[0])

    @property
    def file(self) -> str:
        """Its path inside a folder of modules."""
        return self.name.replace(".", "/") + ("/__init__.py" if self.is_package else ".py")

    def is_of(self, spec: object) -> bool:
        """Is this the version that the module with this spec runs?"""
        return self.spec is spec and self.revision == revised.get(self.name, 0)

    def __repr__(self) -> str:
        return f"<LocalModule {self.name}>"


class LocalModules:
    """The local modules that this process has loaded, or could load."""

    def __init__(self) -> None:
        self._found: dict[str, LocalModule | None] = {}
        self._folders: dict[str, list[str]] = {}  # of packages without a file of their own

    def get(self, name: str) -> LocalModule | None:
        """A local module by its full name; None if there is none, or it is not local."""
        loaded = sys.modules.get(name)
        spec = getattr(loaded, "__spec__", None)
        if name in self._found:
            known = self._found[name]
            if spec is None or (known is None and not is_local(loaded)) or (known is not None and known.is_of(spec)):
                return known
        self._found[name] = found = self._loaded(name, loaded, spec) if spec is not None else self._sought(name)
        return found

    def loaded(self) -> list[LocalModule]:
        found = [self.get(name) for name, module in [*sys.modules.items()] if name != "__main__" and is_local(module)]
        return [one for one in found if one is not None]

    def closure(self, names: Iterable[str]) -> dict[str, LocalModule]:
        """Local modules, with the packages that they are in and all that they import."""
        closed: dict[str, LocalModule] = {}
        seen: set[str] = set()
        queue = [*names]
        while queue:
            name = queue.pop()
            if name in seen:
                continue
            seen.add(name)
            found = self.get(name)
            parent = name.rpartition(".")[0]
            if parent:
                queue.append(parent)
            if found is not None:
                closed[name] = found
                queue += found.imports
        return closed

    def whole(self, names: Iterable[str]) -> dict[str, LocalModule]:
        """The closure, with all modules of their packages, because a module may import others by names that it
        computes."""
        closed = self.closure(names)
        walked: set[str] = set()
        while True:
            tops = {_outermost(name, closed) for name in closed} - walked
            tops.discard("")
            if not tops:
                return closed
            walked |= tops
            for top in sorted(tops):
                closed |= self.closure(_names_below(top, os.path.dirname(closed[top].path)))

    def _loaded(self, name: str, module: Any, spec: Any) -> LocalModule | None:
        if not is_local(module):
            return None
        path = source_path(module)
        source = read_source(path, name, getattr(spec, "loader", None))
        return None if source is None else LocalModule(name, path, hasattr(module, "__path__"), source, spec)

    def _sought(self, name: str) -> LocalModule | None:
        """One that is not loaded, and will not be for our sake."""
        parent = name.rpartition(".")[0]
        where: Any = None
        if parent:
            where = getattr(sys.modules.get(parent), "__path__", None)
            if where is None:
                known = self.get(parent)
                where = [os.path.dirname(known.path)] if known and known.is_package else self._folders.get(parent)
            if where is None:
                return None
        elif name in sys.stdlib_module_names:
            return None
        for finder in sys.meta_path:
            try:
                spec = finder.find_spec(name, where)
            except Exception:
                continue
            if spec is not None:
                origin = spec.origin or ""
                source = read_source(origin, name, spec.loader) if is_local_path(origin) else None
                is_package = spec.submodule_search_locations is not None
                if is_package and not origin:
                    self._folders[name] = list(spec.submodule_search_locations or ())
                return None if source is None else LocalModule(name, origin, is_package, source)
        if parent:  # finders do not look for folders without a file in folders like that, unless these are loaded
            folders = [os.path.join(one, name.rpartition(".")[2]) for one in where]
            self._folders[name] = [folder for folder in folders if os.path.isdir(folder)]
        return None


def imports_in(text: str, package: str) -> tuple[str, ...]:
    """The full names of all that may be imported by a source text of a module in this package ("" for none)."""
    names: dict[str, None] = {}
    for match in IMPORT.finditer(text):
        base, inside, after, plain = match.groups()
        if plain is not None:
            for one in _COMMENT.sub("", plain).split(","):
                if words := one.split():
                    names[words[0]] = None
            continue
        base = "".join(base.split())
        if base.startswith("."):
            try:
                base = resolve_name(base, package)
            except ImportError:
                continue
        if not base:
            continue
        names[base] = None
        for one in _COMMENT.sub("", inside if inside is not None else after).split(","):
            if (words := one.split()) and words[0] != "*":
                names[f"{base}.{words[0]}"] = None
    return tuple(names)


def is_local_path(path: str) -> bool:
    """Is this source code of the user's own?"""
    if not path.endswith(".py"):
        return False
    full = os.path.abspath(path)
    if full.startswith((_HERE + os.sep, _PYTHON + os.sep)) or not INSTALLED.isdisjoint(full.split(os.sep)):
        return False
    return not os.path.realpath(full).startswith(_PYTHON + os.sep)


revised: dict[str, int] = {}
"""The number of times that a module was reloaded, or changed in place, while this was watched (see `revisions`)."""
_judged: dict[str, bool] = {}


def is_local(module: Any) -> bool:
    """Is this module the user's own?"""
    path = source_path(module)
    if not path:
        return False
    known = _judged.get(path)
    if known is None:
        known = _judged[path] = is_local_path(path)
    return known


def source_path(module: Any) -> str:
    """The file of a module; "" if it has none."""
    path = getattr(module, "__file__", None)
    return path if isinstance(path, str) else ""


def read_source(path: str, name: str, loader: Any) -> bytes | None:
    """The source of a module; None if it cannot be had."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # inside an archive, or gone since it was loaded
        try:
            text = loader.get_source(name)
        except Exception:
            return None
        return None if text is None else str(text).encode()


def _outermost(name: str, closed: dict[str, LocalModule]) -> str:
    """The first package on the way to a module that has a file of its own; "" if there is none."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        found = closed.get(".".join(parts[:count]))
        if found is not None:
            return found.name if found.is_package else ""
    return ""


def _names_below(name: str, folder: str) -> Iterator[str]:
    """All modules in the folder of a package."""
    for where, folders, files in os.walk(folder):
        folders[:] = sorted([one for one in folders if one.isidentifier() and one != "__pycache__"])
        inside = os.path.relpath(where, folder)
        prefix = name if inside == "." else f"{name}.{inside.replace(os.sep, '.')}"
        for file in sorted(files):
            stem = file.removesuffix(".py")
            if stem != file and stem.isidentifier():
                yield prefix if stem == "__init__" else f"{prefix}.{stem}"
