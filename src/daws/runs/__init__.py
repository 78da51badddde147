"""What happened in a live run: a timeline of when and where each task ran, and what can be told from it.

Knows no processes, files of objects or clocks; whoever carries tasks out tells the timeline.
"""
