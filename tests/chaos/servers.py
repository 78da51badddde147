"""A Valkey server and its replica for a chaos run: killed, stopped, and replaced by a replica that lags."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hiredis

from daws.store.valkey.cells import STAMP_BYTES, decode_log_row
from tests.valkey import binary, free_port

PASSWORD = "never-to-be-seen"
READY_S = 30.0
Start = Callable[[str, list[str]], "subprocess.Popen[bytes]"]


class Pair:
    """`start` starts a process under a name, and marks it as one of the run."""

    def __init__(self, folder: Path, address: str, start: Start) -> None:
        self.address = address
        self.ports = [free_port(), free_port()]
        self.primary = 0
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self._folders = [folder / f"valkey-{number}" for number in range(2)]
        self._start = start
        for one in self._folders:
            one.mkdir()
        self.start(0)
        self.start(1)

    @property
    def url(self) -> str:
        return ",".join([f"redis://:{PASSWORD}@{self.address}:{port}" for port in self.ports])

    def start(self, number: int) -> None:
        """As the primary, or as its replica."""
        other = 1 - number
        options = ["--port", str(self.ports[number]), "--bind", self.address, "--dir", str(self._folders[number])]
        options += ["--requirepass", PASSWORD, "--masterauth", PASSWORD, "--appendonly", "yes", "--save", ""]
        options += ["--repl-diskless-sync-delay", "0", "--repl-timeout", "60"]
        if number != self.primary:
            options += ["--replicaof", self.address, str(self.ports[other])]
        self.processes[number] = self._start(f"valkey-{number}", [binary(), *options])
        until_s = time.monotonic() + READY_S
        while True:
            with contextlib.suppress(OSError, hiredis.ReplyError):
                if self.ask(number, "PING"):
                    return
            assert time.monotonic() < until_s, f"Valkey server {number} does not start"
            time.sleep(0.01)

    def ask(self, number: int, *words: str) -> Any:
        with socket.create_connection((self.address, self.ports[number]), READY_S) as client:
            reader = hiredis.Reader()
            client.sendall(hiredis.pack_command(("AUTH", PASSWORD)) + hiredis.pack_command(words))  # type: ignore[arg-type]
            answers: list[Any] = []
            while len(answers) < 2:
                reader.feed(client.recv(1 << 20) or b"")
                while (answer := reader.gets()) is not False:
                    answers.append(answer)
        if isinstance(answers[1], hiredis.ReplyError):
            raise answers[1]
        return answers[1]

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        return self.processes[self.primary]

    def is_up(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """The primary. Its replica waits for it."""
        self.process.kill()
        self.process.wait()

    def come_back(self) -> None:
        if not self.is_up():
            self.start(self.primary)

    def has_replica(self) -> bool:
        """Is there one that could take over?"""
        if not self.is_up() or self.processes[1 - self.primary].poll() is not None:
            return False
        said = bytes(self.ask(1 - self.primary, "INFO")).decode()
        return "master_link_status:up" in said and "aof_rewrite_in_progress:0" in said  # what it has is on its disk

    def promote_lagging(self, lag_s: float) -> None:
        """The replica hears nothing for so long; then the primary dies, and the replica takes over without it."""
        old, new = self.primary, 1 - self.primary
        os.kill(self.processes[new].pid, signal.SIGSTOP)
        time.sleep(lag_s)
        self.kill()
        # What the dead primary has sent waits in the replica's socket: it must not be read.
        self.primary = new
        self.processes[new].kill()
        self.processes[new].wait()
        self.start(new)
        assert old != self.primary

    def replace_replica(self) -> None:
        """The one that was the primary before comes back as a replica."""
        old = 1 - self.primary
        if self.processes[old].poll() is not None:
            self.start(old)

    def committed(self, name: str) -> Counter[int]:
        """How often each task was committed, from the logs of the server that is the primary now."""
        logs = [key.decode() for key in self.ask(self.primary, "KEYS", f"{{daws:{name}:*}}:log")]
        rows = [
            decode_log_row(memoryview(one)[STAMP_BYTES:])
            for key in logs
            for one in self.ask(self.primary, "LRANGE", key, "0", "-1")
        ]
        return Counter(row if isinstance(row, int) else row.task for row in rows)
