"""Listening sockets and connecting to them, for event loops and threads alike, and the limits for peers that connect.

TCP always needs keys, also on the loopback, which other users of the machine can reach. Unix sockets need none, in a
folder that only its owner can enter.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import AF_INET, AF_INET6, AF_UNIX, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

from daws.model.errors import PeerError, UnavailableError, UsageError
from daws.net.address import Tcp, Unix, check_private, parse_address
from daws.net.complaints import COMPLAINTS
from daws.net.keys import Keys
from daws.net.tls import is_final, reason_of

HANDSHAKE_S = 10.0
"""The time limit from the first byte to the end of the handshake."""
STRANGERS_MAX = 256
"""The most peers that may be in the handshake of one door at one time."""
TOO_MANY = f"{STRANGERS_MAX} others are in the handshake already"
BREATH_S = 0.5
BACKLOG = 512
FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class ListeningSocket:
    """A listening socket. `address` is where peers find it, with the port that the system has chosen. `context` is the
    TLS of its peers; None for unix sockets, with or without keys."""

    def __init__(self, bind: str, keys: Keys | None) -> None:
        """Raise UsageError or UnavailableError if this process cannot listen there."""
        where = parse_address(bind)
        check_keys(where, keys)
        self.context = None if keys is None or isinstance(where, Unix) else keys.server
        family = AF_UNIX if isinstance(where, Unix) else AF_INET6 if ":" in where.host else AF_INET
        self.sock = socket(family, SOCK_STREAM)
        try:
            if isinstance(where, Tcp):
                self.sock.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
            self.sock.bind(where.path if isinstance(where, Unix) else tuple(where))
            self.sock.listen(BACKLOG)
        except OSError as error:
            self.sock.close()
            raise UnavailableError(f"cannot listen at {bind}: {error.strerror}", retry=False) from error
        except BaseException:
            self.sock.close()
            raise
        name = self.sock.getsockname()
        self.address = str(Tcp(name[0], name[1])) if isinstance(name, tuple) else str(name)

    def accept(self) -> tuple[socket, str]:
        """A new peer's socket, and its name for the log."""
        sock, where = self.sock.accept()
        return sock, str(Tcp(where[0], where[1])) if isinstance(where, tuple) else f"a process at {self.address}"

    def warn_if_full(self, error: OSError) -> bool:
        """Log that no peer can connect because this process or the system has too many open files, and how to cure it.

        Return whether this is the reason why `accept` has failed.
        """
        if error.errno in FULL:
            COMPLAINTS.warn(
                f"no connection can be accepted at {self.address}: {error.strerror}; raise the limit (ulimit -n)"
            )
        return error.errno in FULL

    def close(self) -> None:
        """Close the socket and remove its file, if it has one."""
        self.sock.close()
        if self.address.startswith("/"):
            with suppress(OSError):
                os.unlink(self.address)


def refusal_of(name: str, why: Exception) -> str:
    """A line for the log about a peer that was not let in."""
    return f"{name} was refused: {reason_of(why)}"


@contextmanager
def reaching(address: str, abort: Callable[[], object]) -> Iterator[None]:
    """Connect to this address; `abort` is called if that fails.

    Raise UnavailableError if nothing answers (`retry` is true), or if the two ends do not fit together (`retry` is
    false).
    """
    try:
        yield
    except (OSError, PeerError) as error:
        abort()
        raise UnavailableError(f"{address}: {reason_of(error)}", retry=not is_final(error)) from error
    except BaseException:
        abort()
        raise


def check_keys(where: Tcp | Unix, keys: Keys | None) -> None:
    """Raise UsageError if a peer without keys could connect to this address."""
    if isinstance(where, Unix):
        check_private(where.path)
    elif keys is None:
        raise UsageError(
            f"{where} needs keys, as only unix sockets go without: make some by 'daws cluster init DIR' and name DIR"
        )
