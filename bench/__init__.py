"""Benchmarks: how fast the simulator is, as ratios to a floor that is measured in the same run."""
