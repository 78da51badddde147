"""The metadata service: one port, several backends. Backends ignore each other, but for the rules: those of `memory`
hold in all of them, as the same code."""
