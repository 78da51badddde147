"""Predictions for a graph on a cluster: `daws.simulate`, `daws.bound`, and the commands `daws sim` and `daws bound`.

    source      the input: a workload, a workflow file, a graph
    asked       the cluster, the costs and the graph that were asked for
    simulation  a simulated run, which prints, plots and becomes a frame
    limits      the bound that no schedule can beat, likewise
    tables      numbers and tables as text and HTML
    frames      tables as pandas frames

Nothing here runs a task.
"""
