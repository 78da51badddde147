"""Recorded workflows carried out for real on a cluster: as tasks that only pretend, or by their own commands.

`submission.py` brings a graph through a cluster, whatever its tasks do; `emulation.py` and `execution.py` say what they
do. `emulated.py` and `command.py` are what workers import, and hence import next to nothing themselves.
"""
