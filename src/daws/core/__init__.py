"""The scheduling core: a node (and a client) as a value that turns events into effects.

Nothing in here knows a clock, a socket, a thread or whether it is simulated.
"""
