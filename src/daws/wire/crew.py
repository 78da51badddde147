"""The workers of a node, as its client asks for them."""

from msgspec import Struct

NO_DEVICE = -1


class Crew(Struct, frozen=True, array_like=True):
    """The workers of one node: how many, of which kind (see `daws.workers.port`), and the pickled functions that each
    worker calls first (`setup`) and last (`teardown`). With `tells_runs` the listener is told of every run, with
    `explains` also of every decision about a task. Beside the `count` workers there is one for each device: `devices`
    says how many devices there are under each label. `owns_process`: the node may choose the scheduling class of its
    thread, because the process belongs to daws or may be treated as if it did. `place` counts the nodes that share the
    devices of one machine."""

    count: int
    kind: str = "processes"
    setup: bytes = b""
    teardown: bytes = b""
    tells_runs: bool = False
    explains: bool = False
    devices: tuple[tuple[str, int], ...] = ()
    owns_process: bool = True
    place: int = 0

    @property
    def notes(self) -> tuple[bool, bool]:
        """Whether runs are told, and decisions."""
        return self.tells_runs, self.explains

    @property
    def slots(self) -> int:
        return self.count + sum([count for _, count in self.devices])

    def devices_of(self, slots: tuple[int, ...]) -> tuple[int, ...] | None:
        """The numbers of the devices of these executors on their machine, or None if one of them has none."""
        found = [self.device_of(slot) for slot in slots]
        return None if NO_DEVICE in found else tuple(sorted(found))

    def device_of(self, slot: int) -> int:
        """The number of an executor's device on its machine; NO_DEVICE if it has none."""
        first = self.count
        for _, count in self.devices:
            if first <= slot < first + count:
                return self.place * count + slot - first
            first += count
        return NO_DEVICE
