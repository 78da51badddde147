"""What a node and one of its workers say to each other: orders go down, reports come up.

A frame is the length of what follows, four bytes, little endian, and then a msgpack list of messages. Whatever one side
has to say at one time leaves as one frame. The link is a pair of sockets inside one machine and between two processes
of one user: nothing is lost or doubled on it, and when it breaks, the worker is gone.

Before all frames comes one byte, and with it the descriptor of a bell (an eventfd). It rings when orders have left that
a worker must not leave lying until the run is over that it is on.
"""

from collections.abc import Sequence
from itertools import repeat

from msgspec import Struct, msgpack

from daws.model.task import Needs
from daws.wire.columns import each, once

FRAME_HEAD_BYTES = 4


class ObjectFile(Struct, frozen=True, array_like=True, gc=False):
    """An input that lies in a file; the worker maps it into memory. Its object and its size, if they are known, are
    what a file that was damaged is known by. One that has no file (yet) is `held` instead, as what would be in that:
    only workers that are threads of the node are given such."""

    path: str
    object: int | None = None
    size_bytes: int = -1
    held: bytes = b""


class Written(Struct, frozen=True, array_like=True, gc=False):
    """A result that the worker has written to a file whose name it chose itself; `is_raw` if a command has made it."""

    path: str
    size_bytes: int
    is_raw: bool = False


class RunOptions(Struct, frozen=True, array_like=True, gc=False):
    """What one run needs beyond the usual. Limits of zero are none.

    `cores` becomes OMP_NUM_THREADS and its friends unless the user has set them, `devices` CUDA_VISIBLE_DEVICES (None
    leaves it as it is).
    """

    cores: int = 1
    devices: tuple[int, ...] | None = None
    memory_bytes: int = 0
    timeout_ns: int = 0
    capture: bool = True
    environment: tuple[tuple[str, str], ...] = ()


class Seed(Struct, frozen=True, array_like=True, gc=False):
    """A task that a run creates. Those of one run are numbered from zero; `inputs` are pairs of such a number and which
    of its outputs is meant."""

    function: int
    arguments: bytes
    inputs: tuple[tuple[int, int], ...] = ()
    outputs: int = 1
    needs: Needs | None = None
    priority: int = 0
    retries: int = 0
    timeout_ns: int = 0
    estimate_ns: int = 0
    rank_ns: int = 0


class ChildEnd(Struct, frozen=True, array_like=True, gc=False):
    """How a task that a run created has ended: its results, or in which state it is now (`daws.model.states`), why, and
    the encoded Failure if it raised something. If it failed because of another, `path` is the way from this `task` to
    that one."""

    number: int
    results: tuple[bytes | ObjectFile, ...] = ()
    state: int = 0
    error: str = ""
    failure: bytes = b""
    task: int = -1
    path: tuple[tuple[int, int], ...] = ()


class WorkerOrder(Struct, frozen=True, array_like=True, gc=False, tag=True):
    pass


class Prepare(WorkerOrder, frozen=True):
    """The first order: who the worker is. `setup` and `teardown` are pickled callables without arguments, or empty.

    With `scratch` (and `memory`, if there is a file system in memory) large results are written where
    `daws.data.segments` has its folders. Without, they are written to the paths that orders name.
    """

    name: str
    folder: str
    inline_max_bytes: int
    memory: str = ""
    scratch: str = ""
    capture: bool = True
    setup: bytes = b""
    teardown: bytes = b""
    workers: int = 1  # how many there are of its kind


class Learn(WorkerOrder, frozen=True):
    """A function, under the number by which later orders name it. It is unpickled when it is first called."""

    function: int
    pickled: bytes


class Forget(WorkerOrder, frozen=True):
    """Functions that no later order names, unless they are learnt anew."""

    functions: tuple[int, ...]


INPUTS_ALONE = b""
"""The arguments of a call are its inputs and nothing else, as often in graphs: there is nothing to pickle."""


