"""The `daws` command: thin calls into the layers below, and the only place that prints.

What a command needs is imported when it runs, so that `daws --help` answers at once.
"""

import os
import sys
from collections.abc import Sequence

from daws.cli.parser import make_parser

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 fine, 1 tasks failed, 2 asked wrongly, 130 interrupted."""
    try:
        arguments = make_parser().parse_args(argv)
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python flushes stdout once more at exit: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except KeyboardInterrupt:
        return _complain("interrupted", EXIT_INTERRUPTED)
    except MemoryError:
        return _complain("out of memory; try fewer tasks or nodes", EXIT_FAILED)


def _run(arguments: object) -> int:
    from daws.model.errors import DawsError, InternalError, UsageError

    try:
        code: int = arguments.run(arguments)  # type: ignore[attr-defined]
        return code
    except UsageError as error:
        return _complain(" ".join(str(error).split()), EXIT_USAGE)
    except InternalError as error:
        return _complain(str(error), EXIT_FAILED)
    except DawsError as error:
        return _complain(" ".join(str(error).split()), EXIT_FAILED)


def _complain(message: str, code: int) -> int:
    print(f"daws: error: {message}" if code != EXIT_INTERRUPTED else f"daws: {message}", file=sys.stderr)
    return code
