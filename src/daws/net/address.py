"""Where somebody listens: `host:port`, `[v6 address]:port`, or the path of a unix socket."""

import os
import stat
from contextlib import suppress
from ipaddress import ip_address
from socket import SOCK_DGRAM, gaierror, getaddrinfo, socket
from typing import NamedTuple

from daws.model.errors import UnavailableError, UsageError

PORT_MAX = 65535
LOOPBACK = "127.0.0.1"
ELSEWHERE = "192.0.2.1"
"""An address that no machine has. It shows by which address of its own this machine reaches others."""
UNIX_PATH_BYTES_MAX = 107
"""The longest path of a socket that the Linux kernel accepts."""


class Tcp(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Unix(NamedTuple):
    path: str

    def __str__(self) -> str:
        return self.path


def parse_address(text: str) -> Tcp | Unix:
    if text.startswith("/"):
        if len(os.fsencode(text)) > UNIX_PATH_BYTES_MAX:
            raise UsageError(f"{text}: too long for the path of a socket, at most {UNIX_PATH_BYTES_MAX} bytes")
        return Unix(text)
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= PORT_MAX
    if not colon or not host or not is_port or (":" in host and not is_bracketed):
        raise UsageError(f"{text!r} is not an address: expected host:port, [v6 address]:port or /path/of/a/socket")
    return Tcp(host, int(port))


def check_private(path: str) -> None:
    """Raise UsageError if other users can enter the folder of this unix socket. A unix socket has no keys: its folder
    protects it."""
    folder = os.path.dirname(path)
    try:
        status = os.stat(folder)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    if status.st_uid != os.geteuid():
        raise UsageError(f"{folder} belongs to another user: sockets without keys need a folder of your own")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise UsageError(f"{folder} is open to others: sockets without keys need a private folder (chmod 700 {folder})")


def host_towards(host: str) -> str:
    """The address of this machine by which it reaches that host. Nothing is sent: the kernel looks it up.

    The name of this machine may stand for a loopback address. Then the address is taken by which it reaches other
    machines, if there are any. Raise UnavailableError if the name is not known, or the host cannot be reached.
    """
    try:
        own = _own_address(host)
    except OSError as error:
        cure = "give the address by which other nodes reach this machine with --bind"
        raise UnavailableError(f"{host}: {error.strerror}; {cure}", retry=False) from error
    if _is_loopback(own) and host != "localhost" and not _is_loopback(host):
        with suppress(OSError):  # there is no network
            return _own_address(ELSEWHERE)
    return own


def why_unknown(host: str) -> str:
    """The reason why the name of a machine cannot be resolved to an address; empty if it can."""
    try:
        getaddrinfo(host, PORT_MAX, type=SOCK_DGRAM)
    except (gaierror, UnicodeError) as error:
        return getattr(error, "strerror", None) or "not a name of a machine"
    return ""


def _own_address(host: str) -> str:
    family, _, _, _, address = getaddrinfo(host, PORT_MAX, type=SOCK_DGRAM)[0]
    with socket(family, SOCK_DGRAM) as sock:
        sock.connect(address)
        own: str = sock.getsockname()[0]
    return own


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