class Execute(WorkerOrder, frozen=True):
    """Call a function. `arguments` is a pickled (args, kwargs) in which `Slot(i)` stands for `inputs[i]`, or a tuple of
    plain values (see `daws.data.codec.dumps_plain`), or `INPUTS_ALONE`.

    Inputs are serialized values or files that hold one. Without `outputs` there is one result, which always travels
    inline. Otherwise there are as many results as `outputs`, and those larger than `inline_max_bytes` are written to
    files. `outputs` are their paths (relative ones begin at the worker's folder) or, when the worker has segments to
    write to, object ids.
    """

    run: int
    function: int
    arguments: bytes
    inputs: tuple[bytes | ObjectFile, ...] = ()
    outputs: tuple[int | str, ...] = ()
    options: RunOptions | None = None


class ExecuteTogether(WorkerOrder, frozen=True):
    """Many usual calls of one function, in this order, as columns: no inputs, no options, one object each.

    If all have the same arguments, they are there once.
    """

    function: int
    runs: list[int]
    arguments: list[bytes]
    outputs: list[int]


class Recall(WorkerOrder, frozen=True):
    """Give a run back if it has not started: answered by Recalled or, too late, by what became of it."""

    run: int


class ResumeOrder(WorkerOrder, frozen=True):
    """What a run waited for has ended; it may go on. `ended` is all that it has not been told before."""

    run: int
    ended: tuple[ChildEnd, ...] = ()


class Told(WorkerOrder, frozen=True):
    """The answer to Asks: what has ended and was not told before."""

    run: int
    ended: tuple[ChildEnd, ...] = ()


class Discard(WorkerOrder, frozen=True):
    """Nobody needs this run any more, which waits: let it come to its end."""

    run: int


class Exit(WorkerOrder, frozen=True):
    """Finish what was ordered before, tear down, and end."""


OrderType = Prepare | Learn | Forget | Execute | ExecuteTogether | Recall | ResumeOrder | Told | Discard | Exit
AT_ONCE = frozenset((Recall, ResumeOrder, Told, Discard))
"""Orders that do not stand in line."""


class Report(Struct, frozen=True, array_like=True, gc=False, tag=True):
    pass


class Fit(Report, frozen=True):
    """The worker is prepared and takes orders."""

    pid: int


class Unfit(Report, frozen=True):
    """Setting up failed; the worker ends. `error` is an encoded Failure."""

    error: bytes


class Ended(Report, frozen=True):
    """A run went well. Each result is a serialized value, the number of bytes that were written to the file that the
    order named, or the file that was written. `began_ns` is of the machine's monotonic clock."""

    run: int
    duration_ns: int
    results: tuple[bytes | int | Written, ...]
    began_ns: int = 0


class EndedTogether(Report, frozen=True):
    """Many runs that went well and have one small result each, in this order, as columns.

    If all results are the same, it is there once.
    """

    runs: list[int]
    durations_ns: list[int]
    results: list[bytes]
    began_ns: list[int]


class Raised(Report, frozen=True):
    """A run raised an exception, or its arguments or results cannot be serialized. `error` is an encoded Failure.

    `lacks` is an object that it was to read and whose file is damaged or gone, which is not the run's fault.
    """

    run: int
    duration_ns: int
    error: bytes
    began_ns: int = 0
    lacks: int | None = None


class Recalled(Report, frozen=True):
    """The run was not executed, or it was but all that it did was lost with its worker; nobody is to blame."""

    run: int


LOGGED, WARNED, ITEMS_FAILED = 3, 4, 5


class Printed(Report, frozen=True):
    """What a run wrote to its standard output (1) or error (2): complete lines, or the end of what it wrote. Also what
    it LOGGED or WARNED of, as msgpack; see `daws.workers.logs`. ITEMS_FAILED says of a task of `map` how many of its
    items failed and what the first of them raised, as msgpack."""

    run: int
    stream: int
    text: bytes


class Taught(Report, frozen=True):
    """A function that a run brings in, under the number that its tasks name."""

    function: int
    pickled: bytes


