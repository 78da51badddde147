"""fMRI: volumes of brain images. Each volume is two files, and each file goes down a pipe of its own.

    file -> image -> image -> ... -> image      12 tasks
    file -> header -> ... -> header             6 tasks

MATRIX has the workflow from Swift: a volume is two files that differ in their suffix, with a pipe for each, and the
longer pipe has 12 tasks. The length of the other is not published; it has half as many tasks here unless `header-steps`
says otherwise. Tasks take a few seconds, as in the papers on Swift and Falkon. They are all of one kind in each pipe,
because the steps are not known. The sizes are those of the ANALYZE format: 348 bytes of header, and 64 x 64 x 24 voxels
of two bytes.

Tasks are numbered step by step, as those of `pipeline`. The last volume gets the rest.
"""

from daws.model.graph import Graph
from daws.workloads.family import FAMILY_KEYS, Family, Normal
from daws.workloads.parameters import Whole
from daws.workloads.workload import Kind, WorkloadPlan

LENGTH_S = {"image": Normal(3.0, 1.0), "header": Normal(1.0, 0.3)}
FILE_BYTES = {"image": Normal(64 * 64 * 24 * 2), "header": Normal(348)}

STEPS = Whole("steps", 12, "tasks in the pipe of a volume's image", high=1000)
HEADER_STEPS = Whole("header-steps", 6, "tasks in the pipe of its header", low=0, high=1000)


def make(plan: WorkloadPlan) -> Graph:
    family = Family(plan)
    count = family.count(1)
    steps = {"image": plan.values.whole("steps"), "header": plan.values.whole("header-steps")}
    each = sum(steps.values())
    whole, left = divmod(count, each)
    for pipe, length in steps.items():
        last = min(left, length)
        left -= last
        width = whole + (last > 0)
        files = family.outside(family.draw(f"{pipe}/file", FILE_BYTES[pipe], width))
        for step in range(length):
            width = whole + (step < last)
            if width:
                added = family.stage(pipe, width, LENGTH_S[pipe], FILE_BYTES[pipe])
                family.read(added.tasks, files[:width])
                (files,) = added.outputs
    return family.graph()


KIND = Kind("fmri", "volumes of brain images, two pipes each", (*FAMILY_KEYS, STEPS, HEADER_STEPS), make)
