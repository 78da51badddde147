"""One short script for each published table or figure, run by `daws study NAME`.

A module of this package is a study if it has a `STUDY`. It says what was published, runs the same in the simulator, and
returns a report. A report has tables *paper | daws*, a picture, and claims. Whether a claim holds is decided by the
numbers of this run. `studies/shared` has the common code.
"""

import importlib
import pkgutil

from .shared.study import Study


def find_studies() -> dict[str, Study]:
    """All studies by name: paper by paper, tables and figures in the order of their numbers."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.ispkg:
            study = getattr(importlib.import_module(f"{__name__}.{module.name}"), "STUDY", None)
            if isinstance(study, Study):
                found[study.name] = study
    return dict(sorted(found.items(), key=lambda item: (item[1].paper.partition(",")[0], _number_in(item[0]), item[0])))


def _number_in(name: str) -> int:
    return int("".join(letter for letter in name if letter.isdigit()) or 0)
