"""Columns as a pandas frame. The only file that imports pandas, which daws does not need otherwise."""

from collections.abc import Mapping
from typing import Any

from daws.model.errors import UsageError


def frame_of(columns: Mapping[str, Any], index: str) -> Any:
    """A `pandas.DataFrame` of these columns, one of which is its index; UsageError without pandas."""
    try:
        import pandas
    except ImportError as error:
        raise UsageError("frames need pandas, which is not installed: pip install pandas") from error
    return pandas.DataFrame(dict(columns)).set_index(index)
