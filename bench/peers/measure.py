"""What the operating system says about this process and its children."""

import os
import time
from pathlib import Path

SETTLED_BYTES = 100_000
LOOK_S = 0.2
LOOKS_MAX = 50


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def settled_rss_bytes() -> int:
    """Once it does not change any more: some systems work on behind the client's back."""
    last = rss_bytes()
    for _ in range(LOOKS_MAX):
        time.sleep(LOOK_S)
        now = rss_bytes()
        if abs(now - last) < SETTLED_BYTES:
            return now
        last = now
    return last


def moved_bytes(pids: list[int]) -> int:
    """Bytes that these processes wrote to files, pipes and unix sockets, and all that went over the loopback device.

    Not seen: what is written into shared mappings, and what other programs send over loopback is seen as well.
    """
    return sum(map(_written_bytes, pids)) + _loopback_bytes()


def _written_bytes(pid: int) -> int:
    try:
        rows = dict(row.split(": ") for row in Path(f"/proc/{pid}/io").read_text().splitlines())
    except OSError:
        return 0  # it has ended
    return int(rows["wchar"])


def _loopback_bytes() -> int:
    for row in Path("/proc/net/dev").read_text().splitlines():
        name, _, counts = row.partition(":")
        if name.strip() == "lo":
            return int(counts.split()[8])
    return 0


def with_marker(marker: str) -> list[int]:
    """All processes with a setting in their environment that begins so: a run, and all that it started."""
    wanted = marker.encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if any(one.startswith(wanted) for one in Path(f"/proc/{name}/environ").read_bytes().split(b"\0")):
                    found.append(int(name))
            except OSError:
                continue  # has ended, or is somebody else's
    return found


def processor_ticks() -> tuple[int, int]:
    """(busy, all) since the machine started."""
    ticks = [int(one) for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def busy_share(seconds: float) -> float:
    """How busy all processors are while we do nothing: what other programs take."""
    busy, all_ = processor_ticks()
    time.sleep(seconds)
    busy_now, all_now = processor_ticks()
    return (busy_now - busy) / max(1, all_now - all_)
