"""Write `mosaic.json` again: the workflow of the demo, similar to those with which astronomers put images together.

Images of the sky that overlap are projected onto one plane. Each overlap is compared. One correction per image is
computed from all differences. The corrected images are added up, shrunk, and drawn.
"""

import random
from pathlib import Path

from daws.formats import Workflow, workflow_of, write_wfformat
from daws.model.graph_builder import GraphBuilder

TARGET = Path(__file__).parent / "mosaic.json"
ROWS, COLUMNS = 5, 6
MS, KB = 1_000_000, 1000


def mosaic() -> Workflow:
    chance = random.Random(1)

    def about(value: int) -> int:
        return round(value * chance.uniform(0.7, 1.3))

    builder = GraphBuilder()
    header = builder.add_external(1 * KB)
    cells = [(row, column) for row in range(ROWS) for column in range(COLUMNS)]
    raw = {cell: builder.add_external(about(800 * KB)) for cell in cells}
    projected = {
        cell: builder.add_task("project", about(420 * MS), [raw[cell], header], [about(1600 * KB), about(1600 * KB)])
        for cell in cells
    }
    overlaps = [
        (one, other)
        for one in cells
        for other in cells
        if one < other and max(abs(one[0] - other[0]), abs(one[1] - other[1])) == 1
    ]
    differences = [
        builder.add_task(
            "compare", about(60 * MS), [projected[one], projected[other], header], [about(200 * KB), 1 * KB]
        )
        for one, other in overlaps
    ]
    fits = builder.add_task("collect", 500 * MS, [one.outputs[1] for one in differences], [30 * KB])
    model = builder.add_task("balance", 700 * MS, [fits], [4 * KB])
    corrected = [
        builder.add_task("correct", about(90 * MS), [*projected[cell].outputs, *model.outputs], [about(1600 * KB)] * 2)
        for cell in cells
    ]
    table = builder.add_task("index", 200 * MS, [one.outputs[0] for one in corrected], [12 * KB])
    rows = [
        builder.add_task("stack", about(500 * MS), [table, *corrected[first : first + COLUMNS], header], [6000 * KB])
        for first in range(0, len(corrected), COLUMNS)
    ]
    whole = builder.add_task("add", 600 * MS, [*rows, header], [20_000 * KB])
    small = builder.add_task("shrink", 200 * MS, [whole], [700 * KB])
    builder.add_task("draw", 150 * MS, [small], [300 * KB])
    graph = builder.build()
    return workflow_of(graph, "mosaic")


if __name__ == "__main__":
    write_wfformat(TARGET, mosaic())
    print(f"{TARGET}: {mosaic().graph}")
