"""What a graph would do on a cluster: `daws.simulate` and `daws.bound`, and what `daws sim` and `daws bound` do.

    source      what is to be run: a workload, a workflow file, a graph
    asked       the cluster, the costs and the graph that were asked for
    simulation  a simulated run, which prints, plots and becomes a frame
    limits      what no schedule can beat, likewise
    tables      numbers and tables as text and HTML
    frames      tables as pandas frames

Nothing here runs a task.
"""
