"""Priorities in all orders: the higher one always goes first, whatever else an order compares."""

STEP = 2.0**60
"""The weight of one step of priority: more than any number of bytes or nanoseconds of a task.

Among tasks with a priority, floats of this size tell keys apart down to 256 bytes or nanoseconds.
"""
