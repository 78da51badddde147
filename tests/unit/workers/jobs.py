"""What the workers under test are asked to do. Imports little, since each worker imports it."""

import ctypes
import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import daws
from daws.model.errors import UsageError
from daws.workers import worker


def add(a: int, b: int = 0) -> int:
    return a + b


def echo(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def pid(*_: Any) -> int:
    return os.getpid()


def wait_for_the_bell() -> None:
    """The set-up of a worker that never looks for orders by itself while a run is long."""
    worker.DOZE_MS = 3_600_000


def timer_slack_ns() -> int:
    return int(Path("/proc/self/timerslack_ns").read_text())


def size(data: bytes) -> int:
    return len(data)


def hang_if_there(path: str) -> None:
    while os.path.exists(path):
        time.sleep(0.01)


def fail(text: str) -> NoReturn:
    raise ValueError(text)


def leave(code: int) -> NoReturn:
    sys.exit(code)


def drop(code: int) -> NoReturn:
    os._exit(code)


def crash() -> None:
    print("about to crash")
    ctypes.string_at(0)


def interrupt() -> NoReturn:
    raise KeyboardInterrupt


def unpicklable() -> Any:
    return (number for number in range(3))


class Stubborn(Exception):
    """Cannot be unpickled as pickle would have it: its constructor wants another number of arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


class Holding(Exception):
    """Cannot be pickled at all."""

    def __init__(self) -> None:
        super().__init__("holding a generator")
        self.held = unpicklable()


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def raise_stubborn() -> NoReturn:
    raise Stubborn("one", "two")


def raise_holding() -> NoReturn:
    raise Holding


def raise_mute() -> NoReturn:
    raise Mute


class Hostile:
    """Unpickling this fails."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return fail, ("unpickled",)


def speak(out: str, err: str = "", program: str = "") -> None:
    print(out, end="")
    print(err, end="", file=sys.stderr)
    if program:
        subprocess.run(["sh", "-c", f"echo {program}"], check=True)


def speak_much(lines: int) -> None:
    for number in range(lines):
        print(f"line {number:7} " + "x" * 80)


def write_much(megabytes: int) -> None:
    block = b"y" * (1 << 20)
    for _ in range(megabytes):
        os.write(1, block)
    os.write(1, b"the end")


def announce(fifo: str) -> None:
    """Tell the test, which waits for it, that this run has begun."""
    Path(fifo).write_text(str(os.getpid()))


def hang(fifo: str, text: str = "") -> None:
    if text:
        print(text)
    announce(fifo)
    while True:
        signal.pause()


def spin(fifo: str) -> None:
    announce(fifo)
    while True:
        pass


def await_word(fifo: str, other: str) -> str:
    announce(fifo)
    with open(other) as pipe:
        return pipe.readline()


def grow(fifo: str, megabytes: int) -> None:
    held = bytearray(megabytes << 20)
    for at in range(0, len(held), 4096):
        held[at] = 1
    hang(fifo)


def fork_and_return(fifo: str) -> str:
    """The child returns as well, into whatever called this."""
    child = os.fork()
    if not child:
        announce(fifo)
        return "child"
    os.waitpid(child, 0)
    return "parent"


def fork_and_exit(code: int) -> int:
    child = os.fork()
    if not child:
        sys.exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def leave_child(daemon: bool) -> int:
    """A child that outlives the run, and, as a daemon, the process group."""
    child = os.fork()
    if not child:
        if daemon:
            os.setsid()
        while True:
            signal.pause()
    return child


def move(path: str) -> None:
    os.chdir(path)


def here() -> str:
    return os.getcwd()


def close_everything() -> None:
    os.closerange(0, 1024)


def mute() -> None:
    sys.stdout = io.StringIO()


def replace_output(how: str) -> None:
    if how == "forget":
        sys.stdout = sys.stderr = io.StringIO()
    else:
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer)
    print("in its own stream", end="")


def close_output() -> None:
    os.close(1)
    os.close(2)


def environment(*names: str) -> list[str | None]:
    return [os.environ.get(name) for name in names]


def several(count: int, size: int = 0) -> list[Any]:
    return [bytes([number]) * size if size else number for number in range(count)]


def sizes(*sizes_bytes: int) -> list[bytes]:
    return [bytes(size) for size in sizes_bytes]


def nap_ns(duration_ns: int) -> int:
    """Busy for a while; by the clock, so that the machine's speed does not matter."""
    end = time.monotonic_ns() + duration_ns
    while time.monotonic_ns() < end:
        pass
    return duration_ns


def mark(path: str) -> None:
    Path(path).touch()


def setup_value() -> None:
    os.environ["JOB_SETUP"] = "done"


def wait_for(count: int) -> list[int]:
    here = daws.current()
    return [future.result() for future in [here.submit(add, number) for number in range(count)]]


def wait_then_await_word(fifo: str, other: str) -> str:
    wait_for(1)
    return await_word(fifo, other)


def wait_and_clean(path: str) -> None:
    try:
        wait_for(1)
    finally:
        mark(path)


def ask() -> list[Any]:
    future = daws.current().submit(add, 1)
    return [future.done(), future.done(), future.result()]


def submit_itself() -> None:
    daws.current().submit(submit_itself)


def is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def submit_in_a_fork() -> str:
    reading, writing = os.pipe()
    if not os.fork():
        try:
            daws.current()
        except UsageError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        return file.read()
