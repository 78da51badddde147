"""One command from start to end: its exit code, and one line on stderr for each error."""

import argparse
import errno
import sys
from collections.abc import Sequence

from daws.cli.importing import importing
from daws.cli.messages import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_PIPE,
    EXIT_USAGE,
    allow_all_letters,
    complain,
    one_line,
    silence,
)


def run_command(argv: Sequence[str] | None) -> int:
    """Run the typed command and return the exit code."""
    if sys.stdout is None:
        return _failed("stdout is closed; send it to /dev/null if it is not wanted", EXIT_USAGE)
    try:
        allow_all_letters()
        try:
            return _run(_parsed(argv))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has closed it.
        silence(sys.stdout.fileno())
        return EXIT_PIPE
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return _failed(f"{error.strerror}; raise the limit (ulimit -n)", EXIT_FAILED)
        if error.filename is None:
            silence(sys.stdout.fileno())
            return _failed(f"cannot write the output: {error.strerror}", EXIT_FAILED)
        return _failed(one_line(f"{error.filename}: {error.strerror}"), EXIT_FAILED)
    except KeyboardInterrupt:
        complain("interrupted")
        return EXIT_INTERRUPTED
    except MemoryError:
        return _failed("out of memory; try fewer tasks or nodes", EXIT_FAILED)


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    with importing():
        from daws.cli.parser import make_parser

        return make_parser().parse_args(argv)


def _run(arguments: argparse.Namespace) -> int:
    from daws.cli.options import reset_log, set_up_log
    from daws.model.errors import DawsError, InternalError, UsageError

    try:
        set_up_log(arguments)
        try:
            code: int = arguments.run(arguments)
            return code
        finally:
            reset_log()
    except UsageError as error:
        return _failed(one_line(error), EXIT_USAGE)
    except InternalError as error:
        return _failed(str(error), EXIT_FAILED)
    except DawsError as error:
        return _failed(one_line(error), EXIT_FAILED)


def _failed(message: str, code: int) -> int:
    complain(f"error: {message}")
    return code
