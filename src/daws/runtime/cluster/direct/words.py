"""What clients and nodes say to each other where no server of a store stands between them."""

import time

from msgspec import msgpack

from daws.core.events import NewStrategy
from daws.runtime.cluster.words import Count, Counted, Depart, Ends, Learnt, Printed, Ran, Word
from daws.store.valkey.told import Runs, Seal
from daws.wire.ends import Outcome
from daws.wire.messages import CancelOrder, CancelTaken, LetGo, NewTasks, Submission, SubmissionTaken

EPOCH_S = 1_767_225_600
"""The first of January 2026."""
WHO_BITS = 16


class Here(Word, frozen=True):
    """A client says whose it is: what its tasks print, and how they end, is told on this link. With `runs` and
    `decisions` so are each run and each decision about its tasks."""

    session: int
    runs: bool = False
    decisions: bool = False


class Fresh(Word, frozen=True):
    """Tasks that their client has just written into the store, and under which stamps."""

    submission: Submission
    stamps: Runs


class Sealed(Word, frozen=True):
    """Tasks that have ended well, and the stamps of their cells before and after."""

    outcomes: list[Outcome]
    seal: Seal


ToNode = Here | Fresh | Submission | NewTasks | LetGo | CancelOrder | Depart | NewStrategy | Count
ToClient = Ends | Sealed | Printed | Ran | Learnt | Counted | CancelTaken | SubmissionTaken

TO_NODE: msgpack.Decoder[list[ToNode]] = msgpack.Decoder(list[ToNode])
TO_CLIENT: msgpack.Decoder[list[ToClient]] = msgpack.Decoder(list[ToClient])


class Batches:
    """Numbers that nobody else gives to a batch of tasks, later ones being higher: `who` is a session, or a node."""

    def __init__(self, who: int, is_node: bool) -> None:
        self._who = who << 1 & (1 << WHO_BITS) - 1 | is_node
        self._last_us = 0

    def __call__(self) -> int:
        self._last_us = max(self._last_us + 1, time.time_ns() // 1000 - EPOCH_S * 1_000_000)
        return self._last_us << WHO_BITS | self._who
