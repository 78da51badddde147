"""The store on a Valkey (or Redis) server or Cluster: for many machines, and for sites that run such a server already.

The rules are those of `daws.store.memory`, and they are not written a second time. Each process runs those handlers
itself, on the few records that it needs. A small script on the server, which knows nothing of tasks, commits the
changes: it writes all of them if nothing that was read has changed meanwhile, and else none. Many processes work on one
shard at the same time; they conflict only if they change the same tasks.

    cells     the content of a shard on the server, as bytes
    view      a shard as the handlers see it, filled from a cache
    bursts    many rows of one kind in one go
    attempt   one attempt at the rows of a call
    caller    one process's calls to one shard, without a socket: attempts, commits, losses of a failover
    told      stamps that callers tell each other, so that cells need not be fetched
    scripts   scripts and commands for the server
    link      one connection
    server    a server or Cluster that is asked until it answers
    trouble   errors of the server, translated
    store     the store on an event loop
    blocking  the store without one
    safety    which acknowledged updates a failover could still lose
    numbers   numbers of nodes and sessions that are never given twice
"""

from importlib.util import find_spec

from daws.model.errors import UsageError

if find_spec("hiredis") is None:
    raise UsageError("a store on a Valkey server needs a client for it: pip install 'daws[valkey]'")
