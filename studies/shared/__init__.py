"""The common code of studies: how they are described, run, shown and written down."""
