"""Random numbers that cost eight bytes of state and are the same in every replay: splitmix64."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MASK = 2**64 - 1
_GAMMA = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_UNIT = 2.0**-53


class SplitMix64:
    """A counter whose values are mixed well. `state` is all that has to be saved and restored."""

    __slots__ = ("state",)

    def __init__(self, seed: int) -> None:
        self.state = seed & _MASK

    def __repr__(self) -> str:
        return f"SplitMix64({self.state})"

    def next_u64(self) -> int:
        self.state = z = (self.state + _GAMMA) & _MASK
        z = ((z ^ (z >> 30)) * _MIX_1) & _MASK
        z = ((z ^ (z >> 27)) * _MIX_2) & _MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """One of 0 .. bound - 1; the bias is below bound / 2**64."""
        self.state = z = (self.state + _GAMMA) & _MASK
        z = ((z ^ (z >> 30)) * _MIX_1) & _MASK
        z = ((z ^ (z >> 27)) * _MIX_2) & _MASK
        return ((z ^ (z >> 31)) * bound) >> 64

    def unit(self) -> float:
        """A random number of at least 0 and less than 1."""
        return (self.next_u64() >> 11) * _UNIT


def hash_one(value: int, seed: int) -> int:
    """The hash of a single value, as `hash_u64` computes it."""
    return SplitMix64(seed + value * _GAMMA).next_u64()


def hash_u64(values: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.uint64]:
    """A hash of each value `v`: the (v + 1)-th number of the generator with this seed."""
    import numpy as np

    z = values.astype(np.uint64) + np.uint64(1)
    z *= np.uint64(_GAMMA)
    z += np.uint64(seed & _MASK)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX_2)
    return z ^ (z >> np.uint64(31))
