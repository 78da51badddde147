"""`daws run script.py`: a Python file as `__main__`, with the options as defaults of `daws.Cluster()`."""

import argparse
import os
import sys
import traceback
from itertools import zip_longest
from pathlib import Path
from types import CodeType, ModuleType

from daws.cli.messages import EXIT_FAILED, complain, shown
from daws.cli.targets import check_apart
from daws.client.starting import EXPORT, NODES, PLOT, STRATEGY, TRACE, WORKERS, check_files, is_taken
from daws.model.errors import UsageError

FILE_OPTIONS = ("--trace", "--export", "--plot")
OF_WORKFLOWS = (
    "seed",
    "time_scale",
    "data_scale",
    "spin",
    "execute",
    "folder",
    "keep_going",
    "dry_run",
    "rerun",
    "mtime",
    "ignore_needs",
    "json",
)


def run_script(arguments: argparse.Namespace) -> int:
    """Run a script and return its exit code. Errors of the script are shown as Python would, without lines of daws."""
    for option in OF_WORKFLOWS:
        if option in getattr(arguments, "given", ()) or getattr(arguments, option) is True:
            raise UsageError(f"--{option.replace('_', '-')} is for workflows, not for a script")
    check_targets(arguments)
    path = Path(arguments.what)
    code = compiled(path)
    os.environ |= {
        name: str(value)
        for name, value in (
            (NODES, arguments.nodes),
            (WORKERS, arguments.workers),
            (STRATEGY, arguments.strategy if "strategy" in getattr(arguments, "given", ()) else None),
        )
        if value is not None
    }
    # The script may go to another folder before it makes a cluster.
    files = {TRACE: arguments.trace, EXPORT: arguments.export, PLOT: arguments.plot}
    os.environ |= {name: os.path.abspath(file) for name, file in files.items() if file is not None}
    module = ModuleType("__main__")
    module.__file__ = str(path)
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.argv = [arguments.what, *arguments.script_arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        exec(code, module.__dict__)
    except Exception as error:
        # From the script's first line on: how it got there is nobody's business.
        own = error.__traceback__.tb_next if error.__traceback__ is not None else None
        traceback.print_exception(error.with_traceback(own))
        return EXIT_FAILED
    finally:
        for name, file in files.items():
            if file is not None and not is_taken(name):
                complain(f"{shown(file)} was not written, because the script made no daws.Cluster()")
        for option, file in misplaced(arguments.script_arguments):
            complain(
                f"{shown(file)} is not written: {option} behind {shown(arguments.what)} is an option of the script; "
                f"options of daws go before its name"
            )
    return 0


def misplaced(given: list[str]) -> list[tuple[str, str]]:
    """Options of `daws run` that stand behind the script, and that the script did not use: their files do not exist."""
    found = []
    for one, after in zip_longest(given, given[1:], fillvalue=""):
        option, _, value = one.partition("=")
        file = value or after
        if option in FILE_OPTIONS and file and not os.path.exists(file):
            found.append((option, file))
    return found


def check_targets(arguments: argparse.Namespace) -> None:
    """Refuse files that could not be written at the end."""
    check_files(arguments.trace, arguments.export, arguments.plot)
    check_apart(arguments.what, {f"--{name}": getattr(arguments, name) for name in ("trace", "export", "plot")})


def compiled(path: Path) -> CodeType:
    try:
        code: CodeType = compile(path.read_bytes(), str(path), "exec")
        return code
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except (SyntaxError, ValueError) as error:
        where = f"{path}:{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else str(path)
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise UsageError(f"{where}: this is not Python: {shown(said)[1:-1]}") from error
