"""The configuration of a cluster: `cluster.toml` in its folder, checked before anything else is done with it."""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from daws.model.errors import ClusterError, UnavailableError
from daws.net.address import PORT_MAX, Tcp, why_unknown
from daws.wire import PROTOCOL

FILE = "cluster.toml"
EMBEDDED = "embedded"
STORES = ("redis://", "rediss://", "unix://")
NAME_BYTES_MAX = 64
HOSTS = ("127.0.0.1",)
PORT = 7878
LEASE_S = 6.0
LEASE_S_MAX = 3600.0
IDLE_S = 60.0
IDLE_S_MAX = 86400.0
LOSSES_LIMIT = 1000
SHARDS_MAX = 256

_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_BYTES_MAX - 1}}}", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,253}", re.ASCII)


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `cluster.toml`.

    `hosts` are addresses of machines: the embedded store listens on the first of them, at `port`. Nodes listen on any
    free port, or on one of `node_ports` (first and last). A node that is silent for `lease_s` is taken for dead, and
    other nodes take over its tasks. Links that are not used for `idle_s` are closed. A task that was running on
    `losses_max` nodes when they died fails.

    `store` may be several addresses with commas between them. The files beside it are for addresses that begin with
    rediss:// and lie in the cluster's folder. Such a store is divided into `store_shards`; 0 lets the server's kind
    decide.
    """

    name: str
    protocol: int = PROTOCOL
    store: str = EMBEDDED
    store_ca: str = ""
    store_cert: str = ""
    store_key: str = ""
    store_shards: int = 0
    hosts: tuple[str, ...] = HOSTS
    port: int = PORT
    node_ports: tuple[int, int] = (0, 0)
    lease_s: float = LEASE_S
    idle_s: float = IDLE_S
    losses_max: int = 3

    @classmethod
    def load(cls, folder: str | Path) -> "ClusterConfig":
        path = Path(folder) / FILE
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            raise ClusterError(
                f"{folder}: there is no {FILE}. Is this the right folder? 'daws cluster init' makes a new cluster in a "
                "folder of its own"
            ) from None
        except NotADirectoryError:
            is_config = path.parent.name == FILE
            cure = f"folder: {os.path.dirname(folder) or '.'!r}" if is_config else "folder of a cluster"
            raise ClusterError(f"{folder} is a file; give the {cure}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ClusterError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
        try:
            return cls.parse(text)
        except ClusterError as error:
            raise ClusterError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, text: str) -> "ClusterConfig":
        try:
            given = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ClusterError(str(error)) from error
        for key in given:
            if key not in cls.__struct_fields__:
                raise ClusterError(f"unknown key {key!r}; keys are {', '.join(cls.__struct_fields__)}")
        try:
            config = msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            raise ClusterError(str(error).replace(" - at `$.", " - at `")) from error
        config.check()
        return config

    def check(self) -> None:
        """Raise ClusterError if a value makes no sense."""
        if not _NAME.fullmatch(self.name):
            raise ClusterError(
                f"name {self.name!r}: expected up to {NAME_BYTES_MAX} letters, digits, '.', '_' and '-', "
                "beginning with a letter or digit"
            )
        if self.protocol != PROTOCOL:
            raise ClusterError(
                f"the cluster speaks protocol {self.protocol}, this daws {PROTOCOL}: install the daws it was made with"
            )
        for url in self.store_urls:
            if not (url.startswith(STORES) and url.isprintable()):
                raise ClusterError(f"store {shown(url)!r}: expected '{EMBEDDED}' or a URL of {', '.join(STORES)}")
            _check_port(url)
        if not 0 <= self.store_shards <= SHARDS_MAX:
            raise ClusterError(
                f"store_shards {self.store_shards}: expected 1 to {SHARDS_MAX}, or 0 for what suits the server"
            )
        if self.store_shards > 1 and self.store == EMBEDDED:
            raise ClusterError("store_shards: the embedded store is in one piece; leave it out")
        if not self.hosts:
            raise ClusterError("hosts: give at least one address")
        for host in self.hosts:
            if not _HOST.fullmatch(host):
                raise ClusterError(f"hosts: {host!r} is not a name or an address of a machine")
        if not 1 <= self.port <= PORT_MAX:
            raise ClusterError(f"port {self.port}: expected 1 to {PORT_MAX}")
        first, last = self.node_ports
        if (first, last) != (0, 0) and not 1 <= first <= last <= PORT_MAX:
            raise ClusterError(f"node_ports [{first}, {last}]: expected a first and a last port, or [0, 0] for any")
        if not 0.1 <= self.lease_s <= LEASE_S_MAX:
            raise ClusterError(f"lease_s {self.lease_s:g}: expected 0.1 to {LEASE_S_MAX:g} seconds")
        if not 1 <= self.idle_s <= IDLE_S_MAX:
            raise ClusterError(f"idle_s {self.idle_s:g}: expected 1 to {IDLE_S_MAX:g} seconds")
        if not 1 <= self.losses_max <= LOSSES_LIMIT:
            raise ClusterError(f"losses_max {self.losses_max}: expected 1 to {LOSSES_LIMIT} nodes")

    @property
    def store_urls(self) -> tuple[str, ...]:
        """The addresses of a store that is not embedded."""
        return () if self.store == EMBEDDED else tuple([one.strip() for one in self.store.split(",")])

    @property
    def store_hosts(self) -> tuple[str, ...]:
        """The machines of the store: the first of the `hosts`, or the servers in its URLs. A unix socket has none."""
        urls = self.store_urls
        return tuple([host for url in urls if (host := urlsplit(url).hostname)]) if urls else self.hosts[:1]

    def check_hosts(self, folder: str | os.PathLike[str], error: UnavailableError) -> None:
        """Raise an error that names a machine of the store whose name is not found, if there is one. Called after an
        attempt to reach the store has failed with this `error`."""
        for host in self.store_hosts:
            why = why_unknown(host)
            if why:
                key = "hosts" if self.store == EMBEDDED else "store"
                said = f"'{key}' in {Path(folder) / FILE} names a machine that is not found: {host} ({why})"
                raise UnavailableError(said, error.retry) from error

    def binds(self, host: str) -> Iterator[str]:
        """The addresses on this host where a node may listen: it tries one after the other."""
        first, last = self.node_ports
        return (str(Tcp(host, port)) for port in range(first, last + 1))

    def to_toml(self) -> str:
        """The text of `cluster.toml`, with comments for people who edit it."""
        quoted = ", ".join(f'"{host}"' for host in self.hosts)
        store = _quoted(self.store)
        files = "".join(
            [
                f'{name} = "{_quoted(value)}"\n'
                for name in ("store_ca", "store_cert", "store_key")
                if (value := getattr(self, name))
            ]
        )
        if self.store_shards:
            files += f"store_shards = {self.store_shards}\n"
        return f"""\
