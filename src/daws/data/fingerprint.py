"""The dependencies of a call, as digests: its function, its arguments, and the code behind both.

Equal calls have equal digests in every process. Digests do not depend on the order of sets, on the identity of equal
strings, or on the line numbers of code. Code of `__main__` and of local functions is examined function by function. The
user's own modules count as a whole, with all modules that they import; installed packages count by their version.
"""

import copyreg
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from pickle import PickleBuffer
from struct import Struct
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import msgspec

from daws.data.local import LocalModule, LocalModules
from daws.data.outside import File, stamp_of
from daws.data.uses import is_by_value
from daws.model.errors import UnpicklableError

DIGEST_BYTES = 16
LONG = 32
"""Lists that are longer are taken in at once if all that is in them is plain."""
READ_BYTES = 1 << 20
_PLAIN = frozenset([int, float, str, bytes, bool, type(None)])
_SKIPPED = frozenset(
    ["__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__", "__static_attributes__"]
)
_ATTRIBUTES = (GetSetDescriptorType, MemberDescriptorType, WrapperDescriptorType)
_FLOAT = Struct("<d")


class Unknown(Exception):
    """An argument whose value is not known yet."""


class Fingerprint:
    """A digest that takes in values one after the other. `needs` are the modules whose code they depend on.

    `of_future` returns a substitute for a future: a text, or its result in a tuple. It raises Unknown if there is none.
    """

    def __init__(self, of_future: Callable[[Any], str | tuple[Any]], future: type) -> None:
        self.needs: set[str] = set()
        self._of_future = of_future
        self._future = future
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        self._within: dict[int, int] = {}  # the values that we are inside of, by identity

    def digest(self, value: object, what: str) -> str:
        """The digest of one value, which errors call `what`."""
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        self._within.clear()
        try:
            self._add(value)
        except (Unknown, UnpicklableError):
            raise
        except RecursionError as error:
            raise UnpicklableError(f"{what} is nested too deeply for memo=", what) from error
        except Exception as error:
            text = f"{what} ({type(value).__name__}) cannot be told from others, as memo= needs it: {error}"
            raise UnpicklableError(text, what) from error
        return self._hash.hexdigest()

    def _say(self, kind: bytes, data: bytes | memoryview = b"") -> None:
        self._hash.update(b"%s%d:" % (kind, len(data)))
        self._hash.update(data)

    def _add(self, value: Any) -> None:
        kind = type(value)
        plain = _LEAVES.get(kind)
        if plain is not None:
            self._say(*plain(value))
            return
        where = self._within.get(id(value))
        if where is not None:  # it contains itself
            self._say(b"^", b"%d" % (len(self._within) - where))
            return
        self._within[id(value)] = len(self._within)
        try:
            _KINDS.get(kind, Fingerprint._add_other)(self, value)
        finally:
            del self._within[id(value)]

    def _add_list(self, value: list[Any] | tuple[Any, ...]) -> None:
        self._say(b"l" if type(value) is list else b"t", b"%d" % len(value))
        if len(value) > LONG and _PLAIN.issuperset(map(type, value)):
            try:
                self._say(b"m", msgspec.msgpack.encode(value))
            except (OverflowError, UnicodeError, ValueError):
                pass
            else:
                return
        for one in value:
            self._add(one)

    def _add_dict(self, value: dict[Any, Any]) -> None:
        self._say(b"d", b"%d" % len(value))
        for key, one in value.items():
            self._add(key)
            self._add(one)

    def _add_set(self, value: "set[Any] | frozenset[Any]") -> None:
        outer = self._hash
        digests = []
        for one in value:
            self._hash = blake2b(digest_size=DIGEST_BYTES)
            self._add(one)
            digests.append(self._hash.digest())
        self._hash = outer
        self._say(b"e" if type(value) is set else b"z", b"".join(sorted(digests)))

    def _add_other(self, value: Any) -> None:
        if isinstance(value, self._future):
            known = self._of_future(value)
            if isinstance(known, str):
                self._say(b"r", known.encode())
            else:
                self._add(known[0])
        elif isinstance(value, type):
            self._add_class(value)
        elif type(value).__module__ == "numpy" and type(value).__name__ == "ndarray" and not value.dtype.hasobject:
            self._say(b"n", repr((value.dtype.descr, value.shape)).encode())
            self._say(b"b", memoryview(value if value.flags.c_contiguous else value.copy(order="C")).cast("B"))
        elif callable(getattr(type(value), "daws_fingerprint", None)):
            self._add(value.daws_fingerprint())
        else:
            self._add_reduced(value)

    def _add_reduced(self, value: Any) -> None:
        """Add the parts into which pickle would take a value apart."""
        reduce = copyreg.dispatch_table.get(type(value))
        reduced: Any = value.__reduce_ex__(5) if reduce is None else reduce(value)
        if isinstance(reduced, str):
            self._say(b"g", f"{type(value).__module__}.{reduced}".encode())
            self._need(getattr(value, "__module__", None) or type(value).__module__)
            return
        self._say(b"o", b"%d" % len(reduced))
        for part in reduced[:3]:
            self._add(part)
        for part in reduced[3:5]:
            self._add(None if part is None else [*part])

    def _add_buffer(self, value: PickleBuffer) -> None:
        self._say(b"b", value.raw())

    def _add_file(self, value: File) -> None:
        self._say(b"p", value.name.encode())
        keeper = value._keeper
        if keeper is not None:
            self._add(keeper)
            return
        where = getattr(value.source, "where", None)
        if where is not None:
            self._say(b"h", file_digest(where, stamp_of(where)))
        else:
            self._add(getattr(value.source, "url", repr(value.source)))

    # -- code ----------------------------------------------------------------------------------------------------------

    def _add_function(self, function: FunctionType) -> None:
        if not is_by_value(function):
            self._say(b"g", f"{function.__module__}.{function.__qualname__}".encode())
            self._need(function.__module__)
            return
        self._say(b"c", function.__name__.encode())
        self._add_code(function.__code__)
        self._add(function.__defaults__)
        self._add(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                continue
            self._add(content)
        names = function.__globals__
        for name in sorted(set(_names(function.__code__))):
            if name in names:
                self._say(b"v", name.encode())
                self._add_if_possible(names[name])

    def _add_if_possible(self, value: Any) -> None:
        """Add a value that may be used; if that is impossible, add its type."""
        outer = self._hash
        self._hash = outer.copy()
        try:
            self._add(value)
        except Exception:
            self._hash = outer
            self._say(b"?", type(value).__qualname__.encode())

    def _add_code(self, code: CodeType) -> None:
        """All but the lines and the file in which it stands."""
        self._say(b"k", code.co_code)
        self._say(b"x", getattr(code, "co_exceptiontable", b""))
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self._add((counts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._add_code(constant)
            else:
                self._add(constant)

    def _add_class(self, value: type) -> None:
        self._say(b"g", f"{value.__module__}.{value.__qualname__}".encode())
        if value.__module__ != "__main__" and not is_by_value(value):
            self._need(value.__module__)
            return
        for base in value.__bases__:
            self._add(base)
        for name, one in sorted(vars(value).items()):
            if name in _SKIPPED or name.startswith("_abc_") or isinstance(one, _ATTRIBUTES):
                continue
            self._say(b"v", name.encode())
            if isinstance(one, property):
                one = (one.fget, one.fset, one.fdel)
            elif isinstance(one, staticmethod | classmethod):
                one = one.__func__
            self._add_if_possible(one)

    def _add_module(self, value: ModuleType) -> None:
        self._say(b"g", value.__name__.encode())
        self._need(value.__name__)

    def _add_builtin(self, value: BuiltinFunctionType) -> None:
        owner = value.__self__
        self._say(b"g", f"{value.__module__}.{value.__qualname__}".encode())
        if owner is not None and not isinstance(owner, ModuleType):
            self._add(owner)
        self._need(value.__module__)

    def _add_method(self, value: MethodType) -> None:
        self._say(b"w", value.__func__.__qualname__.encode())
        self._add(value.__self__)
        self._add(value.__func__)

    def _need(self, module: str | None) -> None:
        if module and module != "__main__" and module.partition(".")[0] not in sys.stdlib_module_names:
            self.needs.add(module)


def _size(value: int) -> tuple[bytes, bytes]:
    return b"i", b"%x" % value


_LEAVES: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    type(None): lambda value: (b"N",),
    type(Ellipsis): lambda value: (b".",),
    bool: lambda value: (b"T" if value else b"F",),
    int: _size,
    float: lambda value: (b"f", _FLOAT.pack(value)),
    complex: lambda value: (b"j", _FLOAT.pack(value.real) + _FLOAT.pack(value.imag)),
    str: lambda value: (b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda value: (b"b", value),
    bytearray: lambda value: (b"a", bytes(value)),
}
_KINDS: dict[type, Callable[[Fingerprint, Any], None]] = {
    list: Fingerprint._add_list,
    tuple: Fingerprint._add_list,
    dict: Fingerprint._add_dict,
    set: Fingerprint._add_set,
    frozenset: Fingerprint._add_set,
    FunctionType: Fingerprint._add_function,
    BuiltinFunctionType: Fingerprint._add_builtin,
    MethodType: Fingerprint._add_method,
    ModuleType: Fingerprint._add_module,
    PickleBuffer: Fingerprint._add_buffer,
    CodeType: Fingerprint._add_code,
    File: Fingerprint._add_file,
}


def _names(code: CodeType) -> Iterable[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@lru_cache(maxsize=1 << 16)
def file_digest(path: str, stamp: object) -> bytes:
    """The digest of a file's content. `stamp` is part of the cache's key: it changes when the file does."""
    found = blake2b(digest_size=DIGEST_BYTES)
    with open(path, "rb") as file:
        while data := file.read(READ_BYTES):
            found.update(data)
    return found.digest()


class Versions:
    """The versions of modules and packages, by what people call them: "module mine", "package numpy"."""

    def __init__(self) -> None:
        self._local = LocalModules()
        self._codes: dict[str, tuple[LocalModule, str]] = {}
        self._known: dict[frozenset[str], tuple[int, dict[str, LocalModule], dict[str, str]]] = {}

    def of(self, needs: Iterable[str]) -> dict[str, str]:
        """The digests of these modules, and of all that they import."""
        key = frozenset(needs)
        known = self._known.get(key)
        if known is not None and known[0] == len(sys.modules) and all(self._is_same(one) for one in known[1].values()):
            return known[2]
        closed = self._local.closure(key)
        found = {f"module {name}": self._code(module) for name, module in sorted(closed.items())}
        outside = {one.partition(".")[0] for module in closed.values() for one in module.imports}
        outside |= {name.partition(".")[0] for name in key}
        for name in sorted(outside - sys.stdlib_module_names - closed.keys()):
            version = getattr(sys.modules.get(name), "__version__", None)
            if isinstance(version, str) and name != "daws":
                found[f"package {name}"] = version
        self._known[key] = len(sys.modules), closed, found
        return found

    def _is_same(self, module: LocalModule) -> bool:
        loaded = getattr(sys.modules.get(module.name), "__spec__", None)
        return loaded is None or loaded is module.spec

    def _code(self, module: LocalModule) -> str:
        known = self._codes.get(module.name)
        if known is None or known[0] is not module:
            known = self._codes[module.name] = module, _code_digest(module.source)
        return known[1]


def _code_digest(source: bytes) -> str:
    """The digest of a module's code, independent of line numbers."""
    try:
        code = compile(source, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return blake2b(source, digest_size=DIGEST_BYTES).hexdigest()

    def nobody(future: Any) -> str:
        raise Unknown

    return Fingerprint(nobody, _NoFuture).digest(code, "the module")


class _NoFuture:
    """The type of futures where there are none."""
