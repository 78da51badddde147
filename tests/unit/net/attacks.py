"""What strangers may try at a door. Each attack gets the address, and ends when the door has hung up on it."""

import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from daws.net.address import Tcp, Unix, parse_address
from daws.net.certificates import Pair, issue
from daws.net.handshake import Handshake, Hello

Attack = Callable[[str], None]
WAIT_S = 30


def plain(address: str) -> socket.socket:
    where = parse_address(address)
    if isinstance(where, Tcp):
        return socket.create_connection(where, WAIT_S)
    assert isinstance(where, Unix)
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(WAIT_S)
    sock.connect(where.path)
    return sock


def careless(folder: Path, role: str = "client") -> ssl.SSLContext:
    """TLS with somebody's keys that trusts every server."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.load_cert_chain(folder / f"{role}.pem", folder / f"{role}.key")
    return made


def outlast(sock: socket.socket) -> bytes:
    """Read until the other side hangs up."""
    came = b""
    try:
        while part := sock.recv(65536):
            came += part
    except ConnectionError:
        pass
    except ssl.SSLError:
        pass
    return came


def says(*words: bytes) -> Attack:
    """Somebody without TLS."""

    def attack(address: str) -> None:
        with plain(address) as sock:
            for word in words:
                try:
                    sock.sendall(word)
                except OSError:
                    return
            outlast(sock)

    return attack


def hangs_up(address: str) -> None:
    plain(address).close()


def closes_half(address: str) -> None:
    with plain(address) as sock:
        sock.shutdown(socket.SHUT_WR)
        outlast(sock)


def closes_half_after(word: bytes) -> Attack:
    def attack(address: str) -> None:
        with plain(address) as sock:
            sock.sendall(word)
            sock.shutdown(socket.SHUT_WR)
            outlast(sock)

    return attack


def drips(word: bytes, pause_s: float) -> Attack:
    """A byte now and then."""

    def attack(address: str) -> None:
        with plain(address) as sock:
            try:
                for byte in word:
                    sock.sendall(bytes([byte]))
                    time.sleep(pause_s)
            except OSError:
                return
            outlast(sock)

    return attack


def resets(address: str) -> None:
    sock = plain(address)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


def secured(context: ssl.SSLContext, *words: bytes) -> Attack:
    """Somebody with TLS of whatever kind."""

    def attack(address: str) -> None:
        try:
            with context.wrap_socket(plain(address)) as sock:
                for word in words:
                    sock.sendall(word)
                outlast(sock)
        except (ssl.SSLError, ConnectionError):
            pass

    return attack


def without_certificate() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def old_tls(folder: Path) -> ssl.SSLContext:
    made = careless(folder)
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    return made


def expired(cluster: Path, into: Path) -> ssl.SSLContext:
    """The keys of a client whose certificate has ended."""
    authority = Pair((cluster / "ca.key").read_bytes(), (cluster / "ca.pem").read_bytes())
    pair = issue(authority, "lab", "client", days=-1)
    (into / "client.key").write_bytes(pair.key)
    (into / "client.pem").write_bytes(pair.certificate)
    return careless(into)


def greeting(hello: Hello) -> bytes:
    return Handshake(hello).greeting()


def recorded(hello: Hello, theirs: Hello) -> bytes:
    """All that a good client has said to somebody else, as somebody who listened has it."""
    client, node = Handshake(hello), Handshake(theirs)
    said = client.greeting()
    word = node.greeting()
    client.room[:] = word
    return said + client.arrived(len(word))


def noise(seed: int, count: int = 4000) -> bytes:
    return Random(seed).randbytes(count)
