"""daws beside its peers: the same workloads for each system, interleaved in one run, as ratios.

`systems/` has one adapter per system, `workloads.py` what each of them is given, `runner.py` starts one process per
(system, workload, repetition), `aims.py` says what daws wants to reach, `report.py` and `plot.py` show it.
"""
