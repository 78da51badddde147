"""`daws study`: what was published, beside what daws does."""

import argparse
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import daws
from daws.cli.messages import shown
from daws.cli.table import grid
from daws.model.errors import UnavailableError, UsageError

ROOT = Path(daws.__file__).resolve().parents[2]
"""Of a checkout; of an installed package it is a folder of Python's own."""
OUT = Path("out") / "studies"


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
    """Everything is checked before anything is run."""
    package = studies_package()
    studies: dict[str, Any] = package.find_studies()
    if not arguments.names and not arguments.all:
        print(list_of(studies))
        return 0
    chosen = choose(studies, arguments)
    shared = importlib.import_module(f"{package.__name__}.shared.study")
    page = importlib.import_module(f"{package.__name__}.shared.page")
    jobs = len(os.sched_getaffinity(0)) if arguments.jobs is None else arguments.jobs
    if jobs < 1:
        raise UsageError(f"--jobs {jobs}: give a number from 1 on")
    if arguments.files is not None:
        if not Path(arguments.files).is_dir():
            raise UsageError(f"--files {shown(arguments.files)}: there is no such folder")
        if not arguments.all:
            for study in chosen:
                shared.check_files(study, Path(arguments.files))
    files = None if arguments.files is None else Path(arguments.files)
    folder = folder_of(arguments)
    folder.mkdir(parents=True, exist_ok=True)
    for study in chosen:
        report = study.run(shared.Asked(arguments.quick, jobs, files, arguments.quiet))
        paths = page.write(study, report, folder, arguments.quick)
        print(page.text_of(study, report))
        print(f"\nwrote {', '.join(map(str, paths))}\n", flush=True)
    page.write_index(studies.values(), folder)
    return 0


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
    """Where everything goes: the docs of a checkout, except what is quick or has files that others do not have."""
    if arguments.out is not None:
        return Path(arguments.out)
    if is_checkout() and not arguments.quick and arguments.files is None:
        return ROOT / "docs" / "studies"
    return OUT


def list_of(studies: dict[str, Any]) -> str:
    return grid([(study.name, study.paper, study.shows) for study in studies.values()])
