"""Resources with batch queues: a few that are known, and the text that describes others.

    stampede                                        a known one
    gordon:wait-s=600,spread=0                      a known one, changed
    mine:nodes=32,cores=8,wait-s=120,walltime-h=24  one of your own

The known ones are those of AIMES (2016). Their waits are fitted to the mean hours per job that XDMoD recorded on Gordon
and Stampede (github.com/radical-experiments/AIMES-Swift, commit 27445b1). The distribution is the lognormal one of the
daily means of December 2015 to May 2016, up to the worst day. The factors for sizes are the monthly means by cores of a
job, divided by the mean of all jobs in the same months. The waits of the other resources were not recorded there: they
have those of Stampede.
"""

import re
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from daws.model.errors import UsageError
from daws.model.numbers import read_number, read_whole
from daws.model.pilots import WALLTIME_S_MIN, Resource
from daws.sim.cluster import CORE_COUNT_MAX, NODE_COUNT_MAX
from daws.sim.waits import Waits

HOUR_S = 3600.0
WAIT_S_MAX = 1e9
RESOURCES_MAX = 1000

_NAME = re.compile(r"(?=.{1,40}$)[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_FORM = "NAME[:nodes=N,cores=C,wait-s=S,spread=SIGMA,jitter=SIGMA,walltime-h=H]"


class Queue(Struct, frozen=True):
    """A resource as the simulator knows it: the facts that users know, and the true behaviour of its queue."""

    name: str
    nodes: int
    cores: int
    waits: Waits
    walltime_s: float = inf

    @property
    def resource(self) -> Resource:
        return Resource(self.name, self.cores, self.nodes, self.walltime_s, self.waits.experience())


# How jobs that wait in the same queue on the same day differ was not recorded: `jitter` is a guess.
STAMPEDE = Waits(
    median_s=10_600.0,
    sigma=0.90,
    jitter=0.25,
    most_s=68_000.0,
    by_cores=((64, 0.86), (256, 1.03), (512, 2.10), (1024, 1.94), (8192, 1.31), (32_768, 1.18)),
)
GORDON = Waits(
    median_s=7_700.0,
    sigma=1.65,
    jitter=0.25,
    most_s=302_000.0,
    by_cores=((8, 0.10), (64, 1.52), (256, 1.10), (512, 1.06), (1024, 0.33), (8192, 0.25)),
)
KNOWN: dict[str, Queue] = {
    queue.name: queue
    for queue in (
        Queue("stampede", 6400, 16, STAMPEDE, 48 * HOUR_S),
        Queue("gordon", 1024, 16, GORDON, 48 * HOUR_S),
        Queue("supermic", 360, 20, STAMPEDE, 72 * HOUR_S),
        Queue("comet", 1944, 24, STAMPEDE, 48 * HOUR_S),
        Queue("blue-waters", 22_640, 32, STAMPEDE, 48 * HOUR_S),
    )
}
"""Resources by name, with their nodes and cores as they were in 2016."""


def parse_queue(text: str) -> Queue:
    """Read one description; UsageError in one line if it makes no sense."""
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if not _NAME.fullmatch(name):
        raise UsageError(f"pilots {_shown(text)}: expected {_FORM}")
    given = _read(text, rest) if colon else {}
    known = KNOWN.get(name)
    if known is None and "wait-s" not in given:
        raise UsageError(
            f"pilots {_shown(text)}: the waits of {name!r} are not known, give wait-s=…; known are {', '.join(KNOWN)}"
        )
    base = known or Queue(name, 1024, 16, Waits(0.0))
    waits = base.waits
    if "wait-s" in given:
        waits = Waits(given["wait-s"], waits.sigma, waits.jitter)
    waits = replace(waits, sigma=given.get("spread", waits.sigma), jitter=given.get("jitter", waits.jitter))
    return Queue(
        name,
        int(given.get("nodes", base.nodes)),
        int(given.get("cores", base.cores)),
        waits,
        given["walltime-h"] * HOUR_S if "walltime-h" in given else base.walltime_s,
    )


def parse_queues(texts: list[str]) -> tuple[Queue, ...]:
    """Several of them, each with a name of its own."""
    queues = tuple([parse_queue(text) for text in texts])
    names = [queue.name for queue in queues]
    if len(names) > RESOURCES_MAX:
        raise UsageError(f"pilots: at most {RESOURCES_MAX} resources, not {len(names)}")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"pilots: {name!r} is given twice")
    return queues


# By key: whether it is a whole number, the least and the most it can be.
_KEYS: dict[str, tuple[bool, float, float]] = {
    "nodes": (True, 1, NODE_COUNT_MAX),
    "cores": (True, 1, CORE_COUNT_MAX),
    "wait-s": (False, 0, WAIT_S_MAX),
    "spread": (False, 0, 5),
    "jitter": (False, 0, 5),
    "walltime-h": (False, WALLTIME_S_MIN / HOUR_S, 1e5),
}


def _read(text: str, rest: str) -> dict[str, float]:
    given: dict[str, float] = {}
    for pair in rest.split(","):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if key not in _KEYS or not equals:
            raise UsageError(f"pilots {_shown(text)}: expected {_FORM}, not {_shown(pair)}")
        if key in given:
            raise UsageError(f"pilots {_shown(text)}: {key} is given twice")
        whole, low, high = _KEYS[key]
        number = read_whole(value) if whole else read_number(value)
        if number is None:
            raise UsageError(f"pilots {_shown(text)}: {key}={_shown(value)} is not a {'whole ' * whole}number")
        if not low <= number <= high:
            raise UsageError(f"pilots {_shown(text)}: {key} lies between {low:g} and {high:g}")
        given[key] = float(number)
    return given


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
