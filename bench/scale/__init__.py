"""A hundred live nodes on one machine: `python -m bench.scale`.

launching  the processes of the cluster, forked from one that has imported everything
counting   what their links carried, and what their store was told
ground     a cluster that is up, and what its processes have used
runs       one workload on it, and what the simulator says of the same
killing    a node that is killed in the middle of a graph
page       the tables of docs/scale.md
"""
