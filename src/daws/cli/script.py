"""`daws run script.py`: a Python file as `__main__`, with what was asked as the defaults of `daws.Cluster()`."""

import argparse
import os
import sys
import traceback
from pathlib import Path
from types import CodeType, ModuleType

from daws.cli.command import EXIT_FAILED
from daws.cli.messages import shown
from daws.client.defaults import NODES, STRATEGY, TRACE, WORKERS
from daws.model.errors import UsageError
from daws.runs.trace import check_trace_target

OF_WORKFLOWS = (
    "seed",
    "time_scale",
    "data_scale",
    "spin",
    "execute",
    "folder",
    "ignore_needs",
    "json",
    "plot",
    "export",
)


def run_script(arguments: argparse.Namespace) -> int:
    """Its exit code. What it raises is its own affair and shown as Python would, without our own lines."""
    for option in OF_WORKFLOWS:
        if option in getattr(arguments, "given", ()) or getattr(arguments, option) is True:
            raise UsageError(f"--{option.replace('_', '-')} goes with workflows, not with a script")
    # The script may go to another folder before it makes a cluster.
    trace = None if arguments.trace is None else check_trace_target(arguments.trace).absolute()
    path = Path(arguments.what)
    code = compiled(path)
    os.environ |= {
        name: str(value)
        for name, value in (
            (NODES, arguments.nodes),
            (WORKERS, arguments.workers),
            (STRATEGY, arguments.strategy if "strategy" in getattr(arguments, "given", ()) else None),
            (TRACE, trace),
        )
        if value is not None
    }
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
    return 0


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
