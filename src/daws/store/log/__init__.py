"""The embedded store that outlives its process: the store in memory, and an append log of the calls that changed it.

`apply` of the store in memory is deterministic, so its calls, replayed in order, give the same state. A restart also
gives all members a fresh lease, because none of them could renew while the store was down. A node that had lost its
lease before stays an orphan.

    logged      the store that logs its changes, and how a logged call is replayed; knows no file
    frames      bytes with a length and a checksum, and how to treat damaged ones
    folder      the files of a store, and the lock that keeps a second process out
    segment     one file of calls that grows: saved, or kept until there is room
    calls       the calls of one store on their way into segments: which are safe, and when the log is shortened
    state       the whole state of the store in memory, as the parts of a file
    opening     from a folder to a store
    compaction  a process beside the store's that shortens its log; `compact` is the work itself
    group       answers on an event loop that wait until they are safe to give; one fsync for many
"""

from daws.store.log.calls import CallFiles
from daws.store.log.group import GroupSync
from daws.store.log.logged import LoggedStore, StoreSettings
from daws.store.log.opening import open_store

__all__ = ["CallFiles", "GroupSync", "LoggedStore", "StoreSettings", "open_store"]
