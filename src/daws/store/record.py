"""What the store keeps of a task. Memory per task decides how large a graph can be, so the rare fields live apart."""

from msgspec import Struct

from daws.model.task import Input, NodeId, TaskSpec


class Rare:
    """Fields that few tasks ever need."""

    __slots__ = (
        "announced",
        "error",
        "history",
        "holders",
        "losses",
        "need",
        "remaking",
        "replicas",
        "spawned",
        "suspended_on",
        "waiters",
        "watchers",
    )

    def __init__(self) -> None:
        self.announced = False
        self.error = ""
        self.history: list[tuple[int, int, NodeId]] = []
        self.holders: set[int] = set()
        self.losses = 0
        self.need = 0  # only who answers this need may take edges away; 0 before anything was lost
        self.remaking = False
        self.replicas: tuple[NodeId, ...] = ()
        self.spawned: dict[int, tuple[int, ...]] = {}  # attempt -> tasks
        self.suspended_on: tuple[int, ...] = ()
        self.waiters: tuple[tuple[int, int], ...] = ()  # who asked for a remake, and for which need
        self.watchers: tuple[int, ...] = ()  # suspended until this task has ended


class Record(Struct, gc=False):
    """`edges` holds the unfinished parents (a tuple, or a set when there are many) while the task waits; once it is
    ready it holds the mark of the call that made it so, which lets that call be repeated."""

    spec: TaskSpec
    state: int
    owner: NodeId
    children: tuple[int, ...] = ()
    edges: tuple[int, ...] | set[int] | int | None = None
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Input, ...] = ()
    move: int = 0
    attempt: int = 0
    freed: bool = False  # nobody needed its objects any more; who asks for them after all has them remade
    rare: Rare | None = None

    def more(self) -> Rare:
        if self.rare is None:
            self.rare = Rare()
        return self.rare
