"""Listening sockets, for event loops and threads alike, and the limits for peers that connect.

TCP always needs keys, also on the loopback, which other users of the machine can reach. Unix sockets need none, in a
folder that only its owner can enter.
"""

import errno
import os
import ssl
from contextlib import suppress
from socket import AF_INET, AF_INET6, AF_UNIX, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

from daws.model.errors import UnavailableError, UsageError
from daws.net.address import Tcp, Unix, check_private, parse_address
from daws.net.complaints import COMPLAINTS
from daws.net.keys import Keys

HANDSHAKE_S = 10.0
"""The time limit from the first byte to the end of the handshake."""
STRANGERS_MAX = 256
"""The most peers that may be in the handshake of one door at one time."""
TOO_MANY = f"{STRANGERS_MAX} others have not said yet who they are"
BREATH_S = 0.5
BACKLOG = 512
FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def listen(bind: str, keys: Keys | None) -> socket:
    where = parse_address(bind)
    check_keys(where, keys)
    if isinstance(where, Tcp):
        family = AF_INET6 if ":" in where.host else AF_INET
    else:
        family = AF_UNIX
    sock = socket(family, SOCK_STREAM)
    try:
        if isinstance(where, Tcp):
            sock.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            sock.bind(tuple(where))
        else:
            sock.bind(where.path)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise UnavailableError(f"cannot listen at {bind}: {error.strerror}", retry=False) from error
    except BaseException:
        sock.close()
        raise
    return sock


def stop_listening(sock: socket) -> None:
    """Close a listening socket and remove its file, if it has one."""
    name = sock.getsockname()
    sock.close()
    if isinstance(name, str):
        with suppress(OSError):
            os.unlink(name)


def check_keys(where: Tcp | Unix, keys: Keys | None) -> None:
    """Raise UsageError if a peer without keys could connect to this address."""
    if isinstance(where, Unix):
        check_private(where.path)
    elif keys is None:
        raise UsageError(
            f"{where} needs keys, as only unix sockets go without: make some by 'daws cluster init DIR' and name DIR"
        )


def context_for(bind: str, keys: Keys | None) -> ssl.SSLContext | None:
    """The TLS context for peers that connect to this address. None for unix sockets, with or without keys."""
    return None if keys is None or isinstance(parse_address(bind), Unix) else keys.server


def address_of(sock: socket) -> str:
    """The address that peers dial to reach this socket."""
    name = sock.getsockname()
    return str(Tcp(name[0], name[1])) if isinstance(name, tuple) else str(name)


def name_of(where: object, address: str) -> str:
    """The name, for the log, of a peer that has connected to this address."""
    return str(Tcp(where[0], where[1])) if isinstance(where, tuple) else f"somebody at {address}"


def complain_if_full(error: OSError, address: str) -> bool:
    """Log that no peer can connect because this process or the system has too many open files, and how to cure it.

    Return whether this is the reason of the error.
    """
    if error.errno not in FULL:
        return False
    COMPLAINTS.warn(f"nobody can come in at {address}: {error.strerror}; raise the limit (ulimit -n)")
    return True
