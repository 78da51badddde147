"""Epigenomics: DNA sequences of several lanes are split into chunks, each chunk is mapped, and all maps are merged.

    fastqSplit -> filterContams -> sol2sanger -> fastq2bfq -> map -> mapMerge -> mapMerge -> maqindex -> pileup
      1 : n            each chunk goes its own way            n : 1    of lanes    of all

The second mapMerge exists only if there are several lanes. Nearly all of the time goes into `map`, which reads the
whole reference genome. Rates and factors are those of the Pegasus workflow generator (Bharathi et al. 2008), from which
the classic files were made. The size of the reference and 35 chunks in a lane are those of the classic file of 997
tasks.
"""

import numpy as np

from daws.model.graph import Graph
from daws.workloads.family import FAMILY_KEYS, Family, Floats, Normal, totals
from daws.workloads.workload import Kind, WorkloadPlan

REFERENCE_BYTES = 5_304_606_607
LANE_BYTES = Normal(351_024_866, 147_899_296)
# The rate at which a task works through its input; `map` and `pileup` go by the reference.
BYTES_PER_S = {
    "fastqSplit": Normal(7_663_927, 2_375_099),
    "filterContams": Normal(8_474_777, 5_002_153),
    "sol2sanger": Normal(15_073_990, 3_556_068),
    "fastq2bfq": Normal(6_797_391, 1_110_361),
    "map": Normal(369_552, 114_235),
    "mapMerge": Normal(2_267_233, 329_008),
    "maqindex": Normal(17_679_204, 4_724_464),
    "pileup": Normal(881_356, 94_639),
}
# The factor by which the output of a task is smaller than its input.
SMALLER = {
    "sol2sanger": Normal(1.32, 0.316),
    "fastq2bfq": Normal(4.24, 0.4),
    "map": Normal(0.92),
    "mapMerge": Normal(1.06),
    "maqindex": Normal(64.25, 25.4),
}
CLEAN = Normal(0.5, 0.03)  # share of a chunk that passes the filter
CHUNK = Normal(1.0, 0.5)  # a chunk's share of its lane, before they are made to add up
MERGED_EXTRAS = (0.05, 0.005)  # two more files of the last merge, as shares of the merged size
PILEUP_LARGER = Normal(5.0, 10.0)
CHUNKS_PER_LANE = 35
STEPS = 4  # tasks that each chunk goes through
SMALLEST = 8


def make(plan: WorkloadPlan) -> Graph:
    family = Family(plan)
    count = family.count(SMALLEST)
    lanes = max(1, round((count - 3) / (STEPS * CHUNKS_PER_LANE + 2)))
    chunks = (count - 2 * lanes - (3 if lanes > 1 else 2)) // STEPS
    per_lane = family.shares("chunks", chunks, lanes, 0)
    lane = np.repeat(np.arange(lanes), per_lane)
    lane_bytes = family.draw("lane", LANE_BYTES, lanes)
    share = family.draw("chunk", CHUNK, chunks)
    chunk_bytes = share * (lane_bytes / totals(lane, share))[lane]

    splitting = family.split("fastqSplit", _seconds(family, "fastqSplit", lane_bytes), per_lane, chunk_bytes)
    family.read(splitting.tasks, family.outside(lane_bytes))

    clean = chunk_bytes * family.draw("clean", CLEAN, chunks)
    filtering = family.stage(
        "filterContams", chunks, _seconds(family, "filterContams", chunk_bytes), clean, chunk_bytes - clean
    )
    family.read(filtering.tasks, splitting.outputs[0])

    before, read = filtering, clean
    for kind in ("sol2sanger", "fastq2bfq"):
        written = _smaller(family, kind, read)
        step = family.stage(kind, chunks, _seconds(family, kind, read), written)
        family.read(step.tasks, before.outputs[0])
        before, read = step, written

    reference = np.full(chunks, float(REFERENCE_BYTES))
    mapped = _smaller(family, "map", read)
    mapping = family.stage("map", chunks, _seconds(family, "map", reference), mapped)
    family.read(mapping.tasks, family.outside(REFERENCE_BYTES), before.outputs[0])

    merging, parts, sources = mapping, mapped, lane
    while True:
        to_merge = totals(sources, parts)
        merged = _smaller(family, "mapMerge", to_merge)
        # Only the last merge writes two more files.
        extras = [merged * share for share in MERGED_EXTRAS] if len(merged) == 1 else []
        step = family.stage("mapMerge", len(merged), _seconds(family, "mapMerge", to_merge), merged, *extras)
        family.read(step.tasks[sources], merging.outputs[0])
        if len(merged) == 1:
            break
        merging, parts, sources = step, merged, np.zeros(len(merged), np.int64)

    # The index is written as fast as the other tasks read.
    index = _smaller(family, "maqindex", merged)
    indexing = family.stage("maqindex", 1, _seconds(family, "maqindex", index), index)
    family.read(indexing.tasks, step.outputs[0])
    pileup = family.stage(
        "pileup", 1, _seconds(family, "pileup", reference[:1]), index * family.draw("pileup/size", PILEUP_LARGER, 1)
    )
    family.read(pileup.tasks, family.outside(REFERENCE_BYTES), indexing.outputs[0])
    return family.graph()


def _seconds(family: Family, kind: str, worked_bytes: Floats) -> Floats:
    """The time that tasks take for this many bytes. The merges of lanes and of all lanes have draws of their own."""
    count = len(worked_bytes)
    return worked_bytes / family.draw(f"{kind}/rate/{count}", BYTES_PER_S[kind], count)


def _smaller(family: Family, kind: str, read_bytes: Floats) -> Floats:
    """The bytes that tasks write for the bytes that they read."""
    return read_bytes / family.draw(f"{kind}/factor", SMALLER[kind], len(read_bytes))


KIND = Kind("epigenomics", "DNA sequences: lanes of chunks, long tasks that share a reference", FAMILY_KEYS, make)
