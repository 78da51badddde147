"""Modules of clients in a process that runs tasks: those of one client at a time.

Clients may have different modules under the same name, or different versions of one. Each task finds the modules of its
own client; those of other clients are put aside meanwhile, and come back unchanged with their next task. (Threads share
the modules of their process, so tasks of several clients at one time may find each other's.)
"""

import os
import sys
from collections.abc import Collection
from threading import Lock
from types import ModuleType

from daws.model.errors import UnavailableError


class ModulesInUse:
    """The modules in use: those of `folder`, "" if they belong to no client."""

    __slots__ = ("_aside", "_lock", "_names", "folder")

    def __init__(self) -> None:
        self.folder = ""
        self._lock = Lock()
        self._aside: dict[str, dict[str, ModuleType]] = {}
        self._names: dict[str, frozenset[str]] = {"": frozenset()}

    def use(self, folder: str) -> None:
        """Let imports find the modules of this folder first, from now on."""
        with self._lock:
            if folder == self.folder:
                return
            names = self._names_in(folder)
            if self.folder:
                self._aside[self.folder] = _take_away(self._names[self.folder])
                sys.path[:] = [path for path in sys.path if path != self.folder]
                sys.modules.update(self._aside.pop("", {}))
            if folder:
                self._aside[""] = _take_away(names)  # what this process had under these names by itself
                sys.modules.update(self._aside.pop(folder, {}))
                sys.path.insert(0, folder)
            self.folder = folder

    def forget(self, folder: str) -> None:
        """Forget the modules of a folder that is not needed any more."""
        if folder == self.folder:
            self.use("")
        self._aside.pop(folder, None)
        self._names.pop(folder, None)
        for path in [path for path in sys.path_importer_cache if path == folder or path.startswith(f"{folder}/")]:
            sys.path_importer_cache.pop(path, None)

    def _names_in(self, folder: str) -> frozenset[str]:
        known = self._names.get(folder)
        if known is None:
            try:
                found = [name.removesuffix(".py") for name in os.listdir(folder)]
            except OSError as error:
                text = f"the modules of its client are not on this node ({error.strerror}); its log says why"
                raise UnavailableError(text, retry=True) from error
            known = self._names[folder] = frozenset(found)
        return known


def _take_away(names: Collection[str]) -> dict[str, ModuleType]:
    taken = [name for name in sys.modules if name.partition(".")[0] in names]
    return {name: sys.modules.pop(name) for name in taken}