# A daws cluster. Processes with the keys beside this file may join it.
name = "{self.name}"
protocol = {self.protocol}

# "embedded", or the URL of a Valkey or Redis server, as in "redis://10.0.0.1:6379"; several, with commas between them,
# are a primary and its replicas, or some servers of a Cluster. For rediss:// there are also store_ca, and for servers
# that ask for a certificate store_cert and store_key: files in this folder. store_shards is the number of pieces in
# which the records of tasks are kept; if it is left out, one, or four for each primary of a Cluster.
store = "{store}"
{files}
# Addresses of machines. The embedded store listens on the first one, at this port.
hosts = [{quoted}]
port = {self.port}

# The first and the last port that nodes may listen on; zeros stand for any.
node_ports = [{self.node_ports[0]}, {self.node_ports[1]}]

# A node that is silent for this many seconds is taken for dead, and other nodes take over its tasks.
lease_s = {self.lease_s}

# Connections that are not used for this many seconds are closed, and opened again when they are needed.
idle_s = {self.idle_s}

# A task that was running on this many nodes when they died is not tried again: it may have killed them.
losses_max = {self.losses_max}
"""


def _check_port(url: str) -> None:
    """Raise ClusterError if the port of this URL is no port. `urlsplit` checks it only when the attribute is read."""
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ClusterError(f"store {shown(url)!r}: a port is a number from 1 to {PORT_MAX}") from None


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def shown(url: str) -> str:
    """The address of a store without its password."""
    before, at, after = url.rpartition("@")
    scheme, _, who = before.partition("://")
    user, colon, _ = who.partition(":")
    return f"{scheme}://{user}{':***' if colon else ''}@{after}" if at else url
