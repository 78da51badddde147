"""A cluster whose store is a Valkey server: nodes and clients call it themselves, without a process of ours in between.
They also do what the embedded store's server does beside its store.

    words     messages between clients and nodes, on links of their own
    book      the list of sessions, as notes on the server
    ends      ends of tasks, read from the store's logs
    writing   rows of a client, written to the shards of their tasks
    desk      the base class of all callers of the store
    members   the desk of a node
    sweeping  ends sessions whose client is gone; one node does it
    clients   the desk of a client: it writes tasks into the store, and sends ready ones to their owners
    tools     the desk of a tool, which asks one question

A desk takes the same messages as the embedded store's server (`daws.runtime.cluster.words`), so nodes and clients do
not know which of the two it is. Messages on links may be lost. A client sends ready tasks again until their owner has
acknowledged them. When a client is gone, nodes ask the store which tasks they own.
"""
