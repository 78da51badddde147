"""Removing a folder with everything in it."""

import os


def remove_tree(path: str) -> None:
    """As shutil.rmtree, which would be another import; what cannot be removed stays."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    remove_tree(entry.path)
                else:
                    os.unlink(entry.path)
        os.rmdir(path)
    except OSError:
        pass
