"""Ready queues: what is to run here, in the order that the strategy wants.

First come first served for tasks with the neutral key 0, a heap for all others, one heap per label for tasks with a
context. An executor with several labels compares the heads of their heaps, unless it prefers some of its labels.

Smaller keys leave first; equal keys leave in the order in which they came (keys of heaps end in a sequence number, so
no two entries ever compare their tasks). A task with several labels stands in each of their heaps and is skipped where
it comes up a second time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count, islice
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

from daws.model.context import ANY, AnyOf, Context, Wish, labels, rank_of
from daws.model.task import Needs, Ready
from daws.strategy.decisions import Match

if TYPE_CHECKING:
    from daws.core.node import NodeCore

Entry = tuple[float, int, Ready]
"""A task in a heap: (key, number, task). It stays a bare tuple, because heaps compare entries all the time, and tuples
are compared in C."""
Offered = tuple[Context | None, ...]
"""The contexts of executors."""
PLAIN: Offered = (None,)
TAKEN_MAX = 64
SORTED_MAX = 512
"""The longest heap that is always sorted to cut its end. A longer one is sorted only to cut a good part of it."""


class ReadyQueue:
    """The ready tasks of one kind, shared or dedicated. An empty queue holds no containers, because most nodes of a
    large cluster have nothing to do for most of the time."""

    __slots__ = ("alike", "count", "doubles", "fifo", "heap", "labelled", "match", "plain", "taken")

    def __init__(self, match: Match) -> None:
        self.match = match
        self.count = 0
        self.plain = False  # all tasks are plain and stand in `fifo` (says nothing about an empty queue)
        self.fifo: deque[Ready] | None = None  # tasks with key 0 that came before all that have a context
        self.alike: int | None = None  # all of those are new tasks of this kind about which there is no more to say
        self.heap: list[Entry] | None = None  # all other tasks without a context
        self.labelled: dict[str, list[Entry]] | None = None
        # Tasks that stand in several heaps, by sequence number: entries that are left, and which were taken already.
        self.doubles: dict[int, int] | None = None
        self.taken: set[int] | None = None

    def push(self, key: float, sequence: int, ready: Ready, plain: bool = False) -> None:
        """Add a task. `plain`: see `daws.core.plain`."""
        self.plain = plain and not key and self.labelled is None and (self.plain or not self.count)
        self.count += 1
        needs = ready.spec.needs
        if needs is not None and needs.context is not None:
            self._push_labelled(key, sequence, ready, needs.context)
        elif not key and self.labelled is None:
            if self.fifo is None:
                self.fifo = deque()
            self.fifo.append(ready)
            self.alike = None
        elif self.heap is None:
            self.heap = [(key, sequence, ready)]
        else:
            heappush(self.heap, (key, sequence, ready))

    def push_plain(self, tasks: list[Ready], alike: int | None = None) -> None:
        """Add plain tasks with the neutral key 0. `alike` is their kind, if only numbers and arguments differ."""
        self.plain = self.plain or not self.count
        self.count += len(tasks)
        if self.fifo is None:
            self.fifo = deque()
        self.alike = alike if not self.fifo or self.alike == alike else None
        self.fifo.extend(tasks)

    def _push_labelled(self, key: float, sequence: int, ready: Ready, context: Context) -> None:
        names = tuple(dict.fromkeys(labels(context)))
        if self.labelled is None:
            self.labelled = {}
        if len(names) > 1:
            if self.doubles is None:
                self.doubles, self.taken = {}, set()
            self.doubles[sequence] = len(names)
        for name in names:
            heappush(self.labelled.setdefault(name, []), (key, sequence, ready))

    def pop(self, context: Context | None) -> Ready | None:
        """The first task that an executor with this context may run."""
        if context is not None or self.labelled is not None:
            return self._pop_labelled(context)
        heap, fifo = self.heap, self.fifo  # as `pop_head`, which most runs would call for nothing else
        if heap and (not fifo or heap[0][0] < 0):
            self.count -= 1
            return heappop(heap)[2]
        if fifo:
            self.count -= 1
            return fifo.popleft()
        return None

    def _pop_labelled(self, context: Context | None) -> Ready | None:
        """Label by label for an executor that prefers some, else whatever comes first under any of its labels."""
        for tier in _tiers((context,)):
            found = self._pop_first(tier)
            if found is not None:
                return found
        return None

    def _pop_first(self, offered: Offered) -> Ready | None:
        """The heads of all heaps that these contexts open are compared."""
        found: Entry | None = None
        home: list[Entry] = []
        names = _names(offered)
        for name in names:
            heap = self.labelled.get(name) if self.labelled is not None else None
            if heap and (found is None or heap[0] < found):
                entry = self._pop_match(heap, offered)
                if entry is not None and (found is None or entry < found):
                    if found is not None:
                        heappush(home, found)
                    found, home = entry, heap
                elif entry is not None:
                    heappush(heap, entry)
        if ANY in names and self._plain_comes_before(found):
            if found is not None:
                heappush(home, found)
            return self.pop_head()
        if found is None:
            return None
        self._take(found)
        return found[2]

    def _plain_comes_before(self, entry: Entry | None) -> bool:
        heap, fifo = self.heap, self.fifo
        if entry is None:
            return bool(heap or fifo)
        return bool((fifo and entry[0] >= 0) or (heap and heap[0] < entry))

    def pop_oldest(self) -> Ready:
        """Take out the first task of `fifo`; there is one."""
        self.count -= 1
        return self.fifo.popleft()  # type: ignore[union-attr]

    def oldest(self) -> Ready:
        """Show the task that `pop_oldest` would take."""
        return self.fifo[0]  # type: ignore[index]

    def begins_with(self, kind: int) -> bool:
        """Are the first two tasks of `fifo` of this kind? (If there is only one, is that one?)"""
        fifo = self.fifo
        assert fifo
        return fifo[0].spec.kind == kind and (len(fifo) < 2 or fifo[1].spec.kind == kind)

    def cut_kind(self, kind: int, most: int) -> list[Ready]:
        """Take out the first tasks of `fifo`, up to the first one of another kind."""
        fifo = self.fifo
        assert fifo is not None
        if self.alike is None:
            most = next((at for at, one in enumerate(islice(fifo, most)) if one.spec.kind != kind), most)
        return self.cut_oldest(most)

    def cut_oldest(self, amount: int) -> list[Ready]:
        """Take out the first `amount` tasks of `fifo`; there are as many."""
        self.count -= amount
        popleft = self.fifo.popleft  # type: ignore[union-attr]
        return [popleft() for _ in range(amount)]

    def peek(self) -> Ready | None:
        """The first of the tasks that need no particular executor."""
        heap, fifo = self.heap, self.fifo
        if heap and (heap[0][0] < 0 or not fifo):
            return heap[0][2]
        return fifo[0] if fifo else None

    def first_key(self) -> float:
        """The key of what `peek` shows; infinite if it shows nothing."""
        heap, fifo = self.heap, self.fifo
        if heap and (heap[0][0] < 0 or not fifo):
            return heap[0][0]
        return 0.0 if fifo else inf

    def pop_head(self) -> Ready | None:
        """Take out what `peek` shows."""
        heap, fifo = self.heap, self.fifo
        if heap and (heap[0][0] < 0 or not fifo):
            self.count -= 1
            return heappop(heap)[2]
        if fifo:
            self.count -= 1
            return fifo.popleft()
        return None

    def _pop_match(self, heap: list[Entry], offered: Offered) -> Entry | None:
        """Take the first entry that these contexts may run out of its heap; it still counts."""
        passed: list[Entry] = []
        found: Entry | None = None
        while heap:
            entry = heappop(heap)
            if self.taken and entry[1] in self.taken:
                self._forget_one(entry[1])
                continue
            if self._fits(entry, offered):
                found = entry
                break
            passed.append(entry)  # same label, but its rank is out of this executor's range
        for entry in passed:
            heappush(heap, entry)
        return found

    def _fits(self, entry: Entry, offered: Offered) -> bool:
        needs = entry[2].spec.needs
        wanted = needs.context if needs is not None else None
        return any(self.match.preference(wanted, context) >= 0 for context in offered)

    def _take(self, entry: Entry) -> None:
        """Count a task as taken whose entry was taken out of one heap. Its entries in other heaps are skipped later."""
        self.count -= 1
        if self.doubles is not None and entry[1] in self.doubles:
            assert self.taken is not None
            self.taken.add(entry[1])
            self._forget_one(entry[1])
            if len(self.taken) > TAKEN_MAX + self.count:
                self._purge()

    def _forget_one(self, sequence: int) -> None:
        assert self.doubles is not None and self.taken is not None
        self.doubles[sequence] -= 1
        if not self.doubles[sequence]:
            del self.doubles[sequence]
            self.taken.discard(sequence)

    def _purge(self) -> None:
        """Remove the entries of tasks that were taken. Entries under labels that no executor here offers would stay for
        ever."""
        assert self.labelled is not None and self.taken is not None and self.doubles is not None
        for heap in self.labelled.values():
            heap[:] = [entry for entry in heap if entry[1] not in self.taken]
            heapify(heap)
        for sequence in self.taken:
            del self.doubles[sequence]
        self.taken.clear()

    def cut(self, amount: int, from_head: bool, contexts: Offered | None) -> list[Ready]:
        """Up to `amount` tasks to hand over, for executors with any of these contexts (None: plain ones).

        One executor's priority list counts; several executors are equally good."""
        found: list[Ready] = []
        for tier in _tiers(contexts if contexts is not None else PLAIN):
            if from_head:
                while len(found) < amount and (ready := self._pop_first(tier)) is not None:
                    found.append(ready)
            else:
                oldest, entries = self._cut_last(amount - len(found), tier)
                found += oldest
                found += [entry[2] for entry in entries]
        return found

    def select(
        self,
        amount: int,
        from_head: bool,
        contexts: Offered | None,
        wish: Wish,
        able: Callable[[Needs | None], bool],
    ) -> list[Ready]:
        """Cut tasks by rank, within a range of ranks, and only those that `able` allows. (A search through all
        tasks.)"""
        offered = contexts if contexts is not None else PLAIN
        found: list[Entry] = []
        for entry in self._entries():
            needs = entry[2].spec.needs
            if self._fits(entry, offered) and wish.low <= _rank(entry) <= wish.high and able(needs):
                found.append(entry)
        if wish.by == "any":
            found.sort(key=itemgetter(1))
        else:
            found.sort(key=itemgetter(0, 1), reverse=not from_head)
            if wish.by != "order":
                found.sort(key=_rank, reverse=wish.by == "biggest")  # those of equal rank stay in their order
        loot = [ready for _, _, ready in found[:amount]]
        self.take_out(loot)
        return loot

    def take_best(
        self,
        window: int,
        contexts: Offered | None,
        able: Callable[[Needs | None], bool],
        worth: Callable[[Ready], float],
    ) -> Ready | None:
        """The task that is worth most, of the first `window` that these contexts may run and that `able` allows; none
        if all are worth less than nothing. (The search ends with the first that is worth infinitely much.)"""
        best, most, at = None, 0.0, -1
        offered = contexts if contexts is not None else PLAIN
        plain = not (self.heap or self.labelled)
        first = islice(self.fifo or (), window) if plain else self._first(window, offered)
        for index, ready in enumerate(first if not plain or ANY in _names(offered) else ()):
            value = worth(ready) if able(ready.spec.needs) else -1.0
            if value > most or (best is None and not value):
                best, most, at = ready, value, index
                if value == inf:
                    break
        if best is None:
            return None
        if plain:
            assert self.fifo is not None
            self.count -= 1
            del self.fifo[at]
        else:
            self.take_out([best])
        return best

    def _first(self, window: int, offered: Offered) -> list[Ready]:
        """The tasks that would run first, among those that these contexts may run. (A search through all tasks.)"""
        entries = sorted([entry for entry in self._entries() if self._fits(entry, offered)], key=itemgetter(0, 1))
        return [ready for _, _, ready in entries[:window]]

    def _entries(self) -> list[Entry]:
        """Each task once, with its key and its number; those that came first come, first served are the oldest."""
        fifo = self.fifo or ()
        entries: list[Entry] = [(0.0, number, ready) for number, ready in enumerate(fifo, -len(fifo))]
        heaps = [self.heap or [], *(self.labelled or {}).values()]
        unique = {entry[1]: entry for heap in heaps for entry in heap if not (self.taken and entry[1] in self.taken)}
        return [*entries, *unique.values()]

    def oldest_first(self) -> list[Ready]:
        """Every task, in the order in which they came."""
        return [ready for _, _, ready in sorted(self._entries(), key=itemgetter(1))]

    def pour_into(self, other: ReadyQueue, amount: int) -> None:
        """Move up to `amount` tasks that would run last, whatever they need, with the keys that they have."""
        oldest, entries = self._cut_last(amount, None)
        if oldest:
            other.push_plain(oldest)
        other.plain = False
        if self.labelled is None and entries:
            other.count += len(entries)
            if other.heap:
                for entry in entries:
                    heappush(other.heap, entry)
            else:
                heapify(entries)
                other.heap = entries
            return
        for key, sequence, ready in entries:
            other.push(key, sequence, ready)

    def _cut_last(self, amount: int, offered: Offered | None) -> tuple[list[Ready], list[Entry]]:
        """The tasks that would run last, among those that these contexts may run (None: all): from `fifo`, and from the
        heaps.

        The last entry of a heap is a leaf: what stays is still a heap. Where it is the last in order too, see `_sort`.
        """
        if self.labelled is None and (offered is None or ANY in _names(offered)):
            return self._cut_last_plain(amount)
        names = _names(offered) if offered is not None else dict.fromkeys((ANY, *(self.labelled or ())))
        heaps = [heap for name in names if (heap := (self.labelled or {}).get(name))]
        fifo = self.fifo if ANY in names else None
        if ANY in names and self.heap:
            heaps.append(self.heap)
        for heap in heaps:
            _sort(heap, amount)
        oldest: list[Ready] = []
        loot: list[Entry] = []
        passed: list[tuple[list[Entry], Entry]] = []
        while len(oldest) + len(loot) < amount:
            heap = max(filter(None, heaps), key=itemgetter(-1), default=None)
            if fifo and (heap is None or heap[-1][0] < 0):
                self.count -= 1
                oldest.append(fifo.pop())
            elif heap is None:
                break
            else:
                entry = heap.pop()
                if self.taken and entry[1] in self.taken:
                    self._forget_one(entry[1])
                elif offered is None or self._fits(entry, offered):
                    self._take(entry)
                    loot.append(entry)
                else:
                    passed.append((heap, entry))
        for heap, entry in passed:
            heappush(heap, entry)
        oldest.reverse()
        loot.reverse()
        return oldest, loot

    def _cut_last_plain(self, amount: int) -> tuple[list[Ready], list[Entry]]:
        """Do what `_cut_last` does where no task has a context."""
        oldest: list[Ready] = []
        loot: list[Entry] = []
        fifo, heap = self.fifo, self.heap
        amount = min(amount, self.count)
        self.count -= amount
        if heap:
            _sort(heap, amount)
        if fifo:
            while heap and amount > 0 and heap[-1][0] > 0:
                loot.append(heap.pop())
                amount -= 1
            loot.reverse()
            oldest = [fifo.pop() for _ in range(min(amount, len(fifo)))]
            oldest.reverse()
            amount -= len(oldest)
        if heap and amount > 0:
            keep = len(heap) - amount
            loot = heap[keep:] + loot
            del heap[keep:]
        return oldest, loot

    def take_task(self, task: int) -> Ready | None:
        """Take one task out, wherever it stands. (A long search, for rare cases.)"""
        found = next((one for one in self.all() if one.spec.id == task), None)
        if found is None:
            return None
        self.take_out([found])
        return found

    def take_out(self, tasks: list[Ready]) -> None:
        """Take these very tasks out of all containers."""
        if not tasks:
            return
        gone = set(map(id, tasks))
        self.count -= len(gone)
        if self.fifo:
            self.fifo = deque([one for one in self.fifo if id(one) not in gone])
        for heap in (self.heap or [], *(self.labelled or {}).values()):
            for entry in heap:
                if id(entry[2]) in gone and self.doubles is not None:
                    self.doubles.pop(entry[1], None)
            heap[:] = [entry for entry in heap if id(entry[2]) not in gone]
            heapify(heap)

    def all(self) -> list[Ready]:
        """Return every task in the queue, in no particular order."""
        heaps = [self.heap or [], *(self.labelled or {}).values()]
        unique = {entry[1]: entry[2] for heap in heaps for entry in heap}
        queued = [ready for sequence, ready in unique.items() if not (self.taken and sequence in self.taken)]
        return [*queued, *(self.fifo or ())]


