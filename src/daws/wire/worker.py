"""Messages between a node and one of its workers: orders go down, reports come up.

A frame is the length of what follows, four bytes, little endian, and then a msgpack list of messages. All messages that
one side has at one time leave as one frame. The link is a pair of sockets between two processes of one user on one
machine: nothing is lost or doubled on it, and when it breaks, the worker is gone.

One byte comes before all frames, and with it the descriptor of an eventfd. The node signals it after orders that the
worker must read before its current run is over.
"""

from collections.abc import Sequence
from itertools import repeat

from msgspec import Struct, msgpack

from daws.model.task import Needs
from daws.wire.columns import each, once

FRAME_HEAD_BYTES = 4


class ObjectFile(Struct, frozen=True, array_like=True, gc=False):
    """An input in a file; the worker maps it into memory.

    The object and its size, if they are known, serve to recognise a damaged file. An input that has no file (yet) is
    `held` instead: the content that the file would have. Only workers that are threads of the node get such inputs.
    """

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
    """Options of a run that is not the usual one. A limit of zero is no limit.

    `cores` becomes OMP_NUM_THREADS and the like unless the user has set them, `devices` CUDA_VISIBLE_DEVICES (None
    leaves it as it is).
    """

    cores: int = 1
    devices: tuple[int, ...] | None = None
    memory_bytes: int = 0
    timeout_ns: int = 0
    capture: bool = True
    environment: tuple[tuple[str, str], ...] = ()


class Seed(Struct, frozen=True, array_like=True, gc=False):
    """A task that a run creates. The tasks of one run are numbered from zero.

    An entry of `inputs` is the number of such a task, and which of its outputs is meant.
    """

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
    """The end of a task that a run created.

    If it is done, `results` are its results. Else `state` is its state (`daws.model.states`), `error` the reason, and
    `failure` the encoded Failure if it raised an exception. If it failed because of another task, `path` is the way
    from this `task` to that one.
    """

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
"""The arguments of a call are its inputs and nothing else, which is common in graphs: there is nothing to pickle."""


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
    """Give a run back if it has not started. Answered by Recalled or, if it has started, by the end of the run."""

    run: int


class ResumeOrder(WorkerOrder, frozen=True):
    """A run may go on: the tasks that it waited for have ended. `ended` has all ends that were not sent to it
    before."""

    run: int
    ended: tuple[ChildEnd, ...] = ()


class Told(WorkerOrder, frozen=True):
    """The answer to Asks: the tasks that have ended and were not sent before."""

    run: int
    ended: tuple[ChildEnd, ...] = ()


class Discard(WorkerOrder, frozen=True):
    """A run that waits is not needed any more: let it come to its end."""

    run: int


class Exit(WorkerOrder, frozen=True):
    """Finish what was ordered before, tear down, and end."""


OrderType = Prepare | Learn | Forget | Execute | ExecuteTogether | Recall | ResumeOrder | Told | Discard | Exit
AT_ONCE = frozenset((Recall, ResumeOrder, Told, Discard))
"""Orders that do not wait for the orders before them."""


class Report(Struct, frozen=True, array_like=True, gc=False, tag=True):
    pass


class Fit(Report, frozen=True):
    """The worker is prepared and takes orders."""

    pid: int


class Unfit(Report, frozen=True):
    """Setting up failed; the worker ends. `error` is an encoded Failure."""

    error: bytes


class Ended(Report, frozen=True):
    """A run went well.

    A result is a serialized value, the number of bytes that were written to the file that the order named, or the file
    that the worker has written. `began_ns` is of the machine's monotonic clock.
    """

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

    `lacks` is an input whose file is damaged or gone, which is not the run's fault.
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
    """Output of a run: complete lines, or the last part of it. `stream` says which output: 1 is standard output, 2
    standard error.

    LOGGED and WARNED are its log records and warnings as msgpack; see `daws.workers.logs`. ITEMS_FAILED is for a task
    of `map`: how many of its items failed, and the exception of the first of them, as msgpack.
    """

    run: int
    stream: int
    text: bytes


class Taught(Report, frozen=True):
    """A function that a run brings in, with the number by which its tasks name it."""

    run: int
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
    """A run reads the results of these tasks of its own no more, and it will create no task that reads them."""

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
    """The worker ended during this run; reported by the pool. `code` is an exit code or, negative, a signal.

    `why` is empty unless the pool itself ended the worker. `output` is the last text that the worker has written. A run
    that only waited there, or whose worker the pool ended because of another run, is not to blame (`waited`); `under`
    is that run, or the one that the worker executed.
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
    """An exception as a message: words for everybody, and the pickled exception for processes that can read it."""

    kind: str
    message: str
    trace: str
    pickled: bytes = b""


ENCODER = msgpack.Encoder()
ORDERS = msgpack.Decoder(list[OrderType])
REPORTS = msgpack.Decoder(list[ReportType])
FAILURE = msgpack.Decoder(Failure)


TOGETHER_MIN = 8
"""The least number of calls, or of ends of runs, that are sent as columns."""


def calls_apart(order: ExecuteTogether) -> list[Execute]:
    """The calls of an order as one order each."""
    runs = order.runs
    arguments = each(order.arguments, len(runs))
    return list(map(Execute, runs, repeat(order.function), arguments, repeat(()), zip(order.outputs)))


def ends_together(reports: list[ReportType]) -> Sequence[ReportType]:
    """Join reports of usual ends into one, if there are many of them and no other reports; otherwise return them as
    they are."""
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
    """The ends of a report as one report each."""
    runs = report.runs
    return list(map(Ended, runs, report.durations_ns, zip(each(report.results, len(runs))), report.began_ns))


def apart(reports: list[ReportType]) -> list[ReportType]:
    """Split joined reports, so that each end has a report of its own."""
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
