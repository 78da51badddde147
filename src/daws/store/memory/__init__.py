"""The store in one process's memory: the first backend, and the yardstick for the others.

The rules that lose nothing (readiness is told, moving is claiming, commit by run, …) are compare-and-sets in here; what
a node does with the answers is the core's business. Nothing in here reads a clock: the driver passes the time in.

`store` has the state and the one door; `record` is what is kept of a task. The other modules serve the rows, each of
them a part of a task's life. Where the core has a module for the same part, it has the same name:

    life        create, finish, satisfy, open: readiness is told, the first run wins
    moving      claim: moving is claiming; copies and new attempts
    remaking    unready, remake: lost objects
    growing     register, spawn, suspend: new tasks, and tasks that wait for others
    stopping    cancel, and failures: the first final state wins
    outbox      clear, and how intents are written that outlive their node
    references  retain, release, locate, places: when a record may be forgotten
    members     lease, watch, buried: who lives
    estates     take over: what the dead leave behind
    leaving     owned: what a node still has that is about to leave
    reading     the log, and the story of a task
    sessions    attach, detach, close: who uses a session, and what it has
    bursts      many rows of one kind, in one go
"""

# They enter their handlers into the table of `store`: whoever is imported first, all of them are.
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
