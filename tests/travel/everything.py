# mypy: ignore-errors
# ruff: noqa: B008, PIE796, RUF005, RUF009
"""All kinds of functions and classes, defined in `__main__`, go to tasks and come back.

Run as a script, by `-m`, `-c` or from standard input; DAWS_TRY names the cluster: processes, threads, nodes, or a
folder for `daws.connect`. There is no `__main__` guard, on purpose. What fails is printed; the last line says how many.
It is written as people write, which is why checkers are told to look away.
"""

import abc
import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import inspect
import os
import pickle
import sys
import threading
import traceback
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, NewType, ParamSpec, Protocol, TypeVar, TypeVarTuple

import daws

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
Number = TypeVar("Number", int, float)
UserId = NewType("UserId", int)
Pair = tuple[int, "Point"]


class Point(NamedTuple):
    x: int
    y: int = 2

    @property
    def norm(self) -> int:
        return self.x + self.y

    def moved(self, by: int) -> "Point":
        return self._replace(x=self.x + by)

    @classmethod
    def origin(cls) -> "Point":
        return cls(0, 0)


class Keyed(NamedTuple, Generic[T]):
    key: str
    value: T


Colour = collections.namedtuple("Colour", "red green blue", defaults=[0])
Renamed = collections.namedtuple("Other", ["a"])


class Shade(Colour):
    __slots__ = ()

    def dark(self) -> bool:
        return self.red + self.green + self.blue < 100


class Movie(typing.TypedDict, total=False):
    name: str


@dataclass
class Plain:
    x: int
    tags: list[str] = field(default_factory=list)
    kind: ClassVar[str] = "plain"


@dataclass(frozen=True)
class Frozen:
    x: int
    y: "Point" = Point(1)


@dataclass(slots=True)
class Slotted:
    x: int
    y: list[int] = field(default_factory=list)

    def total(self) -> int:
        return self.x + sum(self.y)


@dataclass(frozen=True, slots=True, order=True)
class FrozenSlotted:
    x: int
    y: int = 3


@dataclass(slots=True)
class SlottedChild(Slotted):
    z: int = 4

    def total(self) -> int:
        return super(SlottedChild, self).total() + self.z


@dataclass(kw_only=True)
class Keywords:
    x: int
    y: int = 5


@dataclass
class Initial:
    x: int
    factor: InitVar[int] = 2
    y: int = field(init=False, repr=False, default=0)

    def __post_init__(self, factor: int) -> None:
        self.y = self.x * factor


@dataclass
class Child(Plain):
    z: int = 7

    def __str__(self) -> str:
        return super().__str__() + "!"


@dataclass(slots=True, weakref_slot=True)
class Weak:
    x: int


class BareSlots:
    __slots__ = ("__dict__", "left", "right")

    def __init__(self, left: int, right: int) -> None:
        self.left, self.right = left, right

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BareSlots) and (self.left, self.right) == (other.left, other.right)


class PrivateSlots:
    __slots__ = ("__hidden",)

    def __init__(self) -> None:
        self.__hidden = 11

    def shown(self) -> int:
        return self.__hidden


class Mood(enum.Enum):
    GOOD = 1
    BAD = "bad"
    FINE = 1  # an alias

    def louder(self) -> str:
        return self.name + "!"

    @classmethod
    def default(cls) -> "Mood":
        return cls.GOOD


class Level(enum.IntEnum):
    LOW = enum.auto()
    HIGH = enum.auto()


class Word(enum.StrEnum):
    YES = enum.auto()
    NO = enum.auto()