def _sort(heap: list[Entry], amount: int) -> None:
    """Sort a heap if that pays. A sorted list is a heap whose last entries are the last in order. Sorting would cost
    too much for a small part of a long heap. There, leaves are taken instead: before each leaf come at least as many
    others as the heap is deep."""
    if len(heap) <= SORTED_MAX or 4 * amount >= len(heap):
        heap.sort()


def _names(offered: Offered) -> dict[str, None]:
    return dict.fromkeys([name for context in offered for name in labels(context)])


def _tiers(offered: Offered) -> list[Offered]:
    """The contexts that executors offer, in parts of which one is emptied after the other. Only a priority list has
    several."""
    if len(offered) == 1 and isinstance(offered[0], AnyOf) and offered[0].ordered:
        return [(option,) for option in offered[0].options]
    return [offered]


def _rank(entry: Entry) -> int:
    needs = entry[2].spec.needs
    return 0 if needs is None else rank_of(needs.context)


class _NoTasks(ReadyQueue):
    """An empty queue, shared by all nodes whose queue has never held a task. A node that queues a task creates its own
    queue first."""

    __slots__ = ()

    def push(self, key: float, sequence: int, ready: Ready, plain: bool = False) -> None:
        raise AssertionError("this queue belongs to nobody")

    def push_plain(self, tasks: list[Ready], alike: int | None = None) -> None:
        raise AssertionError("this queue belongs to nobody")


