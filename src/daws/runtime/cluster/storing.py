"""The process of a cluster's store. It holds the lock of its folder, so there is one at most. When it is killed, the
next process begins with everything that it has ever acknowledged."""

import asyncio
import fcntl
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socket import AF_INET, AF_INET6, SOCK_STREAM, socket

import uvloop

from daws.model.errors import StoreFullError, UsageError
from daws.runtime.cluster.front import STRATEGY
from daws.runtime.cluster.reach import PrivateReach, Reach, close_links
from daws.runtime.cluster.serving import StoreServer, settings_of
from daws.runtime.crew import LEASE_NS
from daws.store.log import GroupSync, open_store
from daws.wire.children import StartStore
from daws.workers.system import wait_for_turns

STATE = "state"
IDLE_LOOK_S = 1.0
START_AGAIN_S = 3.0
LINE_BYTES_MAX = 1000
PRIVATE_LOG_BYTES_MIN = 1 << 29
"""Shortening the log of a private cluster takes processors away from its tasks."""
QUIET_AFTER_S = 60.0
"""Messages for which nobody waits are sent as if a lease of a private cluster were so long."""
log = logging.getLogger("daws.store")


def run_store(folder: Path, idle_s: float = 0.0, ready: Callable[[str], None] = lambda address: None) -> bool:
    """Serve until SIGTERM, or until there was no connection for `idle_s` seconds; all data is in files. Return False if
    another process serves already."""
    reach = Reach(folder, "store")
    if not reach.is_embedded:
        raise UsageError(f"the store of this cluster is at {reach.store_where}: there is none to serve here")
    state = reach.folder / STATE
    state.mkdir(mode=0o700, exist_ok=True)
    lock = _lock(state / "lock")
    if lock < 0:
        return False
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    store, files = open_store(state / "store", settings_of(reach.lease_ns, losses_max=reach.config.losses_max))
    group = GroupSync(loop, files)
    server = StoreServer(loop, store, STRATEGY, group.when_safe)
    try:
        door = loop.run_until_complete(reach.serve(reach.store_address, server.welcome))
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, loop.stop)
        if idle_s:
            _end_when_idle(loop, server, idle_s)
        ready(door.address)
        loop.run_forever()
        door.close()
        loop.run_until_complete(close_links(*[caller.link for caller in server.callers]))
    finally:
        group.close()
        server.close()
        files.close()
        loop.close()
        os.close(lock)
    return True


def serve_privately(loop: asyncio.AbstractEventLoop, start: StartStore) -> None:
    """The store of a private cluster, from its log if there is one. It serves as long as the loop runs.

    Its log need not outlive the machine, as its client does not: nothing waits for a disk. All that was acknowledged is
    in the hands of the kernel, and so outlives the process.
    """
    state = Path(start.state)
    settings = settings_of(LEASE_NS, first_session=0)
    store, files = open_store(state / "log", settings, durable=False, log_bytes_min=PRIVATE_LOG_BYTES_MIN)
    server = StoreServer(loop, store, start.strategy, DirectSync(loop, files).when_safe, QUIET_AFTER_S)
    loop.run_until_complete(PrivateReach(start.run, "store").serve("", server.welcome))


class DirectSync(GroupSync):
    """Write noted calls at once, on the thread of the loop. If there is no room, answers wait as in GroupSync."""

    def when_safe(self, then: Callable[[], None]) -> None:
        if not self._waiting and self._write is None:
            with suppress(StoreFullError):
                self._files.sync()
        super().when_safe(then)


def _end_when_idle(loop: asyncio.AbstractEventLoop, server: StoreServer, idle_s: float) -> None:
    busy_at_s = time.monotonic()

    def look() -> None:
        nonlocal busy_at_s
        if server.callers:
            busy_at_s = time.monotonic()
        elif time.monotonic() - busy_at_s > idle_s:
            loop.stop()
            return
        loop.call_later(IDLE_LOOK_S, look)

    look()


def _lock(path: Path) -> int:
    """Take the lock, and return its file descriptor, or -1 if another process has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return -1
    return fd


class StoreStarter:
    """A callable that starts the store of a cluster when it does not answer, if this is its machine."""

    def __init__(self, reach: Reach, idle_s: float) -> None:
        self._reach = reach
        self._idle_s = idle_s
        self._is_here = reach.is_embedded and is_local(reach.config.hosts[0])
        self._started_at_s = -START_AGAIN_S
        self._process: subprocess.Popen[bytes] | None = None
        self._log_path = reach.folder / "store.log"
        self._is_told = False  # that it cannot be

    def __call__(self) -> None:
        now_s = time.monotonic()
        if not self._is_here or now_s - self._started_at_s < START_AGAIN_S:
            return
        self._started_at_s = now_s
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None and self._process.returncode > 0 and not self._is_told:
            self._is_told = True
            log.warning("the store has ended; %s says why: %s", self._log_path, _last_line(self._log_path))
        try:
            self._process = self._started()
        except OSError as error:
            log.warning("the store could not be started: %s; trying again", error)

    def _started(self) -> "subprocess.Popen[bytes]":
        wait_for_turns(False)  # or the store would do so all its life
        with open(os.open(self._log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "daws",
                    "store",
                    "--cluster",
                    self._reach.folder,
                    "--idle",
                    str(self._idle_s),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )


def _last_line(path: Path) -> str:
    """The last line of a log file, or an error message if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LINE_BYTES_MAX))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError as error:
        return str(error)
    return lines[-1] if lines else "nothing"


def is_local(host: str) -> bool:
    """Is that an address of this machine?"""
    try:
        with socket(AF_INET6 if ":" in host else AF_INET, SOCK_STREAM) as sock:
            sock.bind((host, 0))
    except OSError:
        return False
    return True
