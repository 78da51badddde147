"""`daws strategies`: list the strategies, or show one in full."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import Parser, add_json

ABOUT = "List the presets and the answers to each decision: a strategy is a list of decisions."

EXAMPLES = """\
examples:
  daws strategies                       all presets, where they come from, what they decide
  daws strategies flds                  one preset with every parameter
  daws strategies daws:order=critical-path,t=0.2
  daws strategies place                 all answers to one decision
  daws strategies --json                the same for programs"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a strategy as for 'daws sim', or a decision")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.cli.lists import show_strategies

    return show_strategies(arguments.name, arguments.json)
