"""Classes that travel by value, and are the same class wherever they arrive.

cloudpickle identifies a class by a name that it was given when it was first sent. There is therefore one class per
process, and an instance that comes back is an instance of the class that it was made from. Beyond that:

- A class is changed only by the process that defined it. An instance that comes back from a worker leaves the client's
  class as it is. A value that a worker keeps in an attribute of a class stays until the client has changed the class.
- None of the user's code runs when a class is put together: neither `__init_subclass__` nor the `__new__` and
  `__init__` of a metaclass. Their effects are in the attributes.
- Slots, named tuples and enums (with aliases, and with members that a constructor has made) stay the same.
"""

import operator
import pickle
import types
import typing
import weakref
from enum import Enum, Flag
from threading import RLock
from typing import Any

from cloudpickle import cloudpickle as inner

from daws.data.uses import Uses

Reduced = tuple[Any, ...]
_TYPING = ("typing", "typing_extensions")
_ATOMS = (int, float, complex, str, bytes, bool, type(None))
_CONTAINERS = (list, dict, set, frozenset, tuple, bytearray)
_making = RLock()
_no_effect = classmethod(lambda cls, **_: None)
_received: "weakref.WeakKeyDictionary[type, int]" = weakref.WeakKeyDictionary()
"""The version of each class that this process did not define; -1 while it is put together."""
_recent: dict[str, type] = {}
"""The last classes that arrived, by identity. A class that only arguments refer to would otherwise be collected between
two tasks, with the values that the first task kept in its attributes."""
_RECENT_MAX = 128
_versions: "weakref.WeakKeyDictionary[type, tuple[int, dict[Any, Any]]]" = weakref.WeakKeyDictionary()
"""The number and the content of the last version that was sent, for each class that this process did define."""
_COMPUTED = (
    "__new__",
    "_generate_next_value_",
    "_member_names_",
    "_member_map_",
    "_member_type_",
    "_value2member_map_",
    "_hashable_values_",
    "_unhashable_values_",
    "_unhashable_values_map_",
    "_sort_order_",
)
"""The names that the metaclass of enums makes by itself."""


def is_by_reference(one: Any, name: str | None = None) -> bool:
    """Can another process import it?"""
    if isinstance(one, types.ModuleType):
        return one.__name__ != "__main__" and bool(inner._should_pickle_by_reference(one))
    found = inner._lookup_module_and_qualname(one, name)
    return found is not None and not inner._is_registered_pickle_by_value(found[0])


# -- out ---------------------------------------------------------------------------------------------------------------


def reduce_class(kind: type, reduced: Any) -> Any:
    """The reduction of a class by cloudpickle, corrected."""
    if type(reduced) is not tuple or len(reduced) != 6:
        return reduced
    if issubclass(kind, Enum):
        return _reduce_enum(kind, reduced)
    _, (meta, name, bases, names, identity, _), state, *_ = reduced
    own = kind.__dict__
    names = dict(names)
    if "__slots__" in own:
        slots = own["__slots__"]
        names["__slots__"] = slots if isinstance(slots, str) else tuple(slots)
    above = _init_subclass(kind)
    is_quiet = above is not None or not is_by_reference(meta)
    if is_quiet or typing.NamedTuple in bases:
        bases = kind.__bases__
        if "__orig_bases__" in own:
            names["__orig_bases__"] = own["__orig_bases__"]
    args = (meta, name, bases, names, identity, is_quiet, above)
    return make_class, args, (state[0], _version(kind)), None, None, set_class


def _init_subclass(kind: type) -> type | None:
    """The base whose code would run when this class is made; None if it has none but Python's."""
    above = next(one for one in kind.__mro__[1:] if "__init_subclass__" in one.__dict__)
    return None if above is object or above.__module__ in _TYPING else above