NO_TASKS: ReadyQueue = _NoTasks(None)  # type: ignore[arg-type]


class Queues:
    """The ready tasks of a node that do not run: in its two queues, or beside them."""

    __slots__ = ("dedicated", "doomed", "next_sequence", "shared", "stranded", "waiting_since_ns")

    def __init__(self) -> None:
        self.shared = NO_TASKS  # others may steal them
        self.dedicated = NO_TASKS  # they are to run here
        # A number for a task that is queued: those with equal keys leave in the order in which they came.
        self.next_sequence: Callable[[], int] = count(1).__next__
        self.doomed: dict[int, int] | None = None  # by task that was called off: up to which attempt
        self.stranded: list[Ready] | None = None  # tasks that no member can run
        self.waiting_since_ns = 0  # when a task was last put into empty queues

    def note_waiting(self, now_ns: int) -> None:
        """A task is about to be queued."""
        if not (self.shared.count or self.dedicated.count):
            self.waiting_since_ns = now_ns

    def forget_all(self) -> None:
        """All tasks were taken out of both queues."""
        self.shared = self.dedicated = NO_TASKS

    def strand(self, ready: Ready) -> None:
        """No member can run this task: it waits beside the queues until one joins."""
        if self.stranded is None:
            self.stranded = []
        self.stranded.append(ready)

    def take_stranded(self) -> list[Ready]:
        stranded, self.stranded = self.stranded or [], None
        return stranded

    def doom(self, task: int, attempt: int) -> None:
        """A task was called off, and may stand in a queue: it is not started when it comes up."""
        if self.doomed is None:
            self.doomed = {}
        self.doomed[task] = max(attempt, self.doomed.get(task, 0))

    def forgive(self, task: int, attempt: int) -> None:
        """Only attempts up to this one are called off."""
        if self.doomed and task in self.doomed:
            self.doomed[task] = min(self.doomed[task], attempt)

    def forget_doomed(self) -> None:
        """The queues are empty, so nothing of what was called off can be in them."""
        self.doomed = None


