"""What travels between nodes and to the store, as tagged structs. Knows no socket and no codec but msgspec."""