def _version(kind: type) -> int:
    """The number of the version of a class that is sent: a new one if attributes have changed since the last."""
    known = _received.get(kind)
    if known is not None:
        return known
    uses = Uses(kind)
    now: dict[Any, Any]
    now = {name: _shade(value) for name, value in [*kind.__dict__.items()] if not name.startswith("_abc_")}
    now |= {(id(where), name): _identity(value) for where, name, value in uses.used}
    now |= {number: one.pickled for number, one in uses.looked.items()}
    version, before = _versions.get(kind, (0, None))
    if now != before:
        version += 1
        _versions[kind] = (version, now)
    return version


def _shade(value: Any) -> Any:
    """A substitute that tells a value from another one, without keeping the class alive that the value may refer to."""
    if type(value) in _CONTAINERS:
        try:
            return pickle.dumps(value, 5)
        except Exception:
            return id(value)
    return _identity(value)


def _identity(value: Any) -> Any:
    if type(value) in _ATOMS:
        return value
    try:
        return _Same(value)
    except TypeError:
        return id(value)


class _Same:
    """Equal to another one of the same object, which it does not keep alive."""

    __slots__ = ("ref",)

    def __init__(self, value: Any) -> None:
        self.ref = weakref.ref(value)

    def __eq__(self, other: object) -> bool:
        value = self.ref()
        return value is not None and isinstance(other, _Same) and other.ref() is value

    __hash__ = None  # type: ignore[assignment]


def reduce_member(member: Enum) -> Any:
    kind = type(member)
    if kind.__members__.get(member.name or "") is not member or is_by_reference(kind):
        return NotImplemented
    return operator.getitem, (kind, member.name)


def _reduce_enum(kind: Any, reduced: Reduced) -> Reduced:
    _, (bases, name, qualified, _, module, identity, _), (names, _), *_ = reduced
    members = kind.__members__
    given = {one: (_data(kind, member), member._value_) for one, member in members.items()}
    more = {one: vars(member) for one, member in members.items() if member._name_ == one}
    hidden = ("_name_", "_value_", "__objclass__", "_sort_order_")
    inside = {one: {key: value for key, value in had.items() if key not in hidden} for one, had in more.items()}
    state = {one: value for one, value in names.items() if one not in members and one not in _COMPUTED}
    options = {"boundary": kind._boundary_} if issubclass(kind, Flag) else {}
    args = (type(kind), name, qualified, module, bases, given, options, identity)
    return make_enum, args, (state, _version(kind), inside), None, None, set_enum


def _data(kind: Any, member: Any) -> tuple[Any, ...]:
    """The arguments from which the mixed-in type of an enum makes a member."""
    mixed = kind._member_type_
    if mixed is object:
        return ()
    if hasattr(mixed, "__getnewargs__"):
        return tuple(mixed.__getnewargs__(member))
    if mixed.__new__ is object.__new__:
        return ()
    if mixed.__reduce__ is not object.__reduce__:  # a date, a Decimal
        return tuple(mixed.__reduce__(member)[1])
    return member._value_ if isinstance(member._value_, tuple) else (member._value_,)


# -- in ----------------------------------------------------------------------------------------------------------------


def make_class(
    meta: Any,
    name: str,
    bases: tuple[Any, ...],
    names: dict[str, Any],
    identity: str,
    is_quiet: bool,
    above: type | None,
) -> Any:
    """The class of this identity: the one that is here, or an empty one, which `set_class` fills."""
    found = inner._DYNAMIC_CLASS_TRACKER_BY_ID.get(identity)
    if found is not None:
        return found
    if is_quiet:
        made = _made_quietly(meta, name, bases, names, above)
    else:
        made = types.new_class(name, bases, {"metaclass": meta}, lambda space: space.update(names))
    return _track(identity, made)


def set_class(kind: type, state: tuple[dict[str, Any], int]) -> None:
    names, version = state
    if _is_older(kind, version):
        inner._class_setstate(kind, (names, {}))
        _received[kind] = version


