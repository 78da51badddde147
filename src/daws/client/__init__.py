"""The names that users import: clusters, futures, and functions for them."""
