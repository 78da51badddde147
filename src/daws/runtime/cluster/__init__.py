"""Nodes, a store and clients in processes that start and end independently, on one machine or many.

    reach      addresses and keys: how the processes reach each other
    access     the connection to the store, embedded or Valkey, made anew when it is lost
    joined     the client of a cluster: the driver of its session
    nodelinks  a client's links to the nodes; questions has what it asks all of them
    pace       how long new tasks wait for others
    farobjects objects of nodes, as a client reads and writes them
    rival      another client of a session that is asked for
    private    the client of `Cluster(nodes=N)`: starts all processes and replaces those that die
    children   the processes of a private cluster, as their client sees them
    child      the main function of such a process: a store, or a node
    storing    the process of the store, and its start
    front      what is asked of a store beside calls, answered in one way for all stores
    serving    the embedded store's server: answers calls, tells its callers of ends and members
    clock      its clock, which stands still while its process is stopped
    sweeping   ends sessions, with or without a client
    hosting    a node, from its start to its farewell; each start is a new incarnation
    clients    a node's links to clients
    peers      the ports of a node
    parcels    small objects on the links between nodes
    noting     notes on runs and decisions, for the sessions that ask for them
    asking     questions and orders of tools
    direct/    a store on a Valkey server, which nodes and clients call themselves

These modules carry out decisions. The core makes them.
"""
