"""Large arguments: each content is written once, as an object that tasks read, and let go of with the last of them.

`submit(fit, X, i)` for many `i` must neither copy X each time nor ever give a task another X than the one that was
submitted. For that, each large buffer among the arguments is looked up:

1. *By identity*: memory of an array whose pages were exchanged with the object's file (see `daws.data.pages`). The
   kernel says which pages the client has written to since; only these are compared. As long as the array lives, its
   object stays, at no cost: it is the array's own memory.
2. *By content*: an object of the same size and with the same sample of its bytes is compared with the whole argument.
   `memcmp` compares it with the object's file, or a digest where that is on other machines. Such an object is let go of
   when the last task that reads it has ended.

Anything else becomes a new object. An array that was changed in place is thus a new content, for the tasks that come.
Views of one array are pieces of memory as any other: each has an object, and they overlap only where views do.
"""

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b
from threading import Lock
from typing import Any
from zlib import crc32

from daws.client.future import Future, collecting
from daws.client.options import Args, Kwargs
from daws.data.buffers import BufferObject
from daws.data.calls import Reference
from daws.data.codec import dumps_call
from daws.data.pages import Pages, address_of, is_same, may_exchange, owner_of
from daws.model.errors import UnavailableError

Buffer = bytes | bytearray | memoryview
_Sample = tuple[int, int]
_Place = tuple[int, int, int]  # whose memory (by identity), from where, how many bytes

SAMPLE_BYTES = 4096


class _Large:
    """One content that tasks read."""

    __slots__ = ("digest", "front", "future", "owner", "pages", "place", "readers", "sample", "stored")

    def __init__(self, future: Future[Any], made: BufferObject, sample: _Sample) -> None:
        self.future = future
        self.front = made.front
        self.stored = made.stored
        self.pages: Pages | None = made.pages
        self.digest = b"" if made.stored is not None else _digest(made.view)
        self.sample = sample
        self.readers = 0
        self.owner: weakref.ref[Any] | None = None
        self.place: _Place | None = None

    def has(self, view: memoryview, address: int) -> bool:
        """Is this its content?"""
        if self.stored is None:
            return _digest(view) == self.digest
        return is_same(address, address_of(self.stored), view.nbytes)

    def is_unchanged(self, address: int, size: int) -> bool:
        """Does memory that shares its pages have its content? Asked for the very memory that it was made from."""
        assert self.pages is not None and self.stored is not None
        low, high = self.pages.low, self.pages.high
        stored = address_of(self.stored)
        own = [(address, low), (high, address + size), *self.pages.changed(low, high)]
        return all(is_same(begin, stored + begin - address, end - begin) for begin, end in own)


