"""A recorded command, run in a folder that all commands of a workflow share.

Runs in workers, so it imports nothing that takes time before it is called.
"""

import os

SHOWN_BYTES = 2000


class CommandError(Exception):
    """A command that did not do what the workflow says of it."""


class Command:
    """A function for the commands of one kind of task, because schedulers tell tasks apart by their function."""

    __slots__ = ("__name__", "folder")

    def __init__(self, kind: str, folder: str) -> None:
        self.__name__ = kind
        self.folder = folder

    def __call__(self, after: object, argv: tuple[str, ...], reads: tuple[str, ...], writes: tuple[str, ...]) -> None:
        """Run `argv`; `after` is only waited for. Files are named as seen from the folder."""
        import subprocess

        self._expect(reads, "it cannot read {}: there is no such file")
        for name in writes:
            os.makedirs(os.path.dirname(os.path.join(self.folder, name)), exist_ok=True)
        try:
            ended = subprocess.run(argv, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except OSError as error:
            raise CommandError(f"{argv[0]!r} cannot be started: {error.strerror}") from error
        if ended.returncode:
            how = f"exited with code {ended.returncode}" if ended.returncode > 0 else f"got signal {-ended.returncode}"
            said = (ended.stderr or ended.stdout)[-SHOWN_BYTES:].decode(errors="replace").strip()
            raise CommandError(f"{argv[0]!r} {how}" + (f"; the last it wrote: {said}" if said else ""))
        self._expect(writes, f"{argv[0]!r} ended well but has not written {{}}")

    def _expect(self, names: tuple[str, ...], complaint: str) -> None:
        for name in names:
            if not os.path.exists(os.path.join(self.folder, name)):
                raise CommandError(complaint.format(repr(name)))

    def __reduce__(self) -> tuple[type["Command"], tuple[str, str]]:
        return Command, (self.__name__, self.folder)
