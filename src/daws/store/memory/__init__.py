"""The store in one process's memory: the first backend, and the reference for the others.

The rules by which nothing gets lost (readiness is told, moving is claiming, commit by run, …) are compare-and-sets in
here; the core decides what a node does with the answers. Nothing in here reads a clock: the driver passes the time in.

`store` has the state and the one door; `record` is the state of a task. The other modules serve the rows, each of them
a part of a task's life. Where the core has a module for the same part, it has the same name:

    life        create, finish, satisfy, open: readiness is told, the first run wins
    moving      claim: moving is claiming; copies and new attempts
    remaking    unready, remake: lost objects
    growing     register, spawn, suspend: new tasks, and tasks that wait for others
    stopping    cancel, and failures: the first final state wins
    outbox      clear, and how intents are written that outlive their node
    references  retain, release, locate, places: when a record may be dropped
    members     lease, watch, buried: which nodes are alive; their numbers, and their strategy
    estates     take over: the tasks and intents of dead nodes
    leaving     owned: the tasks that a leaving node still has
    reading     the log, and the story of a task
    sessions    attach, detach, close: who uses a session, and what it has
    bursts      many rows of one kind, in one go

Three modules serve no rows. `closed` says of which sessions a shard takes nothing any more. `commits` takes commits out
of the log, for a reader in the same process. `snapshot` walks over the whole store, for checkers, tests and error
messages.
"""

# Each module enters its handlers into the table of `store`. Importing them here makes the table complete.
from daws.store.memory import (  # noqa: F401
    bursts,
    estates,
    growing,
    leaving,
    life,
    members,
    moving,
    outbox,
    reading,
    references,
    remaking,
    sessions,
    stopping,
)
from daws.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
