"""What can be typed about results that are reused. Imports as little as the rest of the parser."""

import argparse

from daws.cli.parser import Command, Parser
from daws.cli.parser import _Format as Format
from daws.cli.parser import _number as number
from daws.cli.parser import _Once as Once

_ABOUT = """\
List the results that tasks with memo= have left in a folder, by function; or remove them. A
result that is removed is made again when it is needed."""


def add_memo_command(commands: "argparse._SubParsersAction[Parser]") -> None:
    memo = commands.add_parser(
        "memo",
        help="list the results that are kept for later runs, or remove them",
        description=_ABOUT,
        formatter_class=Format,
        allow_abbrev=False,
    )
    memo.set_defaults(load=_load_memo)
    memo.add_argument("folder", metavar="DIR", help="the folder that daws.Cluster(memo=…) was given")
    memo.add_argument("--function", metavar="NAME", action=Once, help="only those of one function, as it is listed")
    memo.add_argument("--unused-days", metavar="N", action=Once, type=number, help="only those not used for so long")
    memo.add_argument("--check", action="store_true", help="read all of them; exit code 1 if any is damaged")
    memo.add_argument("--clear", action="store_true", help="remove them")
    memo.add_argument("--json", action="store_true", help="one JSON object per line")


def _load_memo() -> Command:
    from daws.cli.memo import memo

    return memo
