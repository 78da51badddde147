"""`daws wait`: wait until a session has ended, and show what it printed."""

import argparse
import sys
from contextlib import suppress

from daws.cli.importing import importing
from daws.cli.messages import EXIT_FAILED, EXIT_TIMEOUT, complain, number_of
from daws.cli.options import Once, Parser, add_cluster_folder, check_seconds, folder_of, number
from daws.model.errors import CommandError, UsageError

ABOUT = f"""\
Wait until all tasks of a session have ended, show what they printed in the order of their
submission, and end the session. The exit code is 0 if all went well, {EXIT_FAILED} if a task failed, and
{EXIT_TIMEOUT} if --timeout passed first."""

EXAMPLES = """\
examples:
  daws wait submit-0a1b2c3d --cluster ./lab    the name that 'daws submit' has printed
  daws wait night --cluster ./lab --timeout 3600 --keep"""


def add_arguments(parser: Parser) -> None:
    add_cluster_folder(parser)
    parser.add_argument(
        "session", metavar="NAME", help="name of the session, as 'daws submit' or 'daws sessions' prints it"
    )
    parser.add_argument(
        "--keep", action="store_true", help="do not end the session, so that it can be waited for again"
    )
    parser.add_argument("--timeout", metavar="S", action=Once, type=number, help="give up after S seconds")
    parser.add_argument("--quiet", action="store_true", help="only the exit code")


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.client.admin import end_session, list_sessions
        from daws.client.connect import connect
        from daws.client.waiting import wait
        from daws.workers.commands import Completed

    check_seconds("--timeout", arguments.timeout)
    folder = folder_of(arguments)
    if arguments.session not in [one.name for one in list_sessions(folder)]:
        raise UsageError(f"there is no session {arguments.session!r}; 'daws sessions' lists those that are there")
    with connect(folder, session=arguments.session, keep=True) as cluster:
        futures = cluster.futures()
        waiting = wait(futures, timeout=arguments.timeout)[1]
        if waiting:
            have = "has" if len(futures) == 1 else "have"
            of_all = f"{len(waiting):,} of {number_of(len(futures), 'task')}"
            complain(f"{of_all} {have} not ended after {arguments.timeout:g} s")
            return EXIT_TIMEOUT
        failed = 0
        for future in futures:
            try:
                result = future.result()
            except Exception as error:
                failed += 1
                if not arguments.quiet:
                    _show_failure(error)
                continue
            if not arguments.quiet and isinstance(result, Completed):
                _show(result.stdout, result.stderr)
    if not arguments.keep:
        end_session(folder, arguments.session)
    if failed and not arguments.quiet:
        complain(f"{failed:,} of {number_of(len(futures), 'task')} failed")
    return EXIT_FAILED if failed else 0


def _show_failure(error: BaseException) -> None:
    if isinstance(error, CommandError):
        _show(error.stdout, error.stderr)
    complain(str(error).splitlines()[0] if str(error) else type(error).__name__)


def _show(stdout: bytes, stderr: bytes) -> None:
    sys.stdout.write(stdout.decode(errors="replace"))
    if sys.stderr is not None and stderr:
        with suppress(OSError):
            sys.stderr.write(stderr.decode(errors="replace"))
