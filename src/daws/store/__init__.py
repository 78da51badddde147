"""The metadata service: one port, several backends. Backends ignore each other."""
