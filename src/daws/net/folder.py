"""The folder of a cluster: `cluster.toml`, the authority, and keys for nodes and clients; for its owner alone."""

import os
import shutil
from pathlib import Path

from daws.model.errors import ClusterError
from daws.net.certificates import DAYS, Pair, issue, make_authority
from daws.net.config import FILE, ClusterConfig
from daws.net.keys import AUTHORITY, ROLES_OF


def init_cluster(folder: str | Path, config: ClusterConfig, days: float = DAYS) -> None:
    """Make the folder of a cluster, whole or not at all. Raise ClusterError if the folder exists already."""
    config.check()
    path = Path(folder)
    authority = make_authority(config.name, days)
    pairs = {role: issue(authority, config.name, role, days) for role in ROLES_OF}
    try:
        path.mkdir(mode=0o700)
    except FileExistsError as error:
        raise ClusterError(f"{path} exists already; a cluster is made in a new folder") from error
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}") from error
    try:
        for name, pair in {AUTHORITY: authority, **pairs}.items():
            _write_pair(path, name, pair)
        _write(path / FILE, config.to_toml().encode())
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def _write_pair(folder: Path, name: str, pair: Pair) -> None:
    _write(folder / f"{name}.key", pair.key)
    _write(folder / f"{name}.pem", pair.certificate)


def _write(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