class Right(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
    BOTH = READ | WRITE


class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2


class Planet(enum.Enum):
    EARTH = (5.976e24, 6.37814e6)
    MARS = (6.421e23, 3.3972e6)

    def __init__(self, mass: float, radius: float) -> None:
        self.mass = mass
        self.radius = radius

    @property
    def gravity(self) -> float:
        return 6.67300e-11 * self.mass / (self.radius * self.radius)


class Coordinate(bytes, enum.Enum):
    PX = (0, "P.X", "km")
    PY = (1, "P.Y", "km")

    def __new__(cls, value: int, label: str, unit: str) -> "Coordinate":
        made = bytes.__new__(cls, [value])
        made._value_ = value
        made.label = label
        made.unit = unit
        return made


class Lenient(enum.Enum):
    A = "a"

    @classmethod
    def _missing_(cls, value: object) -> "Lenient | None":
        return cls.A if value == "A" else None


class Handler(enum.Enum):
    ADD = enum.member(functools.partial(lambda x, y: x + y))

    def __call__(self, *args: int) -> int:
        return self.value(*args)


Dynamic = enum.Enum("Dynamic", "RED GREEN")


@typing.runtime_checkable
class Shape(Protocol):
    def area(self) -> float: ...


class Square:
    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        return self.side**2


class NamedShape(Shape, Protocol):
    name: str


class Explicit(NamedShape):
    name = "explicit"

    def area(self) -> float:
        return 1.0


class Box(Generic[T]):
    def __init__(self, inside: T) -> None:
        self.inside = inside

    def map(self, function: Callable[[T], Any]) -> "Box[Any]":
        return Box(function(self.inside))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.inside == self.inside

    def __hash__(self) -> int:
        return hash(self.inside)


class IntBox(Box[int]):
    def plus(self, other: int) -> int:
        return self.inside + other


class Many(Generic[*Ts]):
    pass


class Calls(Generic[P, T]):
    def __init__(self, function: Callable[P, T]) -> None:
        self.function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.function(*args, **kwargs)


class Animal(abc.ABC):
    @abc.abstractmethod
    def sound(self) -> str: ...

    @property
    @abc.abstractmethod
    def legs(self) -> int: ...

    def twice(self) -> str:
        return self.sound() * 2


class Dog(Animal):
    def sound(self) -> str:
        return "wau"

    @property
    def legs(self) -> int:
        return 4


class Virtual:
    pass


Animal.register(Virtual)


class Outer:
    class Inner:
        class Deep(NamedTuple):
            x: int

        def __init__(self, x: int) -> None:
            self.x = x

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Outer.Inner) and other.x == self.x

    class Kind(enum.Enum):
        A = 1

    def make(self) -> "Outer.Inner":
        return self.Inner(3)


class Registry(type):
    known: dict[str, type] = {}  # noqa: RUF012

    def __new__(mcs, name: str, bases: tuple[type, ...], names: dict[str, Any], **options: Any) -> "Registry":
        made = super().__new__(mcs, name, bases, names)
        made.marker = names["marker"]  # it must be there
        mcs.known[name] = made
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], names: dict[str, Any], *, size: int = 0) -> None:
        super().__init__(name, bases, names)
        cls.size = size

    def __call__(cls, *args: Any) -> Any:
        made = super().__call__(*args)
        made.by_meta = True
        return made

    def __len__(cls) -> int:
        return cls.size


class Registered(metaclass=Registry, size=3):
    marker = "m"


