"""The `daws` command: thin calls into the layers below, and the only package that prints.

Modules that a command needs are imported when it runs, so that `daws --help` answers at once. This file imports nothing
that takes time, because an interrupt before `main` is called leaves a traceback.
"""

import sys

TYPE_CHECKING = False  # as in typing, which would take several milliseconds
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command and return its exit code: 0 success, 1 failure, 2 wrong use, 130 interrupted."""
    try:
        from daws.cli.command import run_command
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("daws: interrupted", file=sys.stderr)
        return 130
    return run_command(argv)
