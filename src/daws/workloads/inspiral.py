"""Inspiral: LIGO's search for gravitational waves. Two rounds of a template search, each brought together in groups.

    TmpltBank -> Inspiral -> Thinca -> TrigBank -> Inspiral -> Thinca
             1 : 1        n : 1     1 : n      1 : 1       n : 1

Both rounds read the detector's data of their time segment. The second round has some segments more than the first, and
neighbouring groups of the first share the segment at their border. The figures are those of the Pegasus workflow
generator (Bharathi et al. 2008); there is a group for every 50 tasks, as in the classic files.
"""

import numpy as np

from daws.model.columns import spans
from daws.model.graph import Graph
from daws.workloads.family import FAMILY_KEYS, Family, Normal
from daws.workloads.workload import Kind, WorkloadPlan

LENGTH_S = {
    "TmpltBank": Normal(18.14, 0.42),
    "Inspiral": Normal(460.21, 545),
    "Thinca": Normal(5.37, 0.24),
    "TrigBank": Normal(5.11, 0.32),
}
FILE_BYTES = {
    "frame": Normal(15_595_958, 18_293),  # two for each segment
    "TmpltBank": Normal(986_917, 18_948),
    "Inspiral": Normal(312_936, 579_468),
    "Thinca": Normal(33_821, 43_453),
    "TrigBank": Normal(12_780, 11_730),
}
CALIBRATION_BYTES = 8_415_922 + 902_334  # two files that always go together
INJECTIONS_BYTES = 2_421_423
TASKS_PER_GROUP = 50
SECOND_ROUND = 1.05  # segments of the second round for each of the first
SMALLEST = 6


def make(plan: WorkloadPlan) -> Graph:
    family = Family(plan)
    half = family.count(SMALLEST) // 2
    groups = max(1, round(half * 2 / TASKS_PER_GROUP))
    first = max(1, round((half - groups) / (1 + SECOND_ROUND)))
    second = half - groups - first
    groups_end = np.append(np.sort(family.rng("groups").permutation(second - 1)[: groups - 1]) + 1, second)
    groups_start = np.append(0, groups_end[:-1])
    members = np.repeat(np.arange(groups), groups_end - groups_start)

    calibration, injections = family.outside(CALIBRATION_BYTES), family.outside(INJECTIONS_BYTES)
    frames = [family.outside(family.draw(f"frame/{part}", FILE_BYTES["frame"], second)) for part in range(2)]

    banks = family.stage("TmpltBank", first, LENGTH_S["TmpltBank"], FILE_BYTES["TmpltBank"])
    family.read(banks.tasks, *(part[:first] for part in frames), calibration)
    search = family.stage("Inspiral", first, LENGTH_S["Inspiral"], FILE_BYTES["Inspiral"])
    family.read(search.tasks, *(part[:first] for part in frames), calibration, injections, banks.outputs[0])
    meeting = family.stage("Thinca", groups, LENGTH_S["Thinca"], FILE_BYTES["Thinca"])
    start, end = groups_start * first // second, -(-groups_end * first // second)
    family.read(np.repeat(meeting.tasks, end - start), search.outputs[0][spans(start, end - start)])

    triggers = family.stage("TrigBank", second, LENGTH_S["TrigBank"], FILE_BYTES["TrigBank"])
    family.read(triggers.tasks, meeting.outputs[0][members])
    search = family.stage("Inspiral", second, LENGTH_S["Inspiral"], FILE_BYTES["Inspiral"])
    family.read(search.tasks, *frames, calibration, injections, triggers.outputs[0])
    meeting = family.stage("Thinca", groups, LENGTH_S["Thinca"], FILE_BYTES["Thinca"])
    family.read(meeting.tasks[members], search.outputs[0])
    return family.graph()


KIND = Kind("inspiral", "gravitational waves: two rounds of long searches, met in groups", FAMILY_KEYS, make)
