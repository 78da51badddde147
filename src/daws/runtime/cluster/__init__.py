"""Nodes, a store and clients in processes that come and go, on one machine or many.

    words    what is said on the links to the store
    reach    how the processes reach each other
    book     which sessions and how many nodes there were: what the store's server keeps beside its store
    ends     what has ended, for those who wait for it
    sessions what clients have left behind, and who waits for it
    serving  the store's server: it answers calls, hands ready tasks to those who own them, and tells of ends
    peers    the ports of a node
    parcels  small objects on the links between nodes
    noting   notes on runs and decisions, for the sessions that ask for them
    hosting  a node, from its start to its farewell; each start is a new incarnation
    joined   the whole cluster, as a client's session knows it
    private  the same for `Cluster(nodes=N)`, whose client starts all processes and replaces those that die
    children these processes, as the client sees them
    child    what such a process becomes: a store, or a node
    callers  who is connected to the store's server, and questions to all nodes
    asking   single questions to the store, for tools
    storing  the process of the store, and who starts it
    access   the way to the store, whichever it is
    direct/  a store that is a Valkey server: reached by everybody directly, without a server of ours

All of them carry out; what is decided is decided in the core.
"""
