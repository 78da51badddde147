"""Links between the processes of one cluster, on one host or many, and the keys that open them.

`config` is what a cluster is told about itself, `folder` makes the folder of a cluster (`certificates` its keys),
`keys` opens them. `address` says where somebody listens, `handshake` what is checked before anything else is read.
`link` carries messages on an event loop, `door` makes such links, `links` keeps one for each peer; `stream` carries the
bytes of files on threads. `listening` and `tls` serve both, `complaints` puts what strangers do into the
log, one line each and not too many. Knows nothing of nodes, stores or clients beyond their names.
"""
