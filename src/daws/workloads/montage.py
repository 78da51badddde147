"""Montage: a mosaic of the sky. Images are projected, fitted where they overlap, corrected, and added up.

    mProjectPP -> mDiffFit -> mConcatFit -> mBgModel -> mBackground -> mImgTbl -> mAdd -> mShrink -> mJPEG
         \\________________________________________________/

There are about four overlaps for each image. Those of the sky are between neighbours, as here; the classic files have
pairs at random, which `overlap=random` gives. The figures are those of the Pegasus workflow generator (Bharathi et al.
2008), from which the classic files were made. The tasks that exist once take longer with every image or overlap. As in
the classic files, mAdd reads a table alone, though the real one reads the images again.
"""

import numpy as np

from daws.model.columns import Int64s, distinct
from daws.model.graph import Graph
from daws.workloads.family import FAMILY_KEYS, Family, Normal
from daws.workloads.parameters import Choice
from daws.workloads.workload import Kind, WorkloadPlan

LENGTH_S = {
    "mProjectPP": Normal(13.59, 0.24),
    "mDiffFit": Normal(10.59, 0.1),
    "mBackground": Normal(10.74, 0.17),
}
SECONDS_PER_OVERLAP = {"mConcatFit": 0.08, "mBgModel": 0.13}
SECONDS_PER_IMAGE = {"mImgTbl": 0.37, "mAdd": 30.11 / 50}
SHRINK_S = 12.21  # for one degree of the sky, as are the bytes of the mosaic
JPEG_BYTES_PER_S = 549_291
FILE_BYTES = {
    "raw": Normal(4_222_080),
    "image": Normal(4_162_432, 10_666),  # and a second file as large, with the areas of its pixels
    "fit": Normal(274, 9.9),
    "difference": Normal(284_097, 147_591),
}
HEADER_BYTES = 304
BYTES_PER_OVERLAP = {"fits list": 27.26, "fits": 209.95}
BYTES_PER_IMAGE = {"images": 167.56, "corrections": 53.18, "corrected": 352.24}
MOSAIC_BYTES = Normal(173_465_280, 10_000_000)
SHRUNK, JPEG = 24.99, Normal(0.16, 0.07)  # by how much the mosaic shrinks, and the picture's share of that
IMAGES_PER_DEGREE = 50
OVERLAPS_PER_IMAGE = 4
REACH = 8  # no overlap is farther; from here on there are enough that are nearer
SINGLES = 6  # tasks that are there once
SMALLEST = 15

OVERLAP = Choice("overlap", "neighbours", "which images overlap: neighbours, or any two", ("neighbours", "random"))


def make(plan: WorkloadPlan) -> Graph:
    family = Family(plan)
    left = family.count(SMALLEST) - SINGLES
    images = round(left / (2 + OVERLAPS_PER_IMAGE))
    while images * (images - 1) // 2 < left - 2 * images:  # few images do not have enough pairs
        images += 1
    overlaps = left - 2 * images
    degree = float(np.sqrt(images / IMAGES_PER_DEGREE))
    pairs = neighbours if plan.values.word("overlap") == "neighbours" else random_pairs
    one, other = pairs(images, overlaps, family.rng("overlaps"))
    header = family.outside(HEADER_BYTES)

    size = family.draw("image", FILE_BYTES["image"], images)
    project = family.stage("mProjectPP", images, LENGTH_S["mProjectPP"], size, size)
    family.read(project.tasks, header, family.outside(family.draw("raw", FILE_BYTES["raw"], images)))
    fit = family.stage("mDiffFit", overlaps, LENGTH_S["mDiffFit"], FILE_BYTES["fit"], FILE_BYTES["difference"])
    family.read(fit.tasks, header, *(file[pair] for pair in (one, other) for file in project.outputs))

    concat_s, model_s = (Normal(overlaps * each) for each in SECONDS_PER_OVERLAP.values())
    table_s, add_s = (Normal(images * each) for each in SECONDS_PER_IMAGE.values())
    concat = family.stage("mConcatFit", 1, concat_s, Normal(overlaps * BYTES_PER_OVERLAP["fits"]))
    family.read(concat.tasks, family.outside(overlaps * BYTES_PER_OVERLAP["fits list"]))
    family.read(np.repeat(concat.tasks, overlaps), fit.outputs[0])
    model = family.stage("mBgModel", 1, model_s, Normal(images * BYTES_PER_IMAGE["corrections"]))
    family.read(model.tasks, concat.outputs[0], family.outside(images * BYTES_PER_IMAGE["images"]))

    correct = family.stage("mBackground", images, LENGTH_S["mBackground"], size, size)
    family.read(correct.tasks, *project.outputs, model.outputs[0])
    table = family.stage("mImgTbl", 1, table_s, Normal(images * BYTES_PER_IMAGE["corrected"]))
    family.read(table.tasks, family.outside(images * BYTES_PER_IMAGE["images"]))
    family.read(np.repeat(table.tasks, images), *correct.outputs)

    mosaic = family.draw("mosaic", MOSAIC_BYTES, 1) * degree
    add = family.stage("mAdd", 1, add_s, mosaic, mosaic)
    family.read(add.tasks, table.outputs[0], header)
    shrink = family.stage("mShrink", 1, Normal(SHRINK_S * degree), mosaic / SHRUNK)
    family.read(shrink.tasks, *add.outputs)
    picture = mosaic / SHRUNK * family.draw("jpeg", JPEG, 1)
    jpeg = family.stage("mJPEG", 1, picture / JPEG_BYTES_PER_S, picture)
    family.read(jpeg.tasks, shrink.outputs[0])
    return family.graph()


def neighbours(images: int, overlaps: int, rng: np.random.Generator) -> tuple[Int64s, Int64s]:
    """Pairs of images in a square, nearest first; where not all pairs of a distance are needed, some at random."""
    side = int(np.ceil(np.sqrt(images)))
    number = np.arange(images, dtype=np.int64)
    row, column = number // side, number % side
    reach = min(side, REACH)
    steps = [(down, right) for down in range(reach) for right in range(1 - reach, reach) if down or right > 0]
    ones, others, missing = [], [], overlaps
    for down, right in sorted(steps, key=lambda step: step[0] ** 2 + step[1] ** 2):
        there = (row + down) * side + column + right
        one = number[(column + right >= 0) & (column + right < side) & (there < images)]
        if len(one) > missing:
            one = np.sort(rng.permutation(one)[:missing])
        ones.append(one)
        others.append(one + down * side + right)
        missing -= len(one)
        if not missing:
            break
    return np.concatenate(ones), np.concatenate(others)


def random_pairs(images: int, overlaps: int, rng: np.random.Generator) -> tuple[Int64s, Int64s]:
    """Different pairs of different images."""
    if images * (images - 1) // 2 < 4 * overlaps:
        codes = np.flatnonzero(np.triu(np.ones((images, images), np.bool_), 1))
    else:
        codes = np.zeros(0, np.int64)
        while len(codes) < overlaps:
            one, other = rng.integers(0, images, (2, 2 * overlaps))
            code = np.minimum(one, other) * images + np.maximum(one, other)
            codes = distinct(np.concatenate([codes, code[one != other]]))
    chosen = np.sort(rng.permutation(codes)[:overlaps])
    return chosen // images, chosen % images


KIND = Kind(
    "montage", "a mosaic of the sky: overlaps of images, then few tasks one by one", (*FAMILY_KEYS, OVERLAP), make
)