class LargeArguments:
    """The large arguments of one client. `put` makes an object. Any thread may call.

    News that no submit asks for (a task has ended, an array has gone) is left for later if another thread has the
    lock. The garbage collector and the thread that brings results must not wait.
    """

    def __init__(
        self,
        put: Callable[[BufferObject], Future[Any]],
        may_exchange: bool = True,
        kept_bytes: int = 0,
        may_wait: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_exchange` if files that `put` writes here may take the place of memory. Objects that no task reads any
        more are kept for the next up to `kept_bytes` (if that is not 0, at least the last of them). `may_wait` says
        whether this thread may wait while another one puts an object in."""
        self._put = put
        self._may_exchange = may_exchange
        self._kept_bytes = kept_bytes
        self._may_wait = may_wait
        self._making = Lock()  # while one buffer is looked up and put in, which may be an upload
        self._lock = Lock()  # for the tables, never for long
        self._by_place: dict[_Place, _Large] = {}
        self._by_sample: dict[_Sample, _Large] = {}
        self._by_task: dict[int, _Large] = {}  # that put it in
        self._reading: dict[int, list[_Large]] = {}  # by task
        self._unread: dict[int, _Large] = {}  # by task that put it in: those that are kept, the oldest first
        self._news: deque[int | _Place] = deque()  # tasks that have ended, memory that has gone

    def __len__(self) -> int:
        return len(self._by_task)

    def share(self, buffer: Buffer) -> Reference | bytearray:
        """Where a task that is being submitted finds this buffer: in which of its inputs, and where in that. It gets
        a copy if no node can take the buffer (yet), or if this thread may not wait and would have to."""
        found = collecting.found
        assert found is not None
        view = memoryview(buffer).cast("B")
        if not self._making.acquire(blocking=self._may_wait()):
            return bytearray(view)
        try:
            large = self._find(view) or self._make(view)
        except UnavailableError:
            return bytearray(view)
        finally:
            self._making.release()
            self._look()
        return found.setdefault(large.future, len(found)), large.front, large.front + view.nbytes

    def pickled(
        self, args: Args, kwargs: Kwargs, check: Callable[[Iterable[Future[Any]]], None]
    ) -> tuple[bytes, dict[Future[Any], int]]:
        """Pickle the arguments of a task. Returns the futures in them as well, after `check` has seen these."""
        found: dict[Future[Any], int] = {}
        collecting.found = found
        try:
            payload = dumps_call(args, kwargs, self.share)
            check(found)
        except BaseException:
            self.discard(found)
            raise
        finally:
            collecting.found = None
        return payload, found

    def submitted(self, task: int, inputs: Iterable[Any]) -> None:
        """This task reads these."""
        tasks = [one.task for one in inputs if one.task in self._by_task]
        if not tasks:
            return
        with self._lock:
            found = self._reading[task] = [self._by_task[one] for one in tasks if one in self._by_task]
            for large in found:
                large.readers += 1
                self._unread.pop(large.future.task, None)
        self._look()

    def ended(self, task: int) -> None:
        """A task has ended, or was not submitted after all."""
        if task in self._reading:
            self._news.append(task)
            self._look()

    def discard(self, inputs: Iterable[Future[Any]]) -> None:
        """A task with these was not submitted: let go of what no other reads."""
        with self._lock:
            for one in inputs:
                large = self._by_task.get(one.task)
                if large is not None:
                    self._let_go_if_unused(large)
        self._look()

    def clear(self) -> None:
        """Nothing is submitted any more."""
        with self._lock:
            for table in (self._by_place, self._by_sample, self._by_task, self._reading, self._unread):
                table.clear()

    def _find(self, view: memoryview) -> _Large | None:
        address, size = address_of(view), view.nbytes
        owner = owner_of(view.obj)
        with self._lock:
            large = self._by_place.get((id(owner), address, size)) if owner is not None else None
            if large is not None and large.owner is not None and large.owner() is owner:
                if large.is_unchanged(address, size):
                    return large
                self._part(large)
        large = self._by_sample.get(_sample(view))
        return large if large is not None and large.has(view, address) else None

    def _make(self, view: memoryview) -> _Large:
        address, size = address_of(view), view.nbytes
        owner = owner_of(view.obj)
        if owner is None or not self._may_exchange or not may_exchange(owner, address, size):
            owner = None
        else:
            with self._lock:
                self._part_overlapping(id(owner), address, size)
        made = BufferObject(view, address if owner is not None else 0)
        large = _Large(self._put(made), made, _sample(view))
        with self._lock:
            self._by_task[large.future.task] = self._by_sample[large.sample] = large
            if large.pages is not None:
                place = large.place = (id(owner), address, size)
                large.owner = weakref.ref(owner, lambda _: self._lost(place))
                self._by_place[place] = large
        return large

    def _part_overlapping(self, owner: int, address: int, size: int) -> None:
        """Memory is about to share its pages with another file: what was made from parts of it cannot tell any more
        what has changed."""
        for (other, begin, length), large in [*self._by_place.items()]:
            if other == owner and begin < address + size and address < begin + length:
                self._part(large)

    def _part(self, large: _Large) -> None:
        """The memory that it was made from has changed, or gone."""
        if large.place is not None and self._by_place.get(large.place) is large:
            del self._by_place[large.place]
        large.pages = large.owner = large.place = None
        self._let_go_if_unused(large)

    def _let_go_if_unused(self, large: _Large) -> None:
        if large.readers or large.pages is not None:
            return
        if self._kept_bytes and large.future.task in self._by_task:
            self._unread.pop(large.future.task, None)
            self._unread[large.future.task] = large
            while len(self._unread) > 1 and sum([one.sample[0] for one in self._unread.values()]) > self._kept_bytes:
                self._forget(self._unread.pop(next(iter(self._unread))))
        else:
            self._forget(large)

    def _forget(self, large: _Large) -> None:
        self._by_task.pop(large.future.task, None)
        if self._by_sample.get(large.sample) is large:
            del self._by_sample[large.sample]

    def _lost(self, place: _Place) -> None:
        self._news.append(place)
        self._look()

    def _look(self) -> None:
        """Take in the news, unless somebody else is about to."""
        while self._news and self._lock.acquire(blocking=False):
            try:
                while self._news:
                    self._hear(self._news.popleft())
            finally:
                self._lock.release()

    def _hear(self, news: "int | _Place") -> None:
        if isinstance(news, int):
            for large in self._reading.pop(news, ()):
                large.readers -= 1
                self._let_go_if_unused(large)
        elif (lost := self._by_place.get(news)) is not None:
            self._part(lost)


def _sample(view: memoryview) -> _Sample:
    """Its size, and a checksum of its beginning, middle and end."""
    middle = view.nbytes // 2
    check = crc32(view[:SAMPLE_BYTES])
    check = crc32(view[middle : middle + SAMPLE_BYTES], check)
    return view.nbytes, crc32(view[-SAMPLE_BYTES:], check)


def _digest(view: memoryview) -> bytes:
    return blake2b(view, digest_size=32).digest()
