"""The other side of `tests.sim.mutants`: runs seeds against mutants, each mutant in a process of its own.

Requests come as lines of JSON on standard input, answers go to standard output. This process has loaded what no mutant
changes: libraries, and the layers below the core and the store. It forks for each request, and the child imports the
rest, with the mutant's source in the place of one module. That is several times as fast as a fresh interpreter with a
copy of the package.
"""

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

import msgspec.msgpack  # noqa: F401 (here rather than once for every mutant)
import numpy as np  # noqa: F401

SEED_S_MAX = 60
"""No seed takes as long as a second: a mutant that hangs within one event has been noticed after so many."""


class MutantLoader(Loader):
    """Finds and loads one module, whose source is the mutant's."""

    def __init__(self, module: str, source: str) -> None:
        self.path = module
        self.name = "daws." + module.removesuffix(".py").replace("/", ".")
        self.source = source

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, origin=self.path) if name == self.name else None

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual way is right."""

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, self.path, "exec"), vars(module))


def hunt(module: str, source: str, seeds: Sequence[int], wanted: int, more: int) -> dict[str, Any]:
    """Run seeds with this source for a module, until `wanted` have failed or `more` did not after the first that did.

    Each that failed comes with what it saw and how many seconds that took.
    """
    loader = MutantLoader(module, source)
    if loader.name in sys.modules:
        for name in [name for name in sys.modules if name.partition(".")[0] == "daws"]:
            del sys.modules[name]
    sys.meta_path.insert(0, loader)
    faults = importlib.import_module("tests.sim.faults")
    importlib.import_module("daws.core.session_graph")  # which a session imports with its first graph
    if getattr(sys.modules.get(loader.name), "__loader__", None) is not loader:
        raise ImportError(f"no simulation loads {loader.name}")
    signal.signal(signal.SIGALRM, _too_long)
    caught: list[tuple[int, str, float]] = []
    tried = 0
    for seed in seeds:
        if len(caught) >= wanted or (caught and not more):
            break
        more -= bool(caught)
        tried += 1
        began_s = time.monotonic()
        signal.alarm(SEED_S_MAX)
        outcome = faults.try_seed(seed)
        signal.alarm(0)
        if isinstance(outcome, faults.Failure):
            caught.append((seed, outcome.message, time.monotonic() - began_s))
    return {"caught": caught, "tried": tried}


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"not done after {SEED_S_MAX} s")


def serve(request: str) -> str:
    """In a child: whatever goes wrong there goes wrong there."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = hunt(**json.loads(request))
        except BaseException as error:
            answer = {"caught": [], "tried": 0, "message": f"does not even start: {type(error).__name__}: {error}"}
        with os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answered = pipe.read()
    os.waitpid(child, 0)
    return answered or json.dumps({"caught": [], "tried": 0, "message": "its process died"})


if __name__ == "__main__":
    for line in sys.stdin:
        print(serve(line), flush=True)
