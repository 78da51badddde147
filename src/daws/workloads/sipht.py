"""Sipht: the search for small RNAs in bacteria. One sub-workflow for each genome, and none waits for another.

    Findterm RNAMotif Transterm Blast -> SRNA -> FFN_Parse -> Blast_synteny
                                          | \\--> Blast_candidate, Blast_QRNA, Blast_paralogues
    Patser (about 18) -> Patser_concate   |                     |
                              \\-----------+---------------------+--> SRNA_annotate

The figures are those of the Pegasus workflow generator (Bharathi et al. 2008), from which the classic files were made.
Files that always go together are one object here. These are some 890 partner genomes that every Blast and Blast_QRNA
reads, the programs of a task, and the files that a task writes for the same readers. Each sub-workflow has a genome of
its own; in the classic files they all have the same name.
"""

import numpy as np

from daws.model.columns import Int64s
from daws.model.graph import Graph
from daws.workloads.family import FAMILY_KEYS, Family, Normal, totals
from daws.workloads.workload import Kind, WorkloadPlan

LENGTH_S = {
    "Patser": Normal(1.27, 0.33),
    "Patser_concate": Normal(0.08, 0.1),
    "Findterm": Normal(1349.47, 796),
    "RNAMotif": Normal(36.42, 8.84),
    "Transterm": Normal(55.78, 48),
    "Blast": Normal(2350.58, 1016),
    "SRNA": Normal(361.33, 342),
    "FFN_Parse": Normal(1.64, 0.24),
    "Blast_candidate": Normal(5.18, 0.99),
    "Blast_QRNA": Normal(1412.09, 98.5),
    "Blast_synteny": Normal(33.0),
    "Blast_paralogues": Normal(4.99, 1.15),
    "SRNA_annotate": Normal(1.68, 0.96),
}
# The outputs of a task, a group of files for each group of readers.
WRITTEN_BYTES = {
    "Patser": (Normal(91_780, 248_987),),
    "Findterm": (Normal(34_380_908, 11_000_000),),
    "RNAMotif": (Normal(1_053_821, 91_713),),
    "Transterm": (Normal(440_505, 14_558),),
    "Blast": (Normal(5_271_782, 3_443_485),),
    # The candidates go to the tasks that check them, the list to SRNA_annotate, the rest stays.
    "SRNA": (Normal(84_073, 3_507), Normal(331_824, 21_958), Normal(5_483_945, 1_960_000)),
    "FFN_Parse": (Normal(802_507, 134_396),),
    "Blast_candidate": (Normal(14_938, 4_700),),
    "Blast_QRNA": (Normal(175_490, 9_527), Normal(4_130_553, 660_000)),
    "Blast_synteny": (Normal(1_146_801, 667_524),),
    "Blast_paralogues": (Normal(690_732, 602_251),),
    "SRNA_annotate": (Normal(1_561_215, 1_000_000),),
}
GENOME_BYTES = {
    "fna": Normal(5_248_967, 1_516_928),
    "ptt": Normal(328_511, 8_754),
    "gbk": Normal(11_664_926, 2_242_179),
    "ffn": Normal(4_202_875, 410_748),
}
SHARED_BYTES = {
    "partners": 889 * 288_565,
    "blast": 786_856 + 380_164 + 11_944,
    "qrna": 953_556 + 69_426 + 16_995 + 11_964 + 8_350 + 2_122,
    "RNAfold": 591_942,
    "motifs": 17_626,
    "terminators": 45_788,
    "known": 1_028_403 + 83_722 + 1_198,
    "known sequences": 172_432,
    "flanking": 1_419_426,
    "access": 170_917,
}
MATRIX_BYTES = Normal(170_917)  # each Patser has its own
OTHERS = 12  # tasks of a sub-workflow that are not Patser
TASKS_EACH = 30.25
SMALLEST = OTHERS + 1


def make(plan: WorkloadPlan) -> Graph:
    family = Family(plan)
    count = family.count(SMALLEST)
    genomes = max(1, round(count / TASKS_EACH))
    per_genome = family.shares("patsers", count - OTHERS * genomes, genomes, 0.1)
    shared = {name: family.outside(size) for name, size in SHARED_BYTES.items()}
    own = {name: family.outside(family.draw(name, size, genomes)) for name, size in GENOME_BYTES.items()}

    def one_each(kind: str, *read: Int64s) -> tuple[Int64s, ...]:
        added = family.stage(kind, genomes, LENGTH_S[kind], *WRITTEN_BYTES[kind])
        family.read(added.tasks, *read)
        return added.outputs

    (patsers,) = WRITTEN_BYTES["Patser"]
    of_genome = np.repeat(np.arange(genomes), per_genome)
    found_bytes = family.draw("patser", patsers, len(of_genome))
    patser = family.stage("Patser", len(of_genome), LENGTH_S["Patser"], found_bytes)
    matrices = family.outside(family.draw("matrix", MATRIX_BYTES, len(of_genome)))
    family.read(patser.tasks, own["fna"][of_genome], matrices)
    concate = family.stage("Patser_concate", genomes, LENGTH_S["Patser_concate"], totals(of_genome, found_bytes))
    family.read(concate.tasks[of_genome], patser.outputs[0])

    found = [
        *one_each("Findterm", own["fna"], shared["RNAfold"]),
        *one_each("RNAMotif", own["fna"], shared["motifs"]),
        *one_each("Transterm", own["fna"], own["ptt"], shared["terminators"]),
        *one_each("Blast", shared["partners"], shared["blast"]),
    ]
    candidates, listed, _ = one_each("SRNA", *found, own["gbk"], own["fna"], own["ptt"], shared["known"])
    (parsed,) = one_each("FFN_Parse", own["ffn"], own["ptt"], candidates)
    (known,) = one_each("Blast_candidate", shared["blast"], shared["known sequences"], candidates)
    folded, _ = one_each("Blast_QRNA", shared["partners"], shared["qrna"], shared["blast"], candidates)
    (synteny,) = one_each("Blast_synteny", shared["flanking"], parsed, shared["blast"], candidates)
    (paralogues,) = one_each("Blast_paralogues", shared["blast"], candidates)
    one_each("SRNA_annotate", concate.outputs[0], listed, known, folded, synteny, paralogues, shared["access"])
    return family.graph()


KIND = Kind("sipht", "small RNAs: a sub-workflow per genome, with few long and many short tasks", FAMILY_KEYS, make)
