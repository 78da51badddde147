"""Removing folders with everything in them, or only what is in them."""

import os


def remove_tree(path: str) -> None:
    """As shutil.rmtree, which would be another import; what cannot be removed stays."""
    try:
        _empty(path)
        os.rmdir(path)
    except OSError:
        pass


def empty_tree(path: str) -> bool:
    """Remove all that is in a folder of ours, whatever its programs have forbidden; False if something stays."""
    try:
        os.chmod(path, 0o700)
        _empty(path)
        return True
    except OSError:
        return False


def _empty(path: str) -> None:
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                remove_tree(entry.path)
            else:
                os.unlink(entry.path)
