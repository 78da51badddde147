"""How much memory a worker and its children hold, from /proc."""

import os


def held_bytes(pid: int) -> int:
    """Memory of a process and its descendants that is theirs alone: files they have mapped do not count."""
    total = 0
    waiting = [pid]
    while waiting:
        pid = waiting.pop()
        try:
            with open(f"/proc/{pid}/status", "rb") as file:
                for line in file:
                    if line.startswith(b"RssAnon:"):
                        total += int(line.split()[1]) * 1024
                        break
            for thread in os.listdir(f"/proc/{pid}/task"):  # each has the children that it started
                with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                    waiting += map(int, file.read().split())
        except (OSError, ValueError):
            continue  # it has just ended
    return total