def make_enum(
    meta: Any,
    name: str,
    qualified: str,
    module: str,
    bases: tuple[Any, ...],
    given: dict[str, tuple[Any, Any]],
    options: dict[str, Any],
    identity: str,
) -> Any:
    """The enum of this identity, with its members; the constructors of the user's do not run again."""
    found = inner._DYNAMIC_CLASS_TRACKER_BY_ID.get(identity)
    if found is not None:
        return found
    space = meta.__prepare__(name, bases)
    space["__new__"] = _new_member
    space["__init__"] = _init_member
    for one, what in given.items():
        space[one] = what
    made = meta.__new__(meta, name, bases, space, **options)
    type.__delattr__(made, "__init__")
    made.__module__, made.__qualname__ = module, qualified
    return _track(identity, made)


def set_enum(kind: Any, state: tuple[dict[str, Any], int, dict[str, dict[str, Any]]]) -> None:
    names, version, inside = state
    if not _is_older(kind, version):
        return
    if _received[kind] < 0 and "__new_member__" not in names:
        type.__delattr__(kind, "__new_member__")
    inner._class_setstate(kind, (names, {}))
    for one, values in inside.items():
        vars(kind[one]).update(values)
    _received[kind] = version


def _new_member(cls: Any, *given: Any) -> Any:
    data, value = given if len(given) == 2 else given[0]  # enums that are tuples put what is given into another one
    mixed = cls._member_type_
    made = object.__new__(cls) if mixed is object else mixed.__new__(cls, *data)
    made._value_ = value
    return made


def _init_member(self: Any, *_: Any) -> None:
    """All that a constructor did is in the attributes."""


def _is_older(kind: type, version: int) -> bool:
    """Is this class another process's, and is what we have of it older?"""
    have = _received.get(kind)
    return have is not None and have < version


def _track(identity: str, made: Any) -> Any:
    _received[made] = -1
    kept: Any = inner._lookup_class_or_track(identity, made)
    with _making:
        _recent[identity] = kept
        if len(_recent) > _RECENT_MAX:
            del _recent[next(iter(_recent))]
    return kept


def _made_quietly(meta: Any, name: str, bases: tuple[Any, ...], names: dict[str, Any], above: type | None) -> Any:
    """A class whose making runs no code of the user's. `above` is the base whose `__init_subclass__` would run."""
    maker: Any = next(one for one in meta.__mro__ if is_by_reference(one))
    if above is None or is_by_reference(above):
        try:
            return maker.__new__(meta, name, bases, dict(names))  # a library may have to know of it
        except Exception:
            if above is None:
                raise
    with _making:
        theirs = above.__dict__.get("__init_subclass__", _no_effect)  # it may not be filled itself yet
        type.__setattr__(above, "__init_subclass__", _no_effect)
        try:
            return maker.__new__(meta, name, bases, dict(names))
        finally:
            if theirs is _no_effect:
                type.__delattr__(above, "__init_subclass__")
            else:
                type.__setattr__(above, "__init_subclass__", theirs)


# -- exceptions --------------------------------------------------------------------------------------------------------


def reduce_exception(error: BaseException) -> Any:
    """One of a class with a constructor of its own, which cannot be called again: `args` are not what it was given."""
    kind = type(error)
    if is_by_reference(kind) or not _has_constructor(kind):
        return NotImplemented
    reduced: Any = error.__reduce__()
    return make_exception, reduced[:2], *reduced[2:]


def make_exception(kind: Any, args: tuple[Any, ...]) -> BaseException:
    base: Any = next(one for one in kind.__mro__ if one.__module__ == "builtins")
    error: BaseException = base.__new__(kind, *args)
    base.__init__(error, *args)
    return error


def _has_constructor(kind: type) -> bool:
    own = [one.__dict__ for one in kind.__mro__ if one.__module__ != "builtins"]
    if any(name in one for one in own for name in ("__reduce__", "__reduce_ex__")):
        return False
    return any(name in one for one in own for name in ("__init__", "__new__"))
