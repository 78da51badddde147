"""A cluster whose store is a Valkey server: nodes and clients call it themselves, without a process of ours in between.

    calls     the calls of one process, and which of them are safe
    desk      the front of the store for a client or a tool
    members   that of a node, which also does for others what a server of the store would do
    ends      ends of tasks, read from the store's logs

A desk takes the same messages as the embedded store's server (`daws.wire.cluster`), so nodes and clients do
not know which of the two it is.
"""
