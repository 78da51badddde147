"""The folder of a cluster: `cluster.toml`, the authority, and keys for nodes and clients; for its owner alone."""

import os
from contextlib import suppress
from pathlib import Path

from daws.model.errors import ClusterError
from daws.net.certificates import DAYS, issue, make_authority
from daws.net.config import FILE, ClusterConfig
from daws.net.keys import AUTHORITY, ROLES_OF


def init_cluster(folder: str | Path, config: ClusterConfig, days: float = DAYS) -> None:
    """Make the folder of a cluster, whole or not at all.

    The folder may exist if it is empty; it becomes private. Raise ClusterError if it cannot be used.
    """
    config.check()
    path = Path(folder)
    authority = make_authority(config.name, days)
    pairs = {role: issue(authority, config.name, role, days) for role in ROLES_OF}
    contents = {FILE: config.to_toml().encode()}
    for name, pair in {AUTHORITY: authority, **pairs}.items():
        contents[f"{name}.key"], contents[f"{name}.pem"] = pair.key, pair.certificate
    try:
        is_new = _make_folder(path)
    except OSError as error:
        raise ClusterError(f"{path}: {error.strerror}") from error
    written: list[Path] = []
    try:
        for name, content in contents.items():
            _write(path / name, content, written)
    except BaseException:
        for one in written:
            one.unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):
                path.rmdir()
        raise


def _make_folder(path: Path) -> bool:
    """Make a folder for its owner alone. Return False if it was there and is empty."""
    try:
        path.mkdir(mode=0o700)
        return True
    except FileExistsError as error:
        if not path.is_dir() or any(path.iterdir()):
            raise ClusterError(f"{path} exists already; a cluster is made in a new or empty folder") from error
    path.chmod(0o700)
    return False


def _write(path: Path, content: bytes, written: list[Path]) -> None:
    """Write a new file. It is one of those `written` as soon as it is there."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    written.append(path)
    with open(descriptor, "wb") as file:
        file.write(content)
