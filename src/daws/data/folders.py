"""Removing a folder with everything in it."""

import os
from contextlib import suppress


def remove_tree(path: str | os.PathLike[str]) -> None:
    """Remove a folder like shutil.rmtree, which is slow to import. Files that cannot be removed stay."""
    with suppress(OSError):
        with os.scandir(path) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        remove_tree(entry.path)
                    else:
                        os.unlink(entry.path)
        os.rmdir(path)
