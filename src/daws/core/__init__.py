"""The scheduling core: a node (and a client) as a value that turns events into effects.

Nothing in here knows a clock, a socket, a thread or whether it is simulated.
"""

# The handlers beside `node` need it, and it needs them at its end: it comes first, whoever is imported.
from daws.core import node as node
