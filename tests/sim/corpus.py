"""The frozen corpus: seeds that are remembered, and fingerprints of their scenarios.

python -m tests.sim.corpus              do seeds still mean what they meant?
python -m tests.sim.corpus --record     add fingerprints of new seeds; those that are there already stay

A fingerprint covers the graph, the cluster, the name of the strategy and all faults. If one of them differs, a closed
range of `daws.sim.worlds.corpus` was changed: give the new world a range of its own instead.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, structs

from daws.sim.worlds import GROWN, LIVE_SESSIONS, RANGES, SESSIONS, Scenario, draw_scenario

ONCE_WRONG = (
    2075, 2943, 4208,
    337, 521, 565, 619, 910, 1013, 1325, 1351, 1465, 1569, 1727, 1816, 1847,
    2022, 2151, 2320, 2334, 2365, 2388, 2410, 2419, 2600, 2650, 3533, 3790,
    114, 720, 3202, 6914, 11039, 17216, 3522, 3962, 4353, 5181, 6170, 6492, 6926, 7846,
    1010, 2086, 2862, 4231, 6482, 8582, 9721, 9850, 11713, 17279, 18032,
    5388, 5592, 6194, 7389, 7928, 12569, 14445, 14447,
    GROWN + 934, GROWN + 1382, GROWN + 1454, GROWN + 2550, GROWN + 3665, GROWN + 3714, GROWN + 4837, GROWN + 6256,
    GROWN + 35, GROWN + 579, GROWN + 2570, GROWN + 14467, GROWN + 15162,
    SESSIONS + 892, SESSIONS + 1236, SESSIONS + 2648, SESSIONS + 5406, SESSIONS + 5766, SESSIONS + 6498,
    SESSIONS + 9395,
    LIVE_SESSIONS + 21, LIVE_SESSIONS + 32, LIVE_SESSIONS + 91, LIVE_SESSIONS + 189, LIVE_SESSIONS + 1938,
    LIVE_SESSIONS + 2729, LIVE_SESSIONS + 5017, LIVE_SESSIONS + 5070,
    LIVE_SESSIONS + 10259, LIVE_SESSIONS + 10505, LIVE_SESSIONS + 10696,
)  # fmt: skip
"""Seeds that brought a bug to light.

The last two of grown graphs showed an error of the simulator. After a failover, a replica accepted the end of a run
from a caller that relied on answers which the replica had lost: a Finish that arrived twice, of a node that had died
(15162), and one that was sent again by a node that had not heard of the failover (14467). The end was kept, and the
tasks which the run had created in the same shard were lost. A real server refuses such a call, and so does the
simulated one now (`Servers._is_of_the_past`). SESSIONS + 1236 and 9395 showed errors of the checker of sessions, which
knew no sweepers, and so did LIVE_SESSIONS + 10259 (a remade task may fail because an object that was put in is gone)
and 10505 (a sweeper may take the place of a client that is alive, and find some of its tasks missing).
"""
HURRIED = (GROWN + 634, GROWN + 901)
"""Seeds that brought a bug to light when rows about unknown tasks were sent again after 10 ms."""
OF_EACH_RANGE = 300
COLUMNS = ("kinds", "kind", "length_ns", "input_start", "inputs", "output_start", "object_bytes", "growth")
"""Of a graph; contexts and needs of tasks follow from the same draws."""
FIRST_NAMES = {"SimulatedCluster": "Cluster"}
"""Names that classes had when their fingerprints were recorded: a rename leaves fingerprints as they are."""
RECORDED = Path(__file__).with_name("corpus.json")


def remembered() -> list[int]:
    """The first seeds of each range, and all that are remembered for a reason."""
    first = [seed for one in RANGES for seed in range(one.first, one.first + OF_EACH_RANGE)]
    return sorted({*first, *ONCE_WRONG, *HURRIED})


def fingerprint(scenario: Scenario) -> str:
    text = "\n".join(f"{name}={value}" for name, value in _facts(scenario))
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _facts(scenario: Scenario) -> Iterator[tuple[str, Any]]:
    for name, value in _changed(scenario).items():
        if name == "graph":
            yield from ((column, _shown(getattr(value, column))) for column in COLUMNS)
        else:
            yield name, value.name if name == "strategy" else _shown(value)


def _changed(value: Struct) -> dict[str, Any]:
    """The fields that differ from their defaults: a field that is added later leaves fingerprints as they are."""
    given = {one.name: getattr(value, one.name) for one in structs.fields(value)}
    defaults = {one.name: one.default for one in structs.fields(value)}
    return {name: one for name, one in given.items() if name == "graph" or one != defaults[name]}


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, Struct):
        kind = FIRST_NAMES.get(type(value).__name__, type(value).__name__)
        return f"{kind}({', '.join(f'{name}={_shown(one)}' for name, one in _changed(value).items())})"
    return f"({', '.join(map(_shown, value))})" if isinstance(value, tuple) else repr(value)


def fingerprints(seeds: Sequence[int]) -> dict[int, str]:
    return {seed: fingerprint(draw_scenario(seed)) for seed in seeds}


def recorded() -> dict[int, str]:
    return {int(seed): found for seed, found in json.loads(RECORDED.read_text()).items()}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.corpus", description="Compare what seeds mean.")
    parser.add_argument("--record", action="store_true", help="add fingerprints of new seeds to corpus.json")
    given = parser.parse_args(argv)
    before = recorded() if RECORDED.exists() else {}
    if given.record:
        before = {**fingerprints([seed for seed in remembered() if seed not in before]), **before}
        RECORDED.write_text(json.dumps({str(seed): before[seed] for seed in sorted(before)}, indent=0) + "\n")
    differing = [seed for seed, found in fingerprints(list(before)).items() if found != before[seed]]
    print(f"{len(before) - len(differing)} of {len(before)} seeds mean what they meant")
    if differing:
        print(f"different: {' '.join(map(str, differing[:10]))}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
