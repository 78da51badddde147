"""Ready queues: a heap for tasks that any plain executor may run, and one heap per label for tasks with a context.

A task with several labels stands in each of their heaps and is skipped where it comes up a second time. Keys end in a sequence
number, so equal keys leave in the order in which they came and no two entries ever compare their tasks.
"""

from heapq import heapify, heappop, heappush

from daws.model.context import ANY, Context, labels
from daws.model.task import Ready
from daws.strategy.decisions import Match

Entry = tuple[float, int, Ready]


class ReadyQueue:
    __slots__ = ("count", "doubles", "heap", "labelled", "match", "taken")

    def __init__(self, match: Match) -> None:
        self.match = match
        self.count = 0
        self.heap: list[Entry] = []
        self.labelled: dict[str, list[Entry]] | None = None
        self.doubles: dict[int, int] | None = None  # entries left of a task that stands in several heaps
        self.taken: set[int] | None = None  # ... and those of them that were taken already

    def push(self, key: float, sequence: int, ready: Ready) -> None:
        self.count += 1
        needs = ready.spec.needs
        if needs is None or needs.context is None:
            heappush(self.heap, (key, sequence, ready))
            return
        names = tuple(dict.fromkeys(labels(needs.context)))
        if self.labelled is None:
            self.labelled = {}
        if len(names) > 1:
            if self.doubles is None:
                self.doubles, self.taken = {}, set()
            self.doubles[ready.spec.id] = len(names)
        for name in names:
            heap = self.heap if name == ANY else self.labelled.setdefault(name, [])
            heappush(heap, (key, sequence, ready))

    def pop(self, context: Context | None) -> Ready | None:
        """The first task that an executor with this context may run, in the order of its labels."""
        if context is None and self.labelled is None:
            if not self.heap:
                return None
            self.count -= 1
            return heappop(self.heap)[2]
        for name in (ANY,) if context is None else labels(context):
            heap = self.heap if name == ANY else (self.labelled or {}).get(name)
            if heap:
                found = self._pop_match(heap, context)
                if found is not None:
                    return found
        return None

    def peek(self) -> Ready | None:
        """The first of the tasks that need no particular executor."""
        heap = self.heap
        while self.taken and heap and self._was_taken(heap[0][2]):
            heappop(heap)
        return heap[0][2] if heap else None

    def pop_head(self) -> None:
        """Take out what `peek` has just shown."""
        self.count -= 1
        self._take(heappop(self.heap)[2])

    def _pop_match(self, heap: list[Entry], context: Context | None) -> Ready | None:
        passed: list[Entry] = []
        found = None
        while heap:
            entry = heappop(heap)
            ready = entry[2]
            if self._was_taken(ready):
                continue
            needs = ready.spec.needs
            if self.match.preference(needs.context if needs is not None else None, context) >= 0:
                found = ready
                break
            passed.append(entry)  # same label, but its rank is out of this executor's range
        for entry in passed:
            heappush(heap, entry)
        if found is not None:
            self.count -= 1
            self._take(found)
        return found

    def _take(self, ready: Ready) -> None:
        task = ready.spec.id
        if self.doubles is not None and task in self.doubles:
            assert self.taken is not None
            self.taken.add(task)
            self._forget_one(task)

    def _was_taken(self, ready: Ready) -> bool:
        task = ready.spec.id
        if self.taken and task in self.taken:
            self._forget_one(task)
            return True
        return False

    def _forget_one(self, task: int) -> None:
        assert self.doubles is not None and self.taken is not None
        self.doubles[task] -= 1
        if not self.doubles[task]:
            del self.doubles[task]
            self.taken.discard(task)

    def cut(self, amount: int, from_head: bool, contexts: tuple[Context | None, ...] | None) -> list[Ready]:
        """Up to `amount` tasks to hand over. Cutting the tail takes leaves of the heap: what stays is still a heap."""
        if self.labelled is None and (contexts is None or None in contexts):
            if from_head:
                amount = min(amount, self.count)
                loot = [heappop(self.heap)[2] for _ in range(amount)]
            else:
                keep = max(0, len(self.heap) - amount)
                loot = [entry[2] for entry in self.heap[keep:]]
                del self.heap[keep:]
            self.count -= len(loot)
            return loot
        found: list[Ready] = []
        for context in contexts if contexts is not None else (None,):
            while len(found) < amount and (ready := self.pop(context)) is not None:
                found.append(ready)
        return found

    def all(self) -> list[Ready]:
        """Every task in the queue, in no particular order (for invariants, drains and explanations)."""
        heaps = [self.heap, *(self.labelled or {}).values()]
        unique = {entry[2].spec.id: entry[2] for heap in heaps for entry in heap}
        return [ready for task, ready in unique.items() if not (self.taken and task in self.taken)]

    def rekey(self, entries: list[Entry]) -> None:
        """Replace the plain heap (orders changed while running)."""
        heapify(entries)
        self.heap = entries
