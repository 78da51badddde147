"""The driver that runs nodes for real: effects become worker processes, files and calls; what happens, events."""
