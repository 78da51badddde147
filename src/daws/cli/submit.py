"""`daws submit`: run a command on a cluster, from a shell."""

import argparse
import os
import re
from collections.abc import Sequence
from contextlib import suppress

from daws.cli.importing import importing
from daws.cli.options import Once, Parser, add_cluster_folder, folder_of, whole
from daws.model.errors import DawsError, UsageError

ABOUT = """\
Run a command on a cluster, and return as soon as the cluster has it. With --array it runs once
for each number. The number is in the variable DAWS_ARRAY, and replaces {} in the command.
Prints the name of the session, for 'daws wait'."""

EXAMPLES = """\
examples:
  daws submit --cluster ./lab -- hostname
  daws submit --cluster ./lab --array 1-1000 -- ./simulate.sh --seed {}
  daws submit --cluster ./lab --session night --cores 4 --retries 2 -- make -j4"""

ARRAY = "DAWS_ARRAY"
ARRAY_MAX = 10_000_000
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")


def add_arguments(parser: Parser) -> None:
    add_cluster_folder(parser)
    parser.add_argument(
        "--array", metavar="FIRST-LAST", action=Once, help="run the command once for each of these numbers"
    )
    parser.add_argument(
        "--session", metavar="NAME", action=Once, default="", help="name of the session (default: a new name)"
    )
    parser.add_argument(
        "--cores", metavar="N", action=Once, type=whole, default=1, help="cores of each run (default: 1)"
    )
    parser.add_argument("--context", metavar="C", action=Once, help="what an executor has to offer")
    parser.add_argument(
        "--retries",
        metavar="N",
        action=Once,
        type=whole,
        default=0,
        help="number of new tries after a failure (default: 0)",
    )
    parser.add_argument("words", metavar="COMMAND", nargs=argparse.REMAINDER, help="after '--'")


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.client.admin import end_session
        from daws.client.commands import command
        from daws.client.connect import connect

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
        if is_new:  # its name was not printed, and a second try must not find half of it
            with suppress(DawsError):
                end_session(folder, name)
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
