"""daws: data-aware work stealing.

This file imports nothing, so that `import daws` costs next to nothing and no layer is loaded that nobody asked for.
"""

__version__ = "0.1.0"
