"""Runs the snippets of a file one after the other, as if each were a script; prints what became of each as JSON."""

import concurrent.futures
import contextlib
import io
import json
import os
import sys
import time
import types

import daws
from daws.futures import Executor


def read(path: str) -> list[tuple[str, str, str]]:
    """Name, code, and what the one line has to say; empty if it has to run."""
    found = []
    with open(path) as file:
        parts = file.read().split("### ")[1:]
    for part in parts:
        name, _, code = part.partition("\n")
        code, _, said = code.partition("!!! ")
        found.append((name, code, said.strip()))
    return found


def run(code: str) -> dict[str, object]:
    """What a snippet printed, or what it raised. Functions are those of `__main__`, as in a script."""
    module = types.ModuleType("__main__")
    names = vars(module)
    names.update(daws=daws, ProcessPoolExecutor=Executor, concurrent=concurrent, time=time)
    sys.modules["__main__"] = module
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, "snippet.py", "exec"), names)
    except BaseException as error:
        notes = [note for note in getattr(error, "__notes__", ()) if not note.startswith("raised by task")]
        return {"out": out.getvalue(), "error": "; ".join([f"{type(error).__name__}: {error}", *notes])}
    finally:
        for value in [*names.values()]:
            if isinstance(value, daws.Cluster):
                value.close(cancel=True)
    return {"out": out.getvalue(), "error": ""}


def main() -> None:
    real = sys.stdout
    for name, code, said in read(sys.argv[1]):
        began = time.monotonic()
        found = run(code)
        print(
            json.dumps({"name": name, "said": said, "seconds": time.monotonic() - began, **found}),
            file=real,
            flush=True,
        )
    os._exit(0)


main()
