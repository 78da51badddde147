"""Messages between nodes, workers, clients and the store, as tagged structs. Knows no socket and no codec but
msgspec."""
