"""The store on a Valkey (or Redis) server or Cluster: for many machines, and for those who run one already.

The rules are those of `daws.store.memory`, and they are not written a second time. Each process runs those handlers
itself, on the few records that it needs, and commits what they changed by a small script that knows nothing of tasks:
it writes everything if nothing that was read has changed meanwhile, and else nothing. Many processes work on one shard
at the same time; they are in each other's way only where they change the same tasks.

    cells     what lies in a shard on the server, as bytes
    view      a shard as the handlers see it, filled from a cache
    bursts    many rows of one kind in one go
    attempt   one attempt at the rows of a call
    caller    one process's dealings with one shard, without a socket: attempts, commits, what a failover lost
    told      what callers tell each other, so that nobody has to fetch it
    scripts   what is said to the server
    link      one connection
    server    a server or Cluster that is asked until it answers
    trouble   what went wrong, in words of our own
    store     the store on an event loop
    blocking  the store without one
    notes     what a live cluster keeps there beside its tasks
    looking   records as they are now, for those who only look
"""

from importlib.util import find_spec

from daws.model.errors import UsageError

if find_spec("hiredis") is None:
    raise UsageError("a store on a Valkey server needs a client for it: pip install 'daws[valkey]'")
