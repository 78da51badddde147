"""What users import: clusters, futures, and what to do with them."""
