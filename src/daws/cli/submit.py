"""`daws submit` and `daws wait`: commands on a cluster, from a shell."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress

from daws.cli.messages import complain
from daws.cli.nodes import check_seconds, folder_of
from daws.client.commands import command
from daws.client.connect import connect
from daws.client.waiting import wait as wait_for
from daws.model.errors import CommandError, DawsError, UsageError
from daws.runtime.cluster import words
from daws.runtime.cluster.asking import ask
from daws.workers.commands import Completed

ARRAY = "DAWS_ARRAY"
ARRAY_MAX = 10_000_000
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")


def submit(arguments: argparse.Namespace) -> int:
    line = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if not line:
        raise UsageError("give a command behind '--', as in: daws submit -- hostname")
    numbers = _array(arguments.array)
    folder = folder_of(arguments)
    options = {"cores": arguments.cores, "context": arguments.context, "retries": arguments.retries}
    described = {"cwd": os.getcwd(), "show": False, **{key: one for key, one in options.items() if one is not None}}
    name = arguments.session or f"submit-{os.urandom(4).hex()}"
    is_new = False
    try:
        with connect(folder, session=name, keep=True) as cluster:
            is_new = not cluster.futures()
            for number in numbers:
                if number is None:
                    cluster.run(command(line, **described))
                else:
                    filled = [word.replace("{}", str(number)) for word in line]
                    cluster.run(command(filled, env={ARRAY: str(number)}, **described))
    except BaseException:
        if is_new:  # nobody was told its name: whoever tries again shall not find half of it
            with suppress(DawsError):
                ask(folder, words.EndSession(name))
        raise
    print(name)
    return 0


def _array(text: str | None) -> Sequence[int | None]:
    """The numbers to run a command for; None alone if it runs once."""
    if text is None:
        return (None,)
    found = _RANGE.fullmatch(text)
    first, last = (int(found[1]), int(found[2])) if found else (1, 0)
    if first > last or last - first >= ARRAY_MAX:
        raise UsageError(f"--array {text!r}: expected FIRST-LAST, as in 1-1000, with up to {ARRAY_MAX:,} numbers")
    return range(first, last + 1)


def wait(arguments: argparse.Namespace) -> int:
    """The exit code is 0 if all went well, 1 if something failed, 124 if it took too long."""
    check_seconds("--timeout", arguments.timeout)
    folder = folder_of(arguments)
    answer = ask(folder, words.AskSessions())
    assert isinstance(answer, words.Sessions)
    if arguments.session not in [one.name for one in answer.sessions]:
        raise UsageError(f"there is no session {arguments.session!r}; 'daws sessions' lists those that are there")
    with connect(folder, session=arguments.session, keep=True) as cluster:
        futures = cluster.futures()
        waiting = wait_for(futures, timeout=arguments.timeout)[1]
        if waiting:
            complain(f"{len(waiting):,} of {len(futures):,} tasks have not ended after {arguments.timeout:g} s")
            return 124
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
        ask(folder, words.EndSession(arguments.session))
    if failed and not arguments.quiet:
        complain(f"{failed:,} of {len(futures):,} tasks failed")
    return 1 if failed else 0


def _show_failure(error: BaseException) -> None:
    if isinstance(error, CommandError):
        _show(error.stdout, error.stderr)
    complain(str(error).splitlines()[0] if str(error) else type(error).__name__)


def _show(stdout: bytes, stderr: bytes) -> None:
    sys.stdout.write(stdout.decode(errors="replace"))
    if sys.stderr is not None and stderr:
        with suppress(OSError):
            sys.stderr.write(stderr.decode(errors="replace"))
