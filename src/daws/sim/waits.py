"""Waits of pilots in batch queues: drawn by seed, from a fitted distribution or from recorded waits.

Two things vary. How full a queue is: that is drawn once for each resource and run, and all its jobs feel it. And the
luck of each job (`jitter`). Jobs of other sizes wait longer or shorter by a factor.
"""

from math import exp, inf, log
from statistics import NormalDist

from msgspec import Struct

from daws.strategy.decisions import Rng

_NORMAL = NormalDist()
_UNIT_MIN = 1e-12


class Waits(Struct, frozen=True):
    """The waits of one queue.

    `sigma` is that of a lognormal distribution around `median_s`, unless waits were `recorded`. Such distributions have
    long tails: longer waits than `most_s` are cut to that. `by_cores` has (cores of a job at most, factor), smallest
    first; larger jobs wait as the last.
    """

    median_s: float
    sigma: float = 0.0
    jitter: float = 0.0
    by_cores: tuple[tuple[int, float], ...] = ()
    recorded: tuple[float, ...] = ()
    most_s: float = inf

    def mean_s(self, cores: int) -> float:
        """The mean wait of jobs of this size."""
        if self.recorded:
            mean_s = sum(self.recorded) / len(self.recorded)
        else:
            mean_s = _mean_s(self.median_s, self.sigma, self.most_s)
        return mean_s * exp(self.jitter**2 / 2) * self._factor(cores)

    def fullness_s(self, rng: Rng) -> float:
        """A draw of how full the queue is in one run: the wait of a job of no particular size."""
        if self.recorded:
            return self.recorded[rng.below(len(self.recorded))]
        return min(self.median_s * exp(self.sigma * _normal(rng)), self.most_s) if self.sigma else self.median_s

    def draw_s(self, fullness_s: float, cores: int, rng: Rng) -> float:
        """A draw of the wait of one job."""
        luck = exp(self.jitter * _normal(rng)) if self.jitter else 1.0
        return fullness_s * luck * self._factor(cores)

    def experience(self) -> tuple[tuple[int, float], ...]:
        """The mean waits by size of a job, as planners see them."""
        sizes = [most for most, _ in self.by_cores] or [1]
        return tuple([(most, self.mean_s(most)) for most in sizes])

    def _factor(self, cores: int) -> float:
        for most, factor in self.by_cores:
            if cores <= most:
                return factor
        return self.by_cores[-1][1] if self.by_cores else 1.0


def _mean_s(median_s: float, sigma: float, most_s: float) -> float:
    """The mean of a lognormal distribution in which values above `most_s` count as `most_s`."""
    mean_s = median_s * exp(sigma**2 / 2)
    if most_s == inf or not sigma:
        return mean_s
    above = (log(most_s) - log(median_s)) / sigma
    return mean_s * _NORMAL.cdf(above - sigma) + most_s * (1 - _NORMAL.cdf(above))


def _normal(rng: Rng) -> float:
    return _NORMAL.inv_cdf(max(rng.unit(), _UNIT_MIN))