NO_QUEUES = Queues()
"""Shared by all nodes that have never had a ready task. `own_queues` creates a node's own."""


def own_queues(core: NodeCore) -> Queues:
    """The queues of this node, to change something."""
    if core.queues is NO_QUEUES:
        core.queues = Queues()
    return core.queues


def shared_queue(core: NodeCore) -> ReadyQueue:
    """The queue from which others may steal, to put something into it."""
    queues = core.queues
    if queues is NO_QUEUES:
        queues = own_queues(core)
    if queues.shared is NO_TASKS:
        queues.shared = ReadyQueue(core.strategy.match)
    return queues.shared


def dedicated_queue(core: NodeCore) -> ReadyQueue:
    """The queue of tasks that are to run here, to put something into it."""
    queues = core.queues
    if queues is NO_QUEUES:
        queues = own_queues(core)
    if queues.dedicated is NO_TASKS:
        queues.dedicated = ReadyQueue(core.strategy.match)
    return queues.dedicated


def next_queue(core: NodeCore) -> ReadyQueue:
    """Where the next task is taken from: what is dedicated to this node comes first, unless the order counts across."""
    dedicated, shared = core.queues.dedicated, core.queues.shared
    if not dedicated.count:
        return shared
    if shared.count and core.one_line and shared.first_key() < dedicated.first_key():
        return shared
    return dedicated


def is_doomed(core: NodeCore, ready: Ready) -> bool:
    """Was this run called off while it stood in a queue?"""
    assert core.queues.doomed is not None
    attempt = core.queues.doomed.get(ready.spec.id)
    return attempt is not None and ready.attempt <= attempt
