"""The vocabulary of daws: tasks, objects, graphs, contexts and errors, as plain values.

Lowest layer. It may not know nodes, strategies, clocks, files or the network, and it draws no random numbers.
"""
