"""`daws workloads`: list the kinds of workload."""

import argparse

from daws.cli.importing import importing
from daws.cli.options import Parser, add_json

ABOUT = "List the kinds of workload with their keys, defaults and units."

EXAMPLES = """\
examples:
  daws workloads
  daws workloads --json
  daws sim fan-out:degree=10,per-core=200"""


def add_arguments(parser: Parser) -> None:
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    with importing():
        from daws.cli.table import as_json
        from daws.workloads import KINDS, describe_kinds

    if arguments.json:
        fields = {"key": "key", "type": "type_name", "default": "default", "unit": "unit", "meaning": "help"}
        found = [
            {
                "kind": kind.name,
                "meaning": kind.help,
                "keys": [{name: getattr(one, field) for name, field in fields.items()} for one in kind.parameters],
            }
            for kind in KINDS.values()
        ]
        print(as_json(found))
        return 0
    print(describe_kinds())
    print("\nWrite kind or kind:key=value,…  for example:  daws sim fan-out:degree=10,per-core=200")
    return 0
