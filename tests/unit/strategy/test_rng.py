import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daws.strategy.rng import SplitMix64, hash_u64

SEEDS = st.integers(0, 2**64 - 1)


def test_published_values():
    rng = SplitMix64(1234567)
    assert [rng.next_u64() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(SEEDS, st.integers(1, 2**40))
def test_below_is_below_and_reads_the_same_stream(seed: int, bound: int):
    one, other = SplitMix64(seed), SplitMix64(seed)
    drawn = one.below(bound)
    assert 0 <= drawn < bound
    assert drawn == other.next_u64() * bound >> 64
    assert one.state == other.state


@given(SEEDS)
def test_unit_is_at_least_0_and_less_than_1(seed: int):
    assert 0 <= SplitMix64(seed).unit() < 1


@given(SEEDS)
def test_state_is_all_there_is(seed: int):
    rng = SplitMix64(seed)
    rng.next_u64()
    copy = SplitMix64(rng.state)
    assert copy.next_u64() == rng.next_u64()


@given(SEEDS)
def test_the_vectorised_form_draws_the_same_numbers(seed: int):
    rng = SplitMix64(seed)
    assert hash_u64(np.arange(5), seed).tolist() == [rng.next_u64() for _ in range(5)]


def test_draws_are_even():
    rng = SplitMix64(3)
    counts = np.bincount([rng.below(10) for _ in range(10_000)], minlength=10)
    assert counts.min() > 900
    assert counts.max() < 1100


def test_seeds_may_be_any_integer():
    assert SplitMix64(-1).state == 2**64 - 1
    assert repr(SplitMix64(5)) == "SplitMix64(5)"
    assert len(hash_u64(np.arange(3), -7)) == 3
