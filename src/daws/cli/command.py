"""One command from start to end: its exit code, and one line on stderr for everything that can go wrong."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence

from daws.cli.messages import allow_all_letters, complain, one_line, silence

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141


def run_command(argv: Sequence[str] | None) -> int:
    """Run what was typed and return the exit code."""
    if sys.stdout is None:
        return _failed("stdout is closed; send it to /dev/null if nobody wants it", EXIT_USAGE)
    try:
        allow_all_letters()
        try:
            return _run(_loaded(argv))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough.
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


def _loaded(argv: Sequence[str] | None) -> argparse.Namespace:
    """What was asked, with all that is needed to do it imported.

    An interrupt ends the process on the spot: raised inside an import, it may be printed and forgotten, or come out as
    another error. Nothing has been done yet that would have to be undone.
    """

    def leave(*_: object) -> None:
        try:
            complain("interrupted")
        finally:
            os._exit(EXIT_INTERRUPTED)

    # Someone else's handler stays, and so does the deafness of a job in the background.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, leave)
    try:
        from daws.cli.parser import make_parser

        arguments = make_parser().parse_args(argv)
        arguments.run = arguments.load()
        return arguments
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _run(arguments: argparse.Namespace) -> int:
    from daws.model.errors import DawsError, InternalError, UsageError

    try:
        code: int = arguments.run(arguments)
        return code
    except UsageError as error:
        return _failed(one_line(error), EXIT_USAGE)
    except InternalError as error:
        return _failed(str(error), EXIT_FAILED)
    except DawsError as error:
        return _failed(one_line(error), EXIT_FAILED)


def _failed(message: str, code: int) -> int:
    complain(f"error: {message}")
    return code
