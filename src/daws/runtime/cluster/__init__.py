"""Nodes, a store and clients in processes that start and end independently, on one machine or many.

    words    messages on the links to the store
    reach    addresses and keys: how the processes reach each other
    access   the connection to the store, embedded or Valkey
    storing  the process of the store, and its start
    serving  the store's server: answers calls, sends ready tasks to their owners, tells of ends
    clock    the clock of the store's server, which stands still while its process is stopped
    callers  connections to the store's server, and questions to all nodes
    book     the sessions and the number of nodes, in a file beside the store
    ends     ends of tasks, for clients and nodes that wait for them
    sessions sessions on the store's server, with or without a client
    hosting  a node, from its start to its farewell; each start is a new incarnation
    peers    the ports of a node
    parcels  small objects on the links between nodes
    noting   notes on runs and decisions, for the sessions that ask for them
    joined   the client of a cluster
    private  the client of `Cluster(nodes=N)`: starts all processes and replaces those that die
    children the processes of a private cluster, as their client sees them
    child    the main function of such a process: a store, or a node
    asking   single questions to the store, for tools
    direct/  a store on a Valkey server, which nodes and clients call themselves

These modules carry out decisions. The core makes them.
"""
