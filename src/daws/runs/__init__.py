"""The record of a live run: a timeline of when and where each task ran, and results computed from it.

The package knows no processes, files of objects or clocks; drivers that carry tasks out fill the timeline.
"""
