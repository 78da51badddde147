"""How all orders treat priorities: the higher one always goes first, whatever else an order compares."""

STEP = 2.0**60
"""What one step of priority weighs: more than any number of bytes or nanoseconds that a task brings along.

Among tasks with a priority, floats of this size tell keys apart down to 256 bytes or nanoseconds."""
