"""All kinds of workload by name, and the way from a text such as `pipeline:size=10` to a workload."""

from daws.model.errors import WorkloadError
from daws.workloads import (
    all_pairs,
    bot,
    cybershake,
    ensemble,
    epigenomics,
    fan_in,
    fan_out,
    fmri,
    image_stacking,
    inspiral,
    layered,
    moldyn,
    montage,
    pipeline,
    sipht,
    skeleton,
)
from daws.workloads.parameters import read_values, shown, written
from daws.workloads.workload import Kind, Workload

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        bot.KIND,
        fan_in.KIND,
        fan_out.KIND,
        pipeline.KIND,
        all_pairs.KIND,
        image_stacking.KIND,
        layered.KIND,
        skeleton.KIND,
        ensemble.KIND,
        cybershake.KIND,
        epigenomics.KIND,
        inspiral.KIND,
        montage.KIND,
        sipht.KIND,
        moldyn.KIND,
        fmri.KIND,
    )
}


def parse_workload(text: str) -> Workload:
    """Read `kind` or `kind:key=value,key=value`; WorkloadError in one line if it makes no sense."""
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if name not in KINDS:
        raise WorkloadError(f"there is no workload {shown(name)}; workloads: {', '.join(KINDS)}")
    kind = KINDS[name]
    return Workload(kind, read_values(name, kind.parameters, rest) if colon else {})


def describe_kinds() -> str:
    """A table of all kinds and their parameters."""
    lines: list[str] = []
    for kind in KINDS.values():
        lines.append(f"{kind.name}: {kind.help}")
        rows = [(one.key, one.type_name, written(one.default), one.unit, one.help) for one in kind.parameters]
        rows.insert(0, ("key", "type", "default", "unit", "meaning"))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True))
            lines.append("  " + "  ".join((*cells, row[4])).rstrip())
        lines.append("")
    return "\n".join(lines[:-1])
