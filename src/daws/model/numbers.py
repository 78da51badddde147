"""Numbers as users type them: one reader for the command line, workloads and strategies."""

import math
import re
from functools import lru_cache

LENGTH_MAX = 40
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgtp]?)(i?)b?", re.IGNORECASE | re.ASCII)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def read_number(text: str) -> int | float | None:
    """The number that a text stands for, None if it is none; whole numbers are exact.

    Python's own int() and float() also take nan, 1_000, blanks around a number, and digits of other scripts. This
    reader does not. A number that is too large for a float is inf.
    """
    if len(text) > LENGTH_MAX or _NUMBER.fullmatch(text) is None:
        return None
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def read_whole(text: str) -> int | None:
    """The whole number that a text such as 1000 or 1e3 stands for, None if it is none."""
    number = read_number(text)
    return None if number is None or math.isinf(number) or number != int(number) else int(number)


@lru_cache(1024)
def read_size(text: str) -> float | None:
    """The number of bytes that a text such as `10 MB` or `2 GiB` stands for, None if it is none."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    unit: float = (1024 if found[3] else 1000) ** _POWERS[found[2].lower()]
    return float(found[1]) * unit
