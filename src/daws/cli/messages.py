"""Messages and exit codes for errors. They also work if a stream is full, closed or limited to ASCII.

This module imports nothing that takes time, because it must be there first.
"""

import io
import os
import sys

SHOWN_LENGTH_MAX = 40

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TIMEOUT = 124
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
EXIT_CODES = f"""\
exit codes:
  0    all went well
  {EXIT_FAILED}    the work failed: a task, a damaged result, a cluster that does not answer, a full disk
  {EXIT_USAGE}    the command or its input is wrong; nothing was done
  {EXIT_TIMEOUT}  'daws wait --timeout' gave up
  {EXIT_INTERRUPTED}  interrupted (Ctrl-C)
  {EXIT_PIPE}  the reader of the output has gone
A script that 'daws run' runs has its own exit code."""


def complain(message: str) -> None:
    """Print a message on stderr. If stderr is closed, there is only the exit code."""
    if sys.stderr is None:
        return  # print() would take stdout instead
    try:
        print(f"daws: {message}", file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr.fileno())


def one_line(error: object) -> str:
    return " ".join(str(error).split())


def shown(text: str) -> str:
    """The typed text, in quotes and not too long."""
    return repr(text if len(text) <= SHOWN_LENGTH_MAX else text[: SHOWN_LENGTH_MAX - 3] + "...")


def number_of(count: int, noun: str) -> str:
    """A number with its noun: 1 task, 2 tasks."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def allow_all_letters() -> None:
    """Print a question mark for each letter that the stream cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def silence(descriptor: int) -> None:
    """Send the rest of a stream to /dev/null, because Python tries to write it once more at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
