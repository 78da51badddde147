"""Ready queues: what is to run here, in the order that the strategy wants.

First come first served for tasks with the neutral key 0, a heap for all others, one heap per label for tasks with a
context.

Smaller keys leave first; equal keys leave in the order in which they came (keys of heaps end in a sequence number, so
no two entries ever compare their tasks). A task with several labels stands in each of their heaps and is skipped where
it comes up a second time.
"""

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from operator import itemgetter

from daws.model.context import ANY, Context, Wish, labels, rank_of
from daws.model.task import Needs, Ready
from daws.strategy.decisions import Match

Entry = tuple[float, int, Ready]
TAKEN_MAX = 64


class ReadyQueue:
    """An empty queue holds no containers: most nodes of a large cluster have nothing to do for most of the time."""

    __slots__ = ("count", "doubles", "fifo", "heap", "labelled", "match", "taken")

    def __init__(self, match: Match) -> None:
        self.match = match
        self.count = 0
        self.fifo: deque[Ready] | None = None  # plain tasks with key 0
        self.heap: list[Entry] | None = None  # plain tasks with any other key
        self.labelled: dict[str, list[Entry]] | None = None
        # Tasks that stand in several heaps, by sequence number: entries that are left, and which were taken already.
        self.doubles: dict[int, int] | None = None
        self.taken: set[int] | None = None

    def push(self, key: float, sequence: int, ready: Ready) -> None:
        self.count += 1
        needs = ready.spec.needs
        if needs is not None and needs.context is not None:
            self._push_labelled(key, sequence, ready, needs.context)
        elif not key:
            if self.fifo is None:
                self.fifo = deque()
            self.fifo.append(ready)
        elif self.heap is None:
            self.heap = [(key, sequence, ready)]
        else:
            heappush(self.heap, (key, sequence, ready))

    def push_plain(self, tasks: list[Ready]) -> None:
        """Tasks that need no particular executor and have the neutral key 0."""
        self.count += len(tasks)
        if self.fifo is None:
            self.fifo = deque()
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
        """The first task that an executor with this context may run, in the order of its labels."""
        if context is None and self.labelled is None:
            heap, fifo = self.heap, self.fifo
            if heap and (not fifo or heap[0][0] < 0):
                self.count -= 1
                return heappop(heap)[2]
            if fifo:
                self.count -= 1
                return fifo.popleft()
            return None
        for name in (ANY,) if context is None else labels(context):
            if name == ANY:
                found = self._pop_plain()
                if found is not None:
                    return found
            heap = self.labelled.get(name) if self.labelled is not None else None
            if heap:
                found = self._pop_match(heap, context)
                if found is not None:
                    return found
        return None

    def _pop_plain(self) -> Ready | None:
        heap, fifo = self.heap, self.fifo
        if heap and (heap[0][0] < 0 or not fifo):
            self.count -= 1
            return heappop(heap)[2]
        if fifo:
            self.count -= 1
            return fifo.popleft()
        return None

    def peek(self) -> Ready | None:
        """The first of the tasks that need no particular executor."""
        heap, fifo = self.heap, self.fifo
        if heap and (heap[0][0] < 0 or not fifo):
            return heap[0][2]
        return fifo[0] if fifo else None

    def pop_head(self) -> None:
        """Take out what `peek` has just shown."""
        self._pop_plain()

    def _pop_match(self, heap: list[Entry], context: Context | None) -> Ready | None:
        passed: list[Entry] = []
        found: Entry | None = None
        while heap:
            entry = heappop(heap)
            if self.taken and entry[1] in self.taken:
                self._forget_one(entry[1])
                continue
            if self._fits(entry, context):
                found = entry
                break
            passed.append(entry)  # same label, but its rank is out of this executor's range
        for entry in passed:
            heappush(heap, entry)
        if found is None:
            return None
        self._take(found)
        return found[2]

    def _fits(self, entry: Entry, context: Context | None) -> bool:
        needs = entry[2].spec.needs
        return self.match.preference(needs.context if needs is not None else None, context) >= 0

    def _take(self, entry: Entry) -> None:
        """This entry was taken out of its heap: those of the same task in other heaps count no more."""
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
        """Entries under labels that no executor here offers would stay for ever: throw out those that were taken."""
        assert self.labelled is not None and self.taken is not None and self.doubles is not None
        for heap in self.labelled.values():
            heap[:] = [entry for entry in heap if entry[1] not in self.taken]
            heapify(heap)
        for sequence in self.taken:
            del self.doubles[sequence]
        self.taken.clear()

    def cut(self, amount: int, from_head: bool, contexts: tuple[Context | None, ...] | None) -> list[Ready]:
        """Up to `amount` tasks to hand over, for executors with any of these contexts (None: plain ones)."""
        found: list[Ready] = []
        for context in contexts if contexts is not None else (None,):
            if from_head:
                while len(found) < amount and (ready := self.pop(context)) is not None:
                    found.append(ready)
                continue
            for name in (ANY,) if context is None else labels(context):
                if name == ANY:
                    found += self._cut_tail(amount - len(found))
                heap = self.labelled.get(name) if self.labelled is not None else None
                if heap:
                    cut = self._cut_labelled(heap, amount - len(found), context, False)
                    found += [entry[2] for entry in cut]
        return found

    def select(
        self,
        amount: int,
        from_head: bool,
        contexts: tuple[Context | None, ...] | None,
        wish: Wish,
        able: Callable[[Needs | None], bool],
    ) -> list[Ready]:
        """As `cut`, but by rank, within a range of ranks, and only what `able` allows. (A search through all tasks.)"""
        offered = contexts if contexts is not None else (None,)
        found: list[Entry] = []
        for entry in self._entries():
            needs = entry[2].spec.needs
            fits = any(self._fits(entry, context) for context in offered)
            if fits and wish.low <= _rank(entry) <= wish.high and able(needs):
                found.append(entry)
        if wish.by == "any":
            found.sort(key=itemgetter(1))
        else:
            found.sort(key=itemgetter(0, 1), reverse=not from_head)
            if wish.by != "order":
                found.sort(key=_rank, reverse=wish.by == "biggest")  # those of equal rank stay in their order
        loot = [ready for _, _, ready in found[:amount]]
        self._drop(loot)
        return loot

    def _entries(self) -> list[Entry]:
        """Each task once, with its key and its number; those that came first come, first served are the oldest."""
        fifo = self.fifo or ()
        entries: list[Entry] = [(0.0, number, ready) for number, ready in enumerate(fifo, -len(fifo))]
        heaps = [self.heap or [], *(self.labelled or {}).values()]
        unique = {entry[1]: entry for heap in heaps for entry in heap if not (self.taken and entry[1] in self.taken)}
        return [*entries, *unique.values()]

    def pour_into(self, other: "ReadyQueue", amount: int) -> None:
        """Move up to `amount` tasks that would run last, whatever they need, with the keys that they have."""
        fifo, heap = self.fifo, self.heap
        if fifo and amount > 0:
            tasks = [fifo.pop() for _ in range(min(amount, len(fifo)))]
            tasks.reverse()
            self.count -= len(tasks)
            amount -= len(tasks)
            other.push_plain(tasks)
        if heap and amount > 0:
            keep = max(0, len(heap) - amount)
            entries = heap[keep:]
            del heap[keep:]
            self.count -= len(entries)
            amount -= len(entries)
            other.count += len(entries)
            if other.heap:
                for entry in entries:
                    heappush(other.heap, entry)
            else:
                heapify(entries)
                other.heap = entries
        for labelled in list((self.labelled or {}).values()):
            for key, sequence, ready in self._cut_labelled(labelled, amount, None, True):
                amount -= 1
                other.push(key, sequence, ready)

    def _cut_labelled(self, heap: list[Entry], amount: int, context: Context | None, anybody: bool) -> list[Entry]:
        """From the end of a heap, whose last entry is always a leaf: what stays is still a heap."""
        passed: list[Entry] = []
        loot: list[Entry] = []
        while heap and len(loot) < amount:
            entry = heap.pop()
            if self.taken and entry[1] in self.taken:
                self._forget_one(entry[1])
            elif anybody or self._fits(entry, context):
                self._take(entry)
                loot.append(entry)
            else:
                passed.append(entry)
        for entry in passed:
            heappush(heap, entry)
        return loot

    def _cut_tail(self, amount: int) -> list[Ready]:
        """Plain tasks that would run last. The tail of a heap is made of leaves: what stays is still a heap."""
        loot: list[Ready] = []
        fifo, heap = self.fifo, self.heap
        amount = min(amount, len(fifo or ()) + len(heap or ()))
        self.count -= amount
        if fifo:
            while fifo and len(loot) < amount:
                loot.append(fifo.pop())
            loot.reverse()
        if heap and len(loot) < amount:
            keep = len(heap) - (amount - len(loot))
            loot.extend([entry[2] for entry in heap[keep:]])
            del heap[keep:]
        return loot

    def remove(self, task: int) -> Ready | None:
        """Take one task out, wherever it stands. (A long search, for rare cases.)"""
        found = next((one for one in self.all() if one.spec.id == task), None)
        if found is None:
            return None
        self._drop([found])
        return found

    def _drop(self, tasks: list[Ready]) -> None:
        """Take these very tasks out of all containers."""
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
        """Every task in the queue, in no particular order (for invariants, drains and explanations)."""
        heaps = [self.heap or [], *(self.labelled or {}).values()]
        unique = {entry[1]: entry[2] for heap in heaps for entry in heap}
        queued = [ready for sequence, ready in unique.items() if not (self.taken and sequence in self.taken)]
        return [*queued, *(self.fifo or ())]


def _rank(entry: Entry) -> int:
    needs = entry[2].spec.needs
    return 0 if needs is None else rank_of(needs.context)


class _NoTasks(ReadyQueue):
    """Shared by all nodes whose queue has never held anything: who wants to put something in makes a queue first."""

    __slots__ = ()

    def push(self, key: float, sequence: int, ready: Ready) -> None:
        raise AssertionError("this queue belongs to nobody")

    def push_plain(self, tasks: list[Ready]) -> None:
        raise AssertionError("this queue belongs to nobody")


NO_TASKS: ReadyQueue = _NoTasks(None)  # type: ignore[arg-type]
