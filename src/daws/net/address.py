"""Where somebody listens: `host:port`, `[v6 address]:port`, or the path of a unix socket."""

import os
import stat
from typing import NamedTuple

from daws.model.errors import UsageError

PORT_MAX = 65535
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
        raise UsageError(f"{folder} belongs to somebody else: sockets without keys live in a folder of one's own")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise UsageError(f"{folder} is open to others: sockets without keys need a private folder (chmod 700 {folder})")
