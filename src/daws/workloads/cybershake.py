"""CyberShake: seismic hazard of a site. Few tasks cut huge files, many synthesise seismograms from the cuts.

    ExtractSGT -> SeismogramSynthesis -> PeakValCalcOkaya -> ZipPSA
                                     \\-> ZipSeis

One task in 123 is an extraction. It reads two files of 20 GB of its own, and all of its syntheses read the part that it
cut out. The figures are those of the Pegasus workflow generator (Bharathi et al. 2008), from which the classic files
were made. A zip takes 5,200 files at most, about as in the run that Juve et al. (2013) profiled (quoted from memory):
404,864 syntheses and 78 zips of each kind.
"""

import numpy as np

from daws.model.graph import Graph
from daws.workloads.family import FAMILY_KEYS, Family, Normal
from daws.workloads.workload import Kind, WorkloadPlan

LENGTH_S = {
    "ExtractSGT": Normal(137.45, 206),
    "SeismogramSynthesis": Normal(43.40, 31),
    "PeakValCalcOkaya": Normal(1.09, 1.93),
}
FILE_BYTES = {
    "sgt": Normal(19_958_666_972, 306_030_527),  # one for each of two directions, as are the cuts
    "cut": Normal(231_720_132, 164_565_041),
    "variation": Normal(3_708_599, 3_187_576),
    "seismogram": Normal(24_000),
    "peaks": Normal(216),
}
ZIP_FACTOR = 6  # packed is this much smaller
ZIP_BYTES_PER_S = {"ZipSeis": 228_180, "ZipPSA": 2_782}
EXTRACTIONS_PER_TASK = 0.0081
ZIPPED_MAX = 5_200
SMALLEST = 5


def make(plan: WorkloadPlan) -> Graph:
    family = Family(plan)
    count = family.count(SMALLEST)
    zips = -(-count // (2 * ZIPPED_MAX))
    left = count - 2 * zips
    extractions = max(2, round(left * EXTRACTIONS_PER_TASK))
    extractions -= (left - extractions) % 2  # syntheses and peak values come in pairs
    syntheses = (left - extractions) // 2

    cut = family.draw("cut", FILE_BYTES["cut"], extractions)
    extract = family.stage("ExtractSGT", extractions, LENGTH_S["ExtractSGT"], cut, cut)
    synthesise = family.stage(
        "SeismogramSynthesis", syntheses, LENGTH_S["SeismogramSynthesis"], FILE_BYTES["seismogram"]
    )
    peaks = family.stage("PeakValCalcOkaya", syntheses, LENGTH_S["PeakValCalcOkaya"], FILE_BYTES["peaks"])

    sgt = family.draw("sgt", FILE_BYTES["sgt"], extractions)
    variations = family.outside(family.draw("variation", FILE_BYTES["variation"], syntheses))
    per_extraction = family.shares("syntheses", syntheses, extractions, 0.25)
    last = np.cumsum(per_extraction) - 1
    family.read(extract.tasks, family.outside(sgt), family.outside(sgt), variations[last])
    source = np.repeat(np.arange(extractions), per_extraction)
    family.read(synthesise.tasks, *(files[source] for files in extract.outputs), variations)
    family.read(peaks.tasks, synthesise.outputs[0])

    per_zip = family.shares("zips", syntheses, zips, 0)
    for kind, parts, file in (("ZipSeis", synthesise, "seismogram"), ("ZipPSA", peaks, "peaks")):
        packed = per_zip * FILE_BYTES[file].mean / ZIP_FACTOR
        zipping = family.stage(kind, zips, packed / ZIP_BYTES_PER_S[kind], packed)
        family.read(np.repeat(zipping.tasks, per_zip), parts.outputs[0])
    return family.graph()


KIND = Kind("cybershake", "seismic hazard: cuts of huge files, each shared by many syntheses", FAMILY_KEYS, make)
