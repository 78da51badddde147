"""`daws study`: published results beside those of daws."""

import argparse
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import daws
from daws.cli.importing import importing
from daws.cli.messages import shown
from daws.cli.options import Once, Parser, add_jobs, add_json
from daws.model.errors import UnavailableError, UsageError

ABOUT = """\
Run studies, which compare published results with those of daws. Each prints tables, says which
claims hold, and writes a page, a plot and a CSV. Without a name, list all studies."""

EXAMPLES = """\
examples:
  daws study                            list all studies
  daws study table4 --quick --out here  a small version, to see that it works
  daws study --all                      everything; less than an hour on two cores"""

ROOT = Path(daws.__file__).resolve().parents[2]
"""The root of a checkout; for an installed package it is a folder of Python's own."""
OUT = Path("out") / "studies"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="studies to run")
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument("--quick", action="store_true", help="small versions, only to show that they work")
    parser.add_argument("--files", metavar="DIR", action=Once, help="folder with the classic workflow files to use")
    parser.add_argument(
        "--out", metavar="DIR", action=Once, help="folder for all files (default: docs/studies, or out/studies)"
    )
    add_jobs(parser)
    add_json(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def studies_package() -> ModuleType:
    """`studies` beside the source in a checkout, `daws_studies` where daws is installed."""
    if is_checkout():
        if str(ROOT) not in sys.path:
            sys.path.insert(0, str(ROOT))  # the processes that a study starts get the same path
        return importlib.import_module("studies")
    try:
        return importlib.import_module("daws_studies")
    except ModuleNotFoundError as error:
        raise UnavailableError(f"the studies are not installed: {error}", retry=False) from error


def is_checkout() -> bool:
    return (ROOT / "studies" / "__init__.py").is_file() and (ROOT / "pyproject.toml").is_file()


def run(arguments: argparse.Namespace) -> int:
    """Run the command. All options are checked before anything runs."""
    with importing():
        from daws.cli.table import as_json, grid

        package = studies_package()
        studies: dict[str, Any] = package.find_studies()
    if not arguments.names and not arguments.all:
        rows = [(study.name, study.paper, study.shows) for study in studies.values()]
        keys = ("study", "paper", "shows")
        print(as_json([dict(zip(keys, row, strict=True)) for row in rows]) if arguments.json else grid(rows))
        return 0
    chosen = choose(studies, arguments)
    shared = importlib.import_module(f"{package.__name__}.shared.study")
    page = importlib.import_module(f"{package.__name__}.shared.page")
    jobs = len(os.sched_getaffinity(0)) if arguments.jobs is None else arguments.jobs
    if jobs < 1:
        raise UsageError(f"--jobs {jobs}: give a number of at least 1")
    if arguments.files is not None:
        if not Path(arguments.files).is_dir():
            raise UsageError(f"--files {shown(arguments.files)}: there is no such folder")
        if not arguments.all:
            for study in chosen:
                shared.check_files(study, Path(arguments.files))
    files = None if arguments.files is None else Path(arguments.files)
    folder = folder_of(arguments)
    folder.mkdir(parents=True, exist_ok=True)
    documents = []
    for study in chosen:
        report = study.run(shared.Asked(arguments.quick, jobs, files, arguments.quiet))
        paths = page.write(study, report, folder, arguments.quick)
        documents.append(document_of(study, report, paths))
        if not arguments.json:
            print(page.text_of(study, report))
            print(f"\nwrote {', '.join(map(str, paths))}\n", flush=True)
    page.write_index(studies.values(), folder)
    if arguments.json:
        print(as_json(documents))
    return 0


def document_of(study: Any, report: Any, paths: list[Path]) -> dict[str, object]:
    """The tables and claims of a study, for JSON."""
    tables = [
        {
            "title": table.title,
            "unit": table.unit,
            "rows": [
                {"keys": dict(zip(table.keys, row.keys, strict=True)), "paper": row.paper, "daws": row.daws}
                for row in table.rows
            ],
        }
        for table in report.tables
    ]
    return {
        "study": study.name,
        "title": study.title,
        "paper": study.paper,
        "tables": tables,
        "claims": [claim._asdict() for claim in report.claims],
        "files": [str(path) for path in paths],
    }


def choose(studies: dict[str, Any], arguments: argparse.Namespace) -> list[Any]:
    if arguments.all:
        if arguments.names:
            raise UsageError("give either names of studies or --all")
        return list(studies.values())
    for name in arguments.names:
        if name not in studies:
            raise UsageError(f"there is no study {shown(name)}; there are {', '.join(studies)}")
    return [studies[name] for name in dict.fromkeys(arguments.names)]


def folder_of(arguments: argparse.Namespace) -> Path:
    """The folder for the files of a study.

    It is the docs of a checkout, except for a quick run, and for a run with files that other users do not have.
    """
    if arguments.out is not None:
        return Path(arguments.out)
    if is_checkout() and not arguments.quick and arguments.files is None:
        return ROOT / "docs" / "studies"
    return OUT
