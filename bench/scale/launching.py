"""`python -m bench.scale.launching FOLDER NODES EXECUTORS`: the store and the nodes of a cluster, each a process.

They run the `daws` command, as from a shell, but are forked from a process that has imported what it needs: a hundred
interpreters that start at once would keep two cores busy for half a minute. Prints the store's process and then the
nodes', one in a line; ends all of them when its standard input ends.
"""

import ctypes
import gc
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import daws.workers.threads  # noqa: F401
from bench.scale.counting import count_here
from daws.cli import main as daws_command
from daws.runtime.cluster import hosting, storing  # noqa: F401  (what the commands import when they run)

LEAVE_S = 10.0
START_S = 0.05
"""From one to the next: about what the start of a node takes of two processors."""
PR_SET_PDEATHSIG = 1


def begin(folder: Path, name: str, argv: list[str]) -> int:
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setpgid(0, 0)  # Ctrl-C is for the one who asks
        said = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for fd, to in ((nothing, 0), (said, 1), (said, 2)):
            os.dup2(fd, to)
        count_here(folder / "counts")
        code = daws_command(argv)
    finally:
        os._exit(code)


def main() -> None:
    folder, count, executors = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    (folder / "counts").mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    gc.collect()
    gc.freeze()  # what is shared stays shared
    cluster = str(folder / "cluster")
    processes = [begin(folder, "store", ["store", "--cluster", cluster])]
    node = ["node", "--cluster", cluster, "--kind", "threads", "--executors", executors]
    for _ in range(count):
        processes.append(begin(folder, "nodes", node))
        time.sleep(START_S)
    print(*processes, flush=True)
    try:
        sys.stdin.read()
    finally:
        end(processes)


def end(processes: list[int]) -> None:
    """The first signal has a node leave in good order, for which nobody waits here; the second ends it."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, number)
        if number == signal.SIGKILL or wait_for(processes):
            break


def wait_for(processes: list[int]) -> bool:
    """Are they all gone, now or soon?"""
    until_s = time.monotonic() + LEAVE_S
    left = list(processes)
    while left and time.monotonic() < until_s:
        left = [process for process in left if os.waitpid(process, os.WNOHANG) == (0, 0)]
        time.sleep(0.01)
    processes[:] = left
    return not left


if __name__ == "__main__":
    main()
