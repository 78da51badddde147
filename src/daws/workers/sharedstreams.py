"""The standard streams and `logging` of a node whose workers are threads: the output of a task goes to its client.

This is for processes that are nodes and nothing else. Output of other threads, and of programs that tasks have started,
goes where the node's own output goes.
"""

import sys
from collections.abc import Callable
from typing import Any

from daws.wire.worker import Printed
from daws.workers.logs import Logs
from daws.workers.nest import Hand, here
from daws.workers.signs import Signs


class SharedStream:
    """A replacement for `sys.stdout` (1) or `sys.stderr` (2)."""

    def __init__(self, stream: int, original: Any) -> None:
        self._stream = stream
        self._original = original

    def write(self, text: str) -> int:
        hand = here.hand
        if hand is None or hand.order is None:
            return int(self._original.write(text))
        before = (hand.lines or {}).get(self._stream, "")
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        if end:
            _say(hand, self._stream, before + text[:end])
            before = ""
        if hand.lines is None:
            hand.lines = {}
        hand.lines[self._stream] = before + text[end:]
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def share_streams() -> None:
    """Replace the standard streams of this process from now on."""
    sys.stdout, sys.stderr = SharedStream(1, sys.stdout), SharedStream(2, sys.stderr)


class _SharedLogs:
    """The result of `share_logs` for this process."""

    signs = Signs()  # that some run has something to tell at its end
    logs: Logs | None = None


shared = _SharedLogs()


def share_logs(name: str, elsewhere: Callable[[int, bytes], None]) -> Logs:
    """Send log records and warnings of tasks to their client, the only one, from now on. `elsewhere` sends the records
    of threads that run no task; any thread may call it."""

    def send(what: int, text: bytes) -> None:
        hand = here.hand
        if hand is None or hand.order is None:
            elsewhere(what, text)
        else:
            hand.host.say(hand, Printed(hand.order.run, what, text))

    shared.logs = Logs(name, send, shared.signs)
    shared.logs.begin()
    return shared.logs


def end_logs() -> None:
    """A run is over: tell how many of its records were left out."""
    shared.signs.any = False
    if shared.logs is not None:
        shared.logs.end_run()


def end_lines(hand: Hand) -> None:
    """Report incomplete lines of a hand whose run is over."""
    lines, hand.lines = hand.lines, None
    for stream, text in (lines or {}).items():
        if text:
            _say(hand, stream, text)


def _say(hand: Hand, stream: int, text: str) -> None:
    if hand.order is not None:
        hand.host.say(hand, Printed(hand.order.run, stream, text.encode(errors="replace")))
