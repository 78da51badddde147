"""Numbers as they are found in workflow files, and texts from such files in messages.

Real files have decimal commas, numbers in quotes, negative runtimes and `NaN` where nothing was measured.
"""

import math
import re
import shlex

from daws.model.graph import TOTAL_MAX

SHOWN_LENGTH_MAX = 40
NS_PER_S = 1_000_000_000
CORES_MAX = 2**15 - 1
# Memory as HTCondor takes it: megabytes unless a unit says otherwise.
MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt])i?b?", re.IGNORECASE)
MB_PER_UNIT = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")

Found = str | float | int | None


def shown(text: object) -> str:
    """The text of a value, in quotes, on one line and not too long."""
    found = str(text)
    return repr(found if len(found) <= SHOWN_LENGTH_MAX else found[: SHOWN_LENGTH_MAX - 3] + "...")


def number(found: Found, is_whole: bool = False) -> float | None:
    """A finite number, or None if there is none; ValueError in words for anything else.

    If `is_whole` is set, as for bytes, the text `1,024` is one thousand and twenty-four. Otherwise the comma is a
    decimal comma.
    """
    if isinstance(found, str):
        found = _spelled(found, is_whole)
    if found is None:
        return None
    try:
        value = float(found)
    except OverflowError:
        value = math.inf
    if math.isnan(value):
        return None
    if math.isinf(value):
        raise ValueError("is not a finite number")
    return value


def is_number(text: str) -> bool:
    """Whether a text is a number, or empty."""
    try:
        number(text)
        return True
    except ValueError:
        return False


def megabytes(text: str) -> str:
    """A text with a unit, such as `3 GB`, as a text without one; every other text as it is."""
    found = MEMORY.fullmatch(text.strip())
    return text if found is None else str(float(found[1]) * MB_PER_UNIT[found[2].lower()])


def bytes_in(found: Found) -> float | None:
    """The number of bytes in a value; None if it is missing."""
    return number(found, is_whole=True)


def _spelled(text: str, is_whole: bool) -> float | None:
    text = text.strip()
    if not text:
        return None
    if "_" in text:  # Python would take 1_000 for a number
        raise ValueError("is not a number")
    if GROUPED.fullmatch(text) and (is_whole or text.count(",") > 1):
        text = text.replace(",", "")
    elif "," in text:
        # The later of the two separates the decimals: 1.234,5 and 1,234.5 are the same, and 0,01 is a hundredth.
        text = text.replace(".", "").replace(",", ".") if text.rfind(",") > text.rfind(".") else text.replace(",", "")
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number") from None


def words(text: str) -> tuple[str, ...]:
    """The words of a command line, as a shell would split it; split at spaces alone if its quotes do not match."""
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return tuple(text.split())


def whole(value: float, high: int, what: str) -> int:
    """The number, rounded. Negative numbers are left to the caller."""
    if value > high:
        raise ValueError(f"is more than {high} {what}")
    return round(value)


def nanoseconds(seconds: float) -> int:
    """Seconds as rounded nanoseconds. A number of nanoseconds divided by a billion is restored exactly, up to 50
    days."""
    whole(seconds * NS_PER_S, TOTAL_MAX, "ns")
    full = int(seconds)
    return full * NS_PER_S + round((seconds - full) * NS_PER_S)


def size(value: float) -> int:
    return whole(value, TOTAL_MAX, "bytes")


def cores(value: float) -> int:
    """The number of cores, rounded up: a part of a core counts as a core."""
    return max(1, whole(math.ceil(value), CORES_MAX, "cores"))