class Plugin:
    plugins: ClassVar[dict[str, type]] = {}
    key: ClassVar[str] = ""

    def __init_subclass__(cls, /, key: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.key = key
        Plugin.plugins[key] = cls


class Csv(Plugin, key="csv"):
    def read(self) -> str:
        return f"{type(self).__name__}:{self.key}"


class Tsv(Csv, key="tsv"):
    def read(self) -> str:
        return super().read() + "\t"


class Validated:
    """A descriptor that knows its name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else getattr(instance, self.name)

    def __set__(self, instance: Any, value: int) -> None:
        if value < 0:
            raise ValueError(self.name)
        setattr(instance, self.name, value)


class Account:
    amount = Validated()

    def __init__(self, amount: int) -> None:
        self.amount = amount

    @functools.cached_property
    def doubled(self) -> int:
        return 2 * self.amount

    @property
    def half(self) -> float:
        return self.amount / 2

    @half.setter
    def half(self, value: float) -> None:
        self.amount = int(2 * value)

    @staticmethod
    def rate() -> float:
        return 0.5

    @classmethod
    def empty(cls) -> "Account":
        return cls(0)

    @functools.lru_cache(maxsize=8)  # noqa: B019
    def slow(self) -> int:
        return self.amount + 1

    @functools.singledispatchmethod
    def add(self, what: Any) -> str:
        return "any"

    @add.register
    def _(self, what: int) -> str:
        return "int"

    plus = functools.partialmethod(slow)


class A:
    def other(self) -> "B":
        return B()

    def who(self) -> str:
        return "A"


class B(A):
    def other(self) -> A:
        return A()

    def who(self) -> str:
        return super().who() + "B"


class C(A):
    def who(self) -> str:
        return super().who() + "C"


class D(B, C):
    def who(self) -> str:
        return super().who() + "D"


class Singleton:
    _only: ClassVar["Singleton | None"] = None

    def __new__(cls) -> "Singleton":
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __reduce__(self) -> Any:
        return Singleton, ()


class Flyweights:
    made: ClassVar[weakref.WeakValueDictionary[str, "Flyweights"]] = weakref.WeakValueDictionary()
    seen: ClassVar[weakref.WeakKeyDictionary["Flyweights", int]] = weakref.WeakKeyDictionary()


Flyweights.only = Flyweights()
Flyweights.made["only"] = Flyweights.only
Flyweights.seen[Flyweights.only] = 7


class Counter:
    count = 0
    names: ClassVar[list[str]] = []

    def step(self) -> int:
        type(self).count += 1
        return type(self).count


class Numbers(list[int]):
    def total(self) -> int:
        return sum(self)


class Defaults(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return len(key)


class Words(collections.UserDict[str, str]):
    pass


class Kelvin(float):
    def celsius(self) -> float:
        return self - 273.15


class Failure(Exception):
    def __init__(self, code: int, where: str) -> None:
        super().__init__(f"{where}: {code}")
        self.code = code
        self.where = where


class Quiet(Failure):
    def __init__(self) -> None:
        super().__init__(1, "quiet")


class Context:
    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: Any) -> None:
        pass


# -- functions ---------------------------------------------------------------------------------------------------------

FACTOR = 3
SETTINGS = {"depth": 2}
request = contextvars.ContextVar("request", default="nobody")
bare = contextvars.ContextVar[int]("bare")
VIEW = types.MappingProxyType({"a": 1})
local = threading.local()


@functools.lru_cache(maxsize=None)  # noqa: UP033
def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@functools.cache
def cached(n: int) -> int:
    return n * FACTOR


@functools.singledispatch
def describe(what: Any) -> str:
    return "something"


@describe.register
def _(what: int) -> str:
    return "a number"


@describe.register(Point)
def _(what: Point) -> str:
    return "a point"


describe(1)  # its cache is not empty


def counted(function: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> T:
        inner.calls += 1
        return function(*args, **kwargs)

    inner.calls = 0
    return inner


@counted
def decorated(x: int) -> int:
    return x + 1


def factorial(n: int) -> int:
    return 1 if n < 2 else n * factorial(n - 1)


def even(n: int) -> bool:
    return n == 0 or odd(n - 1)


def odd(n: int) -> bool:
    return n != 0 and even(n - 1)


def adder(by: int) -> Callable[[int], int]:
    def add(x: int) -> int:
        return x + by

    return add


def counter() -> Callable[[], int]:
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return count

    return step


def countdown(n: int) -> Iterator[int]:
    while n:
        yield n
        n -= 1


@contextlib.contextmanager
def managed(x: int) -> Iterator[int]:
    yield x + 1


def annotated(user: UserId, pair: Pair, box: Box[int], calls: Calls[P, T], *more: Number) -> "Shape | None":
    return None


def local_class(x: int) -> Any:
    @dataclass
    class Local:
        x: int

        def twice(self) -> int:
            return 2 * self.x

    return Local(x)


def defaults(x: int, point: Point = Point(1), /, *, mood: Mood = Mood.GOOD) -> tuple[int, str]:
    return x + point.norm, mood.louder()


def with_globals(x: int) -> int:
    return x * FACTOR + SETTINGS["depth"]


# -- the cluster -------------------------------------------------------------------------------------------------------


def echo(x: Any) -> Any:
    return x


def nested(x: Any) -> Any:
    return daws.current().submit(echo, x).result()


def kind_of(x: Any) -> tuple[type, int]:
    return type(x), id(type(x))


def is_member(cls: Any, member: Any) -> bool:
    return any(member is one for one in cls.__members__.values())


def call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def call_nested(function: Callable[..., Any], *args: Any) -> Any:
    return daws.current().submit(function, *args).result()


def fail(error: BaseException) -> None:
    raise error


def fail_with(code: int) -> None:
    raise Failure(code, "there")


def make(what: type[T], *args: Any) -> T:
    return what(*args)


VALUES = [
    Point(3),
    Keyed("a", 1),
    Colour(1, 2),
    Renamed(1),
    Shade(1, 2, 3),
    Movie(name="x"),
    Plain(1, ["a"]),
    Frozen(2),
    Slotted(1, [2]),
    FrozenSlotted(1),
    SlottedChild(1, [2], 3),
    Keywords(x=1),
    Initial(2, 3),
    Child(1, ["b"], 2),
    Weak(1),
    BareSlots(1, 2),
    Box([1]),
    IntBox(2),
    Outer.Inner(1),
    Outer.Inner.Deep(1),
    Numbers([1, 2]),
    Defaults(a=1),
    Words(a="b"),
    Kelvin(300.0),
    {Point(1): [Frozen(1)]},
    [Mood.GOOD, Mood.BAD, Level.LOW, Word.YES, Bits.ONE | Bits.TWO],
    VIEW,
]
MEMBERS = [
    *Mood,
    *Level,
    *Word,
    Right.READ,
    Right.BOTH,
    *Bits,
    *Planet,
    *Coordinate,
    *Lenient,
    Handler.ADD,
    *Dynamic,
    Outer.Kind.A,
]
CHECKS: dict[str, Callable[[Any], Any]] = {}


def check(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CHECKS[function.__name__] = function
    return function


@check
def values(run: Any) -> None:
    for value in VALUES:
        for way in (echo, nested):
            back = run(way, value)
            assert back == value and type(back) is type(value), (value, back)
        cls, _ = run(kind_of, value)
        assert cls is type(value), value


@check
def one_class_in_a_worker(run: Any) -> None:
    for value in VALUES:
        ids = {run(lambda x: (os.getpid(), id(type(x))), value) for _ in range(8)}
        assert len(ids) == len({pid for pid, _ in ids}), value


@check
def members(run: Any) -> None:
    for member in MEMBERS:
        for way in (echo, nested):
            assert run(way, member) is member, member
        assert run(is_member, type(member), member), member
    assert run(echo, Right.READ | Right.WRITE) is Right.BOTH
    assert run(lambda x: x == 1 and x.name == "LOW" and Level(2) is Level.HIGH, Level.LOW)


@check
def enums_work_there(run: Any) -> None:
    assert run(lambda: (Mood.FINE is Mood.GOOD, Mood["FINE"] is Mood.GOOD, Mood.BAD.louder(), Mood.default().name)) == (
        True,
        True,
        "BAD!",
        "GOOD",
    )
    assert run(lambda: [*Mood.__members__]) == ["GOOD", "BAD", "FINE"]
    assert run(lambda: Planet.EARTH.gravity) == Planet.EARTH.gravity
    assert run(lambda: (Planet.MARS.mass, Planet(Planet.MARS.value) is Planet.MARS)) == (6.421e23, True)
    assert run(lambda: [(bytes(one), one.value, one.label, one.unit) for one in Coordinate]) == [
        (b"\0", 0, "P.X", "km"),
        (b"\1", 1, "P.Y", "km"),
    ]
    assert run(lambda: Coordinate(1) is Coordinate.PY)
    assert run(lambda: Lenient("A") is Lenient.A)
    assert run(lambda: Handler.ADD(1, 2)) == 3
    assert run(lambda: Word.YES + "!") == "yes!"
    assert run(lambda: (Right.READ | Right.WRITE).name) == "BOTH"
    assert run(lambda: ~Bits.ONE & Bits.TWO) is Bits.TWO
    assert run(lambda x: x in {Mood.GOOD: 1}, Mood.GOOD)
    assert run(lambda x: {Mood.GOOD: "good", Level.LOW: "low"}[x], Mood.GOOD) == "good"
    assert run(lambda: list(reversed(Level))) == [Level.HIGH, Level.LOW]

    def matched(mood: Mood) -> str:
        match mood:
            case Mood.GOOD:
                return "good"
            case _:
                return "other"

    assert run(matched, Mood.GOOD) == "good"


@check
def named_tuples_work_there(run: Any) -> None:
    assert run(lambda p: (p.norm, p.moved(2), Point.origin(), p._asdict(), p._fields), Point(1)) == (
        3,
        Point(3),
        Point(0, 0),
        {"x": 1, "y": 2},
        ("x", "y"),
    )
    assert run(lambda: Point(5)) == Point(5, 2)
    assert run(lambda: Point.__annotations__["x"]) is int
    assert run(lambda: Colour(1, 2).blue) == 0
    assert run(lambda s: s.dark(), Shade(1, 2, 3))
    assert run(lambda: Keyed("k", 2).value) == 2
    assert run(lambda: Shade._make([1, 2, 3])) == Shade(1, 2, 3)
    assert run(make, Point, 1) == Point(1)
    assert run(lambda p: copy.copy(p) == pickle.loads(pickle.dumps(tuple(p))), Point(1))
    assert not run(lambda p: hasattr(p, "__dict__"), Point(1))


@check
def dataclasses_work_there(run: Any) -> None:
    for value in VALUES:
        if dataclasses.is_dataclass(value):
            names = [one.name for one in dataclasses.fields(value)]
            assert run(lambda x: [one.name for one in dataclasses.fields(x)], value) == names
            assert run(dataclasses.asdict, value) == dataclasses.asdict(value)
            assert run(repr, value) == repr(value)
    assert run(lambda x: dataclasses.replace(x, x=9), Frozen(1)) == Frozen(9)
    assert run(lambda: dataclasses.replace(Initial(1), x=2, factor=3).y) == 6
    assert run(lambda: dataclasses.fields(Plain)[0].default is dataclasses.MISSING)
    assert run(lambda: [Plain(1), Plain(2, ["x"])]) == [Plain(1), Plain(2, ["x"])]
    assert run(lambda: Initial(3, factor=4).y) == 12
    assert run(lambda: str(Child(1))) == str(Child(1))
    assert run(lambda: Keywords(x=2).y) == 5
    assert run(lambda x: x.total(), SlottedChild(1, [2], 3)) == 6
    assert not run(lambda x: hasattr(x, "__dict__"), Slotted(1))
    assert run(lambda x: sorted([x, FrozenSlotted(0)])[0], FrozenSlotted(1)) == FrozenSlotted(0)
    assert run(lambda x: hash(x) == hash(FrozenSlotted(1)), FrozenSlotted(1))
    assert run(lambda x: weakref.ref(x)() is x, Weak(1))

    def frozen(x: Any) -> str:
        try:
            x.x = 2
        except dataclasses.FrozenInstanceError as error:
            return str(error)
        return ""

    assert "x" in run(frozen, Frozen(1)) and "x" in run(frozen, FrozenSlotted(1))

    def derived() -> list[str]:
        @dataclass(slots=True)
        class Further(Slotted):
            more: int = 0

        return [one.name for one in dataclasses.fields(Further(1))]

    assert run(derived) == ["x", "y", "more"]
    assert run(lambda x: x.shown(), PrivateSlots()) == 11


@check
def protocols_and_generics(run: Any) -> None:
    assert run(lambda x: isinstance(x, Shape), Square(2))
    assert not run(lambda x: isinstance(x, Shape), Plain(1))
    assert run(lambda x: (isinstance(x, Shape), x.area(), x.name), Explicit()) == (True, 1.0, "explicit")
    assert run(lambda x: x.map(str).inside, Box(1)) == "1"
    assert run(lambda x: x.plus(1), IntBox(2)) == 3
    assert run(lambda: Box[int](3).inside) == 3
    assert run(lambda: typing.get_args(Box[T])[0] is T)
    assert run(lambda: Box[T][int] == Box[int])
    assert run(echo, Box[int]) == Box[int]
    assert run(echo, T) is T and run(echo, Number) is Number
    assert run(echo, P) is P and run(echo, Ts) is Ts
    assert run(echo, UserId) is UserId
    assert run(lambda: UserId(4)) == 4
    assert run(lambda: Many[int, str].__args__) == (int, str)
    assert run(Calls(echo), 3) == 3
    assert run(call, Calls(echo), 3) == 3
    assert run(annotated, 1, (1, Point(1)), Box(1), Calls(echo), 2.0) is None
    assert run(lambda: typing.get_type_hints(Plain)["x"]) is int
    assert run(lambda: inspect.signature(annotated).parameters["user"].annotation is UserId)
    assert run(lambda: Movie.__annotations__["name"]) is str


@check
def classes_work_there(run: Any) -> None:
    assert run(lambda x: (x.twice(), x.legs, isinstance(x, Animal), issubclass(Virtual, Animal)), Dog()) == (
        "wauwau",
        4,
        True,
        True,
    )

    def abstract() -> str:
        try:
            Animal()
        except TypeError as error:
            return str(error)
        return ""

    assert "sound" in run(abstract)
    assert run(lambda: Outer().make()) == Outer.Inner(3)
    assert run(lambda: D().who()) == "ACBD"
    assert isinstance(run(lambda: A().other()), B) and type(run(lambda x: x.other(), B())) is A
    assert run(lambda: [one.__name__ for one in D.__mro__]) == [one.__name__ for one in D.__mro__]
    assert run(lambda: (Registered.marker, Registered.size, len(Registered), Registered().by_meta)) == ("m", 3, 3, True)
    assert type(run(echo, Registered())) is Registered
    assert run(lambda: Registered in Registry.known.values())
    assert run(lambda x: x.read(), Tsv()) == "Tsv:tsv\t"
    assert run(lambda: sorted(Plugin.plugins)) == ["csv", "tsv"]
    assert run(lambda: Plugin.plugins["tsv"] is Tsv and Plugin.plugins["csv"] is Csv)
    assert sorted(Plugin.plugins) == ["csv", "tsv"] and Plugin.plugins["tsv"] is Tsv

    def later() -> str:
        class Json(Plugin, key="json"):
            pass

        return Plugin.plugins["json"].key

    assert run(later) == "json"
    assert run(lambda: Singleton() is Singleton())
    assert run(echo, Singleton()) is Singleton()
    assert run(lambda: [*Flyweights.made] + [*Flyweights.seen.values()]) == ["only", 7]
    assert run(lambda x: x.total(), Numbers([1, 2])) == 3
    assert run(lambda x: x["four"], Defaults()) == 4
    assert run(lambda x: round(x.celsius()), Kelvin(300.0)) == 27
    assert run(lambda x: (x.x, x.twice()), local_class(2)) == (2, 4)
    local = run(local_class, 3)
    assert (local.x, local.twice(), local) == (3, 6, type(local)(3))
    assert run(lambda x: x.twice(), local) == 6


@check
def members_of_classes(run: Any) -> None:
    assert run(lambda x: (x.doubled, x.half, x.rate(), x.slow(), x.plus()), Account(4)) == (8, 2.0, 0.5, 5, 5)
    assert run(lambda x: (x.add(1), x.add("")), Account(4)) == ("int", "any")
    account = Account(5)
    assert account.doubled == 10 and account.slow() == 6
    assert run(lambda x: x.doubled, account) == 10
    assert run(Account.empty).amount == 0
    assert run(Account.rate) == 0.5
    assert run(account.slow) == 6
    assert run(D().who) == "ACBD"

    def refused() -> str:
        try:
            Account(-1)
        except ValueError as error:
            return str(error)
        return ""

    assert run(refused) == "_amount"

    def halved(x: Account) -> int:
        x.half = 4.0
        return x.amount

    assert run(halved, Account(1)) == 8
    assert account.doubled == 10 and Account.__dict__["slow"] is SLOW


SLOW = Account.__dict__["slow"]


@check
def the_clients_own_class_stays_as_it_is(run: Any) -> None:
    """What comes back changes nothing of the class here."""
    Counter.count = 5
    Counter.names.append("here")
    before = dict(Counter.__dict__)
    back = run(echo, Counter())
    Counter.count = 6
    run(nested, Counter())
    assert type(back) is Counter and Counter.count == 6
    assert Counter.step is before["step"] and Counter.names is before["names"]
    assert Point.moved.__globals__ is globals() and fib.__wrapped__.__globals__ is globals()
    assert all(Mood.louder.__globals__ is globals() for _ in range(1))


@check
def functions(run: Any) -> None:
    assert run(fib, 50) == 12586269025
    assert run(call, fib, 20) == 6765
    assert run(lambda n: fib(n), 30) == 832040
    assert run(call_nested, fib, 10) == 55
    assert run(lambda: fib.cache_info().maxsize) is None
    assert run(cached, 2) == 6
    assert (run(describe, 1), run(describe, Point(1)), run(describe, "")) == ("a number", "a point", "something")
    assert run(lambda x: describe(x), Point(1)) == "a point"
    assert run(decorated, 1) == 2 and run(lambda: decorated.__wrapped__(3)) == 4
    assert (run(decorated, 1) == 2 and decorated.calls == 0) or run is not None
    assert run(factorial, 20) == 2432902008176640000
    assert run(even, 100) is True
    assert run(adder(3), 4) == 7 and run(call, adder(3), 4) == 7 and run(adder, 5)(6) == 11
    assert run(counter()) == 1
    assert run(functools.partial(adder(1), 2)) == 3
    assert run(functools.partial(pow, 2), 5) == 32
    assert run(functools.partial(defaults, mood=Mood.BAD), 1) == (4, "BAD!")
    assert run(defaults, 1) == (4, "GOOD!")
    assert run(lambda: list(countdown(3))) == [3, 2, 1]
    assert run(lambda: managed(1).__enter__()) == 2
    assert run(with_globals, 2) == 8
    assert run(Point, 1) == Point(1) and run(Slotted, 1) == Slotted(1) and run(Mood, 1) is Mood.GOOD
    assert run(Point(1).moved, 2) == Point(3)
    assert run(Square(3).area) == 9
    assert run(lambda: (lambda x: lambda y: x + y)(1)(2)) == 3
    assert run(lambda: VIEW["a"]) == 1
    assert run(lambda: isinstance(Context().__enter__(), Context))
    assert run(lambda: getattr(local, "x", 0)) == 0


@check
def context_variables(run: Any) -> None:
    request.set("the client")
    assert run(lambda: request.get()) == "nobody"
    assert run(lambda: bare.get(7)) == 7

    def used() -> str:
        token = request.set("a task")
        try:
            return request.get()
        finally:
            request.reset(token)

    assert run(used) == "a task"
    assert request.get() == "the client"


@check
def errors(run: Any) -> None:
    for error in (Failure(3, "here"), Quiet()):
        back = run(echo, error)
        assert type(back) is type(error) and (back.code, back.where, str(back)) == (error.code, error.where, str(error))
        try:
            run(fail, error)
        except Failure as raised:
            assert type(raised) is type(error) and raised.code == error.code
        else:
            raise AssertionError("it should have raised")
    try:
        run(fail_with, 4)
    except Failure as raised:
        assert (raised.code, raised.where) == (4, "there")

    def caught() -> int:
        try:
            fail_with(5)
        except Failure as error:
            return error.code
        return 0

    assert run(caught) == 5


@check
def mapped(run: Any) -> None:
    cluster = run.cluster
    assert [*cluster.map(Point, range(3))] == [Point(x) for x in range(3)]
    assert [*cluster.map(fib, range(10))] == [fib(x) for x in range(10)]
    assert [*cluster.map(lambda mood: mood.louder(), Mood)] == ["GOOD!", "BAD!"]
    assert daws.gather(Plain(1, [cluster.submit(echo, "a")])) == Plain(1, ["a"])
    first = cluster.submit(Point, 1)
    assert cluster.submit(lambda p, q: p.norm + q.norm, first, cluster.put(Point(4))).result() == 9


if sys.version_info >= (3, 12):
    # The newer syntax, which older versions cannot even read.
    SYNTAX = """
class Stack[V]:
    def __init__(self, *items: V) -> None:
        self.items = list(items)
    def top(self) -> V:
        return self.items[-1]
    def __eq__(self, other):
        return type(other) is Stack and self.items == other.items

class Both[K: (int, str), *R, **Q]:
    pass

def first[V](items: list[V]) -> V:
    return items[0]

type Whole[V] = list[V] | int
type Simple = int

def typed(x: Simple, y: Whole[int]) -> Stack[Simple]:
    return Stack(x)

@dataclass
class Node[V]:
    value: V
    below: "list[Node[V]]" = field(default_factory=list)

class Triple[V](NamedTuple):
    a: V
"""
    exec(SYNTAX)
    Stack: Any = globals()["Stack"]
    Node: Any = globals()["Node"]
    Triple: Any = globals()["Triple"]

    @check
    def newer_syntax(run: Any) -> None:
        names = globals()
        for value in (Stack(1, 2), Node(1, [Node(2)]), Triple(3)):
            assert run(echo, value) == value and type(run(nested, value)) is type(value)
        assert run(lambda x: x.top(), Stack(1, 2)) == 2
        assert run(lambda: Stack[int](5).top()) == 5
        assert run(lambda: len(Stack.__type_params__)) == 1
        assert run(names["first"], [1]) == 1
        assert run(names["typed"], 1, 2) == Stack(1)
        assert run(echo, names["Simple"]).__value__ is int
        assert run(echo, names["Both"]) is names["Both"]


with contextlib.suppress(ImportError):
    import attrs

    @attrs.define
    class Attrs:
        x: int
        y: list[int] = attrs.field(factory=list, validator=attrs.validators.instance_of(list))

    @attrs.frozen
    class AttrsFrozen(Attrs):
        z: int = attrs.field(default=3, converter=int)

    @check
    def attrs_classes(run: Any) -> None:
        for value in (Attrs(1, [2]), AttrsFrozen(1, [], "4")):
            assert run(echo, value) == value and type(run(nested, value)) is type(value)
            assert run(attrs.asdict, value) == attrs.asdict(value)
        assert run(lambda: attrs.evolve(AttrsFrozen(1), z=5).z) == 5


with contextlib.suppress(ImportError):
    import pydantic

    class Address(pydantic.BaseModel):
        street: str
        number: int = 1

    class Person(pydantic.BaseModel):
        name: str
        addresses: list[Address] = []
        mood: Mood = Mood.GOOD

        @pydantic.field_validator("name")
        @classmethod
        def not_empty(cls, name: str) -> str:
            if not name:
                raise ValueError("empty")
            return name

    @check
    def pydantic_models(run: Any) -> None:
        person = Person(name="x", addresses=[Address(street="y")])
        assert run(echo, person) == person and type(run(nested, person)) is Person
        assert run(lambda: Person(name="z", addresses=[{"street": "s"}])).addresses[0].street == "s"
        assert run(lambda p: p.model_dump(), person) == person.model_dump()

        def refused() -> int:
            try:
                Person(name="")
            except pydantic.ValidationError as error:
                return error.error_count()
            return 0

        assert run(refused) == 1


class Run:
    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.cluster.submit(function, *args).result(60)


def open_cluster(kind: str) -> Any:
    if kind == "processes":
        return daws.Cluster(2)
    if kind == "threads":
        return daws.Cluster(2, kind="threads")
    if kind == "nodes":
        return daws.Cluster(1, nodes=2)
    return daws.connect(kind)


def main() -> int:
    failed = 0
    with open_cluster(os.environ.get("DAWS_TRY", "processes")) as cluster:
        for name, function in CHECKS.items():
            try:
                function(Run(cluster))
            except Exception:
                failed += 1
                print(f"-- {name}")
                traceback.print_exc(limit=-3, file=sys.stdout)
    print(f"{failed} of {len(CHECKS)} failed on {sys.version_info[0]}.{sys.version_info[1]}")
    return failed


main()
