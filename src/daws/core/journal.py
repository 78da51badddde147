"""A journal: everything that went into one node, and what came out, so that the run can be looked at again.

The driver notes each step: the time, the batch of events, the effects. Replaying the batches through a fresh node of
the same version must give the same effects byte for byte; if it does not, `replay` says where and how. Nothing here
opens a file: a journal is turned into bytes and back.

A saved journal is a line of text that says what it is and in which format. Then come msgpack values, each with its
length before it: a header, and one (time, events, effects) per step. Events and effects are kept as the bytes they had,
so saving costs no more than a copy. Journals without effects (`effects=False`) are smaller; they keep a digest of them
instead.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

import msgspec
from msgspec import Struct

from daws.core.effects import EffectType
from daws.core.events import EventType
from daws.core.node import NodeConfig, NodeCore
from daws.model.cluster import NodeInfo
from daws.model.errors import StrategyError, UsageError
from daws.strategy import format_strategy, parse_strategy
from daws.strategy.decisions import Strategy

VERSION = 2
"""2: effects that start a run name all its executors."""
MAGIC = b"daws-journal "
LENGTH_BYTES = 4

_encode = msgspec.msgpack.Encoder().encode
_events = msgspec.msgpack.Decoder(list[EventType])
_effects = msgspec.msgpack.Decoder(list[EffectType])


class JournalError(UsageError):
    """A file that is no journal, is cut off, or was written by another version."""


class Header(Struct, frozen=True):
    """All that a node starts with. `strategy` is its written form; seeds may be longer than 64 bits."""

    info: NodeInfo
    strategy: str
    config: NodeConfig
    seed: str
    keeps_effects: bool
    digest: str
    step_count: int


class Step(Struct, frozen=True, array_like=True):
    now_ns: int
    events: bytes
    effects: bytes | None


_header = msgspec.msgpack.Decoder(Header)
_step = msgspec.msgpack.Decoder(Step)


class Journal:
    """The inputs of one node in order, and its effects (or only their digest)."""

    said: str

    def __init__(self, info: NodeInfo, strategy: Strategy, config: NodeConfig, seed: int, effects: bool = True) -> None:
        self.info = info
        self.strategy = strategy
        self.config = config
        self.seed = seed
        self.keeps_effects = effects
        self.steps: list[Step] = []
        self.said = ""  # the digest with which a loaded journal was saved
        self._hash = blake2b(digest_size=16)

    def __repr__(self) -> str:
        return f"<journal of node {self.info.id}: {len(self.steps)} steps, {self.digest}>"

    @property
    def digest(self) -> str:
        """Two journals with the same digest did the same at the same times."""
        return self._hash.hexdigest()

    def note(self, now_ns: int, batch: Sequence[EventType], out: Sequence[EffectType]) -> None:
        """Write down one step, after it was made."""
        effects = _encode(out)
        self._hash.update(_encode((now_ns, len(effects))) + effects)
        self.steps.append(Step(now_ns, _encode(batch), effects if self.keeps_effects else None))

    def inputs(self) -> Iterator[tuple[int, list[EventType]]]:
        for step in self.steps:
            yield step.now_ns, _events.decode(step.events)

    def outputs(self) -> Iterator[list[EffectType]]:
        """The effects step by step; UsageError if only their digest was kept."""
        for step in self.steps:
            if step.effects is None:
                raise UsageError("this journal kept no effects, only their digest")
            yield _effects.decode(step.effects)

    # -- as bytes ---------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """StrategyError in one line if an answer of the strategy is not registered: it could not be read back."""
        header = Header(
            self.info,
            format_strategy(self.strategy),
            self.config,
            str(self.seed),
            self.keeps_effects,
            self.digest,
            len(self.steps),
        )
        parts = [MAGIC + b"%d\n" % VERSION]
        for value in (header, *self.steps):
            written = _encode(value)
            parts += (len(written).to_bytes(LENGTH_BYTES, "big"), written)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Journal":
        """JournalError in one line if these bytes are not a whole journal of this version."""
        first, newline, _ = data[:64].partition(b"\n")
        if not newline or not first.startswith(MAGIC):
            raise JournalError("this is no journal: it does not begin with 'daws-journal'")
        version = first[len(MAGIC) :].decode("ascii", "replace")
        if version != str(VERSION):
            raise JournalError(f"this journal has format {version!r}; this version of daws reads format {VERSION}")
        parts = _split(data, len(first) + 1)
        header = _read(_header, next(parts, b""), "its header")
        try:
            strategy = parse_strategy(header.strategy)
            seed = int(header.seed)
        except (StrategyError, ValueError) as error:
            raise JournalError(f"this journal cannot be replayed here: {_line(error)}") from error
        journal = cls(header.info, strategy, header.config, seed, header.keeps_effects)
        for number, part in enumerate(parts):
            step = _read(_step, part, f"step {number}")
            _read(_events, step.events, f"the events of step {number}")
            if step.effects is not None:
                _read(_effects, step.effects, f"the effects of step {number}")
                journal._hash.update(_encode((step.now_ns, len(step.effects))) + step.effects)
            journal.steps.append(step)
        if len(journal.steps) != header.step_count:
            raise JournalError(f"this journal is cut off after {len(journal.steps)} of {header.step_count} steps")
        if header.keeps_effects and journal.digest != header.digest:
            raise JournalError("this journal is damaged: its effects do not have the digest that it says they have")
        journal.said = header.digest
        return journal


def _split(data: bytes, at: int) -> Iterator[bytes]:
    while at < len(data):
        low = at + LENGTH_BYTES
        high = low + int.from_bytes(data[at:low], "big")
        if low > len(data) or high > len(data):
            raise JournalError(f"this journal is cut off: {len(data)} bytes where at least {max(low, high)} are needed")
        yield data[low:high]
        at = high


def _read(decoder: Any, data: bytes, what: str) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JournalError(f"this journal is damaged: {what} cannot be read ({_line(error)})") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


class Difference(Struct, frozen=True):
    """The first step in which a replay did something else."""

    step: int
    now_ns: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n  ".join((f"step {self.step} at {self.now_ns} ns went differently:", *self.lines))


def replay(journal: Journal) -> Difference | None:
    """Feed everything to a fresh node; None if it does the same again, byte for byte."""
    core = NodeCore(journal.info, journal.strategy, journal.config, journal.seed)
    digest = blake2b(digest_size=16)
    out: list[EffectType] = []
    for number, (step, (now_ns, events)) in enumerate(zip(journal.steps, journal.inputs(), strict=True)):
        core.step(now_ns, events, out)
        effects = _encode(out)
        digest.update(_encode((now_ns, len(effects))) + effects)
        if step.effects is not None and step.effects != effects:
            return Difference(number, now_ns, _compare(events, _effects.decode(step.effects), out))
        out.clear()
    if digest.hexdigest() != (journal.said or journal.digest):
        lines = ("somewhere: only the digest of the effects was kept, and it differs",)
        return Difference(len(journal.steps) - 1, core.now_ns, lines)
    return None


def _compare(events: list[EventType], then: list[EffectType], now: list[EffectType]) -> tuple[str, ...]:
    lines = [f"given {event}" for event in events]
    for number, (one, other) in enumerate(zip_longest(then, now)):
        if one != other:
            return (
                *lines,
                f"effect {number} of {len(then)} was {'nothing' if one is None else one}",
                f"effect {number} of {len(now)} is now {'nothing' if other is None else other}",
            )
    return (*lines, "the effects are equal, but not their bytes")
