"""All that travels between processes of daws, in one package with one version.

    calls       calls of a store, and what becomes of them
    store       the rows of a call, and their answers; membership has those about members and sessions
    messages    between nodes, and orders of clients and sweepers to nodes
    cluster     between the store, nodes, clients and tools
    session     between a client and a node, about the client's session
    objects     contents of objects, on links and on streams
    ends        how tasks end
    notes       notes on runs and decisions
    children    between the client of a private cluster and the processes that it starts
    crew        the workers of a node, as its client asks for them
    worker      between a node and its workers
    frames      bytes into frames; columns has the columns of many alike tasks or runs

The handshake alone is elsewhere (`daws.net.handshake`): it has to be read before the version is known, and so never
changes. The package knows no socket, and no codec but msgspec.
"""

PROTOCOL = 8
"""The version of all messages between processes that start independently. Both ends of a link must have the same."""
