"""The surroundings of a run in its process: environment variables and the working directory.

A worker serves many runs, so the settings of one of them are undone before the next. Changes that a task itself makes
in `os.environ` stay, as in any pool of processes; the working directory does not, since it would break relative paths.
"""

import os
from typing import Any

from daws.wire.worker import RunOptions
from daws.workers.blas import LoadedLibraries, follows_cores
from daws.workers.signs import Signs


class Surroundings:
    """The environment of this process, and the way back to its first state."""

    def __init__(self, signs: Signs) -> None:
        self._signs = signs
        self.home = _here()
        self.is_away = False
        self.is_changed = False
        self._cores = 0
        self._devices = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        self._before: dict[str, str | None] = {}
        self._followers = follows_cores(os.environ)
        self._libraries = LoadedLibraries()
        self._use_cores(1)

    def follow_moves(self) -> None:
        """Notice when a task changes the working directory, which asking after each run would be too slow for."""
        move, move_by_fd = os.chdir, os.fchdir

        def chdir(path: int | str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
            self.is_away = self._signs.any = True
            move(path)

        def fchdir(fd: Any) -> None:
            self.is_away = self._signs.any = True
            move_by_fd(fd)

        os.chdir, os.fchdir = chdir, fchdir

    def go_home(self) -> None:
        os.chdir(self.home)
        self.is_away = False

    def change(self, options: RunOptions | None) -> None:
        """Set the options of the next run, and undo those of earlier ones."""
        for name, value in self._before.items():
            self._set(name, value)
        self._before.clear()
        self._use_cores(options.cores if options is not None else 1)
        if options is not None:
            if options.devices is not None:
                self._replace("CUDA_VISIBLE_DEVICES", ",".join(map(self._device, options.devices)))
            for name, text in options.environment:
                self._replace(name, text)
        self.is_changed = options is not None

    def _device(self, number: int) -> str:
        """The name of a device, among those that this process may use if some were chosen."""
        return self._devices[number] if number < len(self._devices) else str(number)

    def _use_cores(self, cores: int) -> None:
        if cores != self._cores:
            self._cores = cores
            for name in self._followers:
                os.environ[name] = str(cores)
            if self._followers:
                self._libraries.use(cores, self._followers)

    def _replace(self, name: str, value: str) -> None:
        self._before.setdefault(name, os.environ.get(name))
        os.environ[name] = value

    @staticmethod
    def _set(name: str, value: str | None) -> None:
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # removed under our feet
        return "/"
