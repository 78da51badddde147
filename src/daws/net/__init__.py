"""Links between the processes of one cluster, on one host or many, and the keys that open them.

`config` reads `cluster.toml`, `folder` makes the folder of a cluster (`certificates` its keys), `keys` opens them.
`address` parses addresses, `handshake` checks a peer before anything else is read. `link` carries messages on an event
loop, `door` makes such links, `links` keeps one for each peer; `stream` carries the bytes of files on threads.
`listening` and `tls` serve both. `complaints` logs peers that misbehave. The package knows nothing of nodes, stores or
clients beyond their names.
"""
