"""Several hosts on one machine: network namespaces on a bridge where root allows it, loopback otherwise.

A host in a namespace has an address and a link of its own, which can be cut and healed; hosts on loopback share one
address and cannot be cut off from each other.
"""

import os
import subprocess
import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol

NETWORK = "10.78"
CLIENT_HOST = 254


class Hosts(Protocol):
    """Hosts are numbered from 0; the client is none of them, and has an address that all of them reach."""

    can_cut: bool
    client_address: str

    def address(self, host: int) -> str: ...

    def command(self, host: int) -> list[str]:
        """What stands before a command that is to run on a host."""
        ...

    def cut(self, host: int) -> None: ...

    def heal(self, host: int) -> None: ...


class Loopback(AbstractContextManager["Loopback"]):
    can_cut = False
    client_address = "127.0.0.1"

    def address(self, host: int) -> str:
        return "127.0.0.1"

    def command(self, host: int) -> list[str]:
        return []

    def cut(self, host: int) -> None:
        raise AssertionError("hosts on loopback cannot be cut off")

    def heal(self, host: int) -> None:
        pass

    def __exit__(self, *ended: object) -> None:
        pass


class Namespaces(AbstractContextManager["Namespaces"]):
    """Names carry the pid, so that two harnesses on one machine do not meet; what killed ones left is removed."""

    can_cut = True

    def __init__(self, count: int) -> None:
        self.count = count
        self.pid = os.getpid()
        self.subnet = f"{NETWORK}.{self.pid % 250}"
        self.bridge = f"dc{self.pid}"
        self.client_address = f"{self.subnet}.{CLIENT_HOST}"

    def __enter__(self) -> "Namespaces":
        sweep()
        try:
            _ip("link", "add", self.bridge, "type", "bridge")
            _ip("addr", "add", f"{self.client_address}/24", "dev", self.bridge)
            _ip("link", "set", self.bridge, "up")
            for host in range(self.count):
                self._add(host)
        except BaseException:
            self._remove()
            raise
        return self

    def _add(self, host: int) -> None:
        name, outer = self.name(host), f"{self.bridge}-{host}"
        _ip("netns", "add", name)
        _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", outer, "master", self.bridge, "up")
        _ip("-n", name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")

    def name(self, host: int) -> str:
        return f"daws-chaos-{self.pid}-{host}"

    def address(self, host: int) -> str:
        return f"{self.subnet}.{host + 1}"

    def command(self, host: int) -> list[str]:
        return ["ip", "netns", "exec", self.name(host)]

    def cut(self, host: int) -> None:
        _ip("link", "set", f"{self.bridge}-{host}", "down")

    def heal(self, host: int) -> None:
        _ip("link", "set", f"{self.bridge}-{host}", "up")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        for host in range(self.count):
            _try_ip("link", "del", f"{self.bridge}-{host}")  # with its namespace it would go some time later
            _try_ip("netns", "del", self.name(host))
        _try_ip("link", "del", self.bridge)


def sweep() -> None:
    """Remove what harnesses have left that are no longer alive."""
    for name in _names("netns", "list"):
        parts = name.split("-")
        if name.startswith("daws-chaos-") and len(parts) == 4 and not os.path.exists(f"/proc/{parts[2]}"):
            _try_ip("netns", "del", name)
    for name in _names("-br", "link"):  # a bridge may outlive its namespaces, and takes its addresses from others
        if name.startswith("dc") and name[2:].isdigit() and not os.path.exists(f"/proc/{name[2:]}"):
            _try_ip("link", "del", name)


def _names(*arguments: str) -> list[str]:
    listed = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False).stdout
    return [line.split()[0] for line in listed.splitlines() if line.split()]


def hosts_of(count: int, wanted: str = "auto") -> Namespaces | Loopback:
    """`wanted` is namespaces, loopback, or auto for the former where they can be made."""
    if wanted == "namespaces" or (wanted == "auto" and can_make_namespaces()):
        return Namespaces(count)
    return Loopback()


def can_make_namespaces() -> bool:
    if not sys.platform.startswith("linux") or os.geteuid():
        return False
    name = f"daws-chaos-{os.getpid()}-try"
    try:
        _ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    _try_ip("netns", "del", name)
    return True


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _try_ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=False, capture_output=True)
