"""What studies have in common: how they are described, run, shown and written down."""
