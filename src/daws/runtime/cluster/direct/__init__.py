"""A cluster whose store is a Valkey server: nodes and clients call it themselves, and there is no process of ours in
between. What the embedded store's server does beside its store is done here by those whom it concerns.

    words     what clients and nodes say to each other on links of their own
    book      which sessions there are, as notes on the server
    ends      what has ended: read from the store's logs by those who wait for it
    writing   a client's rows, in the shards where their tasks live
    desk      what all who talk to the store have in common
    members   the desk of a node; one of them also ends what clients have left behind (`sweeping`)
    clients   the desk of a client: it writes its tasks into the store, and hands those that are ready to their owners
    tools     the desk of tools, which ask one question

A desk is talked to with the same words as the embedded store's server (`daws.runtime.cluster.words`), so nodes and
clients do not know which of the two it is. Whatever is said on links may be lost: tasks that a client has handed out
are handed out again until their owner says that it has them, and when a client is gone, nodes ask the store what is
theirs.
"""
