"""The keys of a cluster's folder, opened: TLS for both ends of a link. Keys that other users can read are refused.

Host names are not checked, because they change as nodes come and go. The owner of a node's key is a node of this
cluster, and nobody else is.
"""

import os
import ssl
import stat
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from daws.model.errors import ClusterError

AUTHORITY = "ca"
ROLES_OF = {"node": frozenset(["node", "store"]), "client": frozenset(["client"])}
"""The roles that the owner of a key may have."""


class Keys:
    """The keys of a node or a client: `server` and `client` are TLS 1.3 with certificates on both sides."""

    def __init__(self, folder: str | Path, role: str) -> None:
        """Raise ClusterError if the keys are missing, or if other users can read them."""
        if role not in ROLES_OF:
            raise ClusterError(f"there are no keys for {role!r}; roles are {', '.join(ROLES_OF)}")
        self.folder = Path(folder)
        self.role = role
        self._key = self.folder / f"{role}.key"
        self._certificate = self.folder / f"{role}.pem"
        self._authority = self.folder / f"{AUTHORITY}.pem"
        _check_private(self.folder)
        _check_private(self._key)

    def __repr__(self) -> str:
        return f"<keys of a {self.role} in {self.folder}>"

    def check(self) -> None:
        """Raise ClusterError if key, certificate and authority do not belong together."""
        self._context(ssl.PROTOCOL_TLS_CLIENT)

    @cached_property
    def server(self) -> ssl.SSLContext:
        if self.role == "client":
            raise ClusterError(f"{self.folder}: a client's key cannot be used to listen")
        made = self._context(ssl.PROTOCOL_TLS_SERVER)
        made.num_tickets = 0  # links live long: none is resumed
        return made

    @cached_property
    def client(self) -> ssl.SSLContext:
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, protocol: int) -> ssl.SSLContext:
        made = ssl.SSLContext(protocol)
        made.check_hostname = False
        made.verify_mode = ssl.CERT_REQUIRED
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            made.load_verify_locations(self._authority)
            made.load_cert_chain(self._certificate, self._key, password="")
        except (OSError, ssl.SSLError) as error:
            raise ClusterError(f"{self.folder}: the keys of a {self.role} cannot be read: {error}") from error
        return made


def good_until(folder: str | Path) -> datetime:
    """The time at which the certificate of the cluster's authority ends, and with it all other certificates."""
    reader = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        reader.load_verify_locations(Path(folder) / f"{AUTHORITY}.pem")
    except (OSError, ssl.SSLError) as error:
        raise ClusterError(f"{folder}: {AUTHORITY}.pem cannot be read: {error}") from error
    ends = [ssl.cert_time_to_seconds(str(one["notAfter"])) for one in reader.get_ca_certs()]
    if not ends:
        raise ClusterError(
            f"{folder}: {AUTHORITY}.pem is no certificate of an authority; copy it from where it was made"
        )
    return datetime.fromtimestamp(min(ends), UTC)


def check_time(folder: str | Path) -> None:
    """Raise ClusterError if the certificates of this folder have expired."""
    end = good_until(folder)
    if end < datetime.now(UTC):
        raise ClusterError(
            f"{folder}: its keys were good until {end:%Y-%m-%d}; make a new folder by 'daws cluster init' for "
            "all machines, or set this machine's clock"
        )


def roles_of(certificate: dict[str, Any] | None) -> frozenset[str]:
    """The roles that a peer may have, by the certificate that TLS has verified."""
    for part in (certificate or {}).get("subject", ()):
        for key, value in part:
            if key == "organizationalUnitName":
                return ROLES_OF.get(value, frozenset())
    return frozenset()


def _check_private(path: Path) -> None:
    try:
        status = os.stat(path)
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}; 'daws cluster init' makes a folder with keys") from error
    if status.st_uid not in (os.geteuid(), 0):
        raise ClusterError(f"{path} belongs to another user: use a copy of your own")
    if stat.S_IMODE(status.st_mode) & 0o077:
        mode = "700" if stat.S_ISDIR(status.st_mode) else "600"
        raise ClusterError(f"{path} is open to others, and so are the keys; cure it by: chmod {mode} {path}")
