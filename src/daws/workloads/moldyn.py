"""MolDyn: solvation free energy of molecules; eight stages that fan out and in.

    setup -> charges -> parameters -> equilibrate -> perturb -> combine -> energy -> report
     1 : n      for each molecule 1 : 1           1 : 68     68 : 11   11 : 1    1 : 1

The runs of Swift on Falkon (Zhao et al. 2007, Raicu et al. 2007) have one task, and 84 for each molecule. That is
20,497 tasks for 244 molecules, and 867 hours of computing, or 152 s for a task. MATRIX calls it an 8-stage workflow,
each stage a fan-out or a fan-in. There is no table by stage. The division of the 84 tasks is our reading. The lengths
keep to that mean, with nearly all of it in the simulations of `perturb`. The sizes, a few megabytes for a molecule, are
assumed.
"""

import numpy as np

from daws.model.columns import Int64s, spans
from daws.model.graph import Graph
from daws.workloads.family import FAMILY_KEYS, Family, Normal
from daws.workloads.workload import Kind, WorkloadPlan

LENGTH_S = {
    "setup": Normal(5, 1),
    "charges": Normal(20, 5),
    "parameters": Normal(10, 2),
    "equilibrate": Normal(200, 50),
    "perturb": Normal(182, 45),
    "combine": Normal(15, 4),
    "energy": Normal(10, 2),
    "report": Normal(5, 1),
}
FILE_BYTES = {
    "molecule": Normal(100_000, 30_000),
    "setup": Normal(1_000_000),
    "charges": Normal(200_000, 50_000),
    "parameters": Normal(500_000, 100_000),
    "equilibrate": Normal(5_000_000, 1_000_000),
    "perturb": Normal(2_000_000, 500_000),
    "combine": Normal(100_000, 20_000),
    "energy": Normal(10_000, 2_000),
    "report": Normal(10_000, 2_000),
}
TASKS_EACH, COMBINES_EACH = 84, 11
SINGLES = 5  # stages of a molecule that have one task
SMALLEST = 1 + SINGLES + 2


def make(plan: WorkloadPlan) -> Graph:
    family = Family(plan)
    count = family.count(SMALLEST) - 1
    molecules = max(1, round(count / TASKS_EACH))
    # Where molecules do not have 84 tasks exactly, they have fewer or more simulations.
    tasks = family.shares("molecules", count, molecules, 0) - SINGLES
    combines = np.maximum(1, tasks * COMBINES_EACH // (TASKS_EACH - SINGLES))
    perturbs = tasks - combines

    def stage(kind: str, width: int) -> tuple[Int64s, Int64s]:
        added = family.stage(kind, width, LENGTH_S[kind], FILE_BYTES[kind])
        return added.tasks, added.outputs[0]

    setup, common = stage("setup", 1)
    files = family.outside(family.draw("molecule", FILE_BYTES["molecule"], molecules))
    family.read(np.repeat(setup, molecules), files)
    for kind in ("charges", "parameters", "equilibrate"):
        each, made = stage(kind, molecules)
        family.read(each, common, files)
        files = made

    molecule = np.arange(molecules)
    simulated_by, simulated = stage("perturb", int(perturbs.sum()))
    family.read(simulated_by, common, files[np.repeat(molecule, perturbs)])
    combined_by, combined = stage("combine", int(combines.sum()))
    # The simulations of a molecule are dealt out evenly to its combining tasks.
    rank = spans(np.zeros(molecules, np.int64), perturbs)
    first = np.cumsum(combines) - combines
    group = np.repeat(first, perturbs) + rank * np.repeat(combines, perturbs) // np.repeat(perturbs, perturbs)
    family.read(combined_by[group], simulated)
    energy, energies = stage("energy", molecules)
    family.read(np.repeat(energy, combines), combined)
    report, _ = stage("report", molecules)
    family.read(report, energies)
    return family.graph()


KIND = Kind("moldyn", "free energy of molecules: eight stages that fan out and in", FAMILY_KEYS, make)
