"""Priorities in all orders: the task with the higher one always goes first."""

STEP = 2.0**60
"""The weight of one step of priority: more than any number of bytes or nanoseconds of a task.

Among tasks with a priority, floats of this size tell keys apart down to 256 bytes or nanoseconds.
"""