class Spawned(Report, frozen=True):
    """A run creates tasks."""

    run: int
    tasks: tuple[Seed, ...]


class WaitReport(Report, frozen=True):
    """A run waits for tasks that it created. It needs no executor until ResumeOrder. It has worked for `used_ns`."""

    run: int
    used_ns: int
    on: tuple[int, ...]


class Dropped(Report, frozen=True):
    """A run reads no more what these tasks of its own make, nor will it create tasks that read that."""

    run: int
    tasks: tuple[int, ...]


class Asks(Report, frozen=True):
    """A run wants to know which of its tasks have ended; answered at once."""

    run: int


# Why a worker was ended on purpose.
STOPPED = "stopped"
TIMEOUT = "timeout"
MEMORY = "memory"


class Died(Report, frozen=True):
    """The worker ended during this run; said by the pool. `code` is an exit code or, negative, a signal.

    `why` is empty unless the pool itself ended the worker. `output` is the last that the worker has written. A run that
    only waited there (`waited`) is not to blame; `under` is the run that the worker was on.
    """

    run: int
    code: int
    output: bytes = b""
    why: str = ""
    waited: bool = False
    under: int = -1


ReportType = (
    Fit
    | Unfit
    | Ended
    | EndedTogether
    | Raised
    | Recalled
    | Printed
    | Taught
    | Spawned
    | WaitReport
    | Dropped
    | Asks
    | Died
)


class Failure(Struct, frozen=True, array_like=True, gc=False):
    """An exception as it travels: words for everybody, and the pickled exception for those who can read it."""

    kind: str
    message: str
    trace: str
    pickled: bytes = b""


ENCODER = msgpack.Encoder()
ORDERS = msgpack.Decoder(list[OrderType])
REPORTS = msgpack.Decoder(list[ReportType])
FAILURE = msgpack.Decoder(Failure)


TOGETHER_MIN = 8
"""Fewer calls, or ends of runs, are not worth a second look."""


def calls_apart(order: ExecuteTogether) -> list[Execute]:
    """One by one."""
    runs = order.runs
    arguments = each(order.arguments, len(runs))
    return list(map(Execute, runs, repeat(order.function), arguments, repeat(()), zip(order.outputs)))


def ends_together(reports: list[ReportType]) -> Sequence[ReportType]:
    """Reports of usual ends as one, if there are many and nothing else; otherwise as they are."""
    if len(reports) < TOGETHER_MIN or set(map(type, reports)) != {Ended}:
        return reports
    ends: list[Ended] = reports  # type: ignore[assignment]
    results = [end.results for end in ends]
    if set(map(len, results)) != {1}:
        return reports
    values: list[bytes] = [one for (one,) in results]  # type: ignore[misc]
    if set(map(type, values)) != {bytes}:
        return reports
    durations_ns = [end.duration_ns for end in ends]
    return [EndedTogether([end.run for end in ends], durations_ns, once(values), [end.began_ns for end in ends])]


def ends_apart(report: EndedTogether) -> list[Ended]:
    """One by one."""
    runs = report.runs
    return list(map(Ended, runs, report.durations_ns, zip(each(report.results, len(runs))), report.began_ns))


def apart(reports: list[ReportType]) -> list[ReportType]:
    """Reports in which each end stands by itself."""
    if EndedTogether not in map(type, reports):
        return reports
    found: list[ReportType] = []
    for report in reports:
        found += ends_apart(report) if isinstance(report, EndedTogether) else (report,)
    return found


def frame_of(messages: Sequence[OrderType] | Sequence[ReportType], buffer: bytearray) -> None:
    """Put a frame with these messages into a buffer, in place of whatever was in it."""
    ENCODER.encode_into(messages, buffer, FRAME_HEAD_BYTES)
    buffer[:FRAME_HEAD_BYTES] = (len(buffer) - FRAME_HEAD_BYTES).to_bytes(FRAME_HEAD_BYTES, "little")
