"""A small disk for each node, which can be filled: a file system in memory where root allows it."""

import errno
import os
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

BLOCK = bytes(1 << 20)


class Disks(AbstractContextManager["Disks"]):
    """`folder(host)` is where a node keeps its files. Without root all share one disk, which nobody may fill."""

    def __init__(self, folder: Path, hosts: int, size_mb: int = 96) -> None:
        self.roots = [folder / f"disk-{host}" for host in range(hosts)]
        self.size_mb = size_mb
        self.can_fill = False

    def __enter__(self) -> "Disks":
        for root in self.roots:
            root.mkdir(mode=0o700)
        self.can_fill = os.geteuid() == 0 and all(map(self._mount, self.roots))
        return self

    def _mount(self, root: Path) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", f"size={self.size_mb}m,mode=700", "daws-chaos", str(root)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def folder(self, host: int) -> str:
        return str(self.roots[host])

    def fill(self, host: int) -> None:
        assert self.can_fill
        try:
            with open(self.roots[host] / "full", "wb", buffering=0) as file:
                while True:
                    file.write(BLOCK)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    def empty(self, host: int) -> None:
        (self.roots[host] / "full").unlink(missing_ok=True)

    def left_over(self) -> list[str]:
        """What lies on the disks, to the folders of killed nodes that nobody has swept yet."""
        return [str(path) for root in self.roots for path in root.iterdir() if path.name != "full"]

    def __exit__(self, *ended: object) -> None:
        for root in self.roots:
            subprocess.run(["umount", "-l", str(root)], check=False, capture_output=True)
