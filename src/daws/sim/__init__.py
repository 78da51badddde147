"""The simulator: the first of the two drivers of the core. It models time and failures and decides nothing."""
