"""The functions that a node knows: which of them its workers have, and which runs wait for one.

A task that moved here may arrive before its function, or before the modules of the client that its function imports.
Then its run is held back until they are here.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any

from daws.core.effects import StartRun
from daws.core.events import RunEnded
from daws.data.folders import remove_tree
from daws.data.tags import digest_in, folder_of, name_in, number_in, root_of, split
from daws.model.errors import DawsError
from daws.model.task import FIRST_SPAWNED_ID, NodeId, TaskSpec

UNPACK_TRIES_MAX = 120
log = logging.getLogger("daws.node")


class FunctionTable:
    """The functions of one node. All methods belong to the thread of the node's loop. `scratch` is the folder for
    modules of clients."""

    def __init__(self, node: NodeId, scratch: str) -> None:
        self.known: dict[int, bytes] = {}  # pickled, by kind of task
        self.taught: set[int] = set()  # those that the workers can be given
        self.held_back: dict[int, list[StartRun]] = {}  # by what is missing: a function, or modules
        self._unpack_tries: dict[int, int] = {}  # by number of modules that could not be written
        self._node = node
        self._scratch = scratch

    def missing_for(self, function: int) -> int | None:
        """The number of the function, or of the modules that it imports, if these are not here."""
        pickled = self.known.get(function)
        if pickled is None:
            return function
        tag, _ = split(pickled)
        if not tag:
            return None
        number = number_in(tag)
        if number not in self.known:
            return number
        return None if self._unpack(tag, number) else number

    def _unpack(self, tag: bytes, number: int) -> bool:
        """Write modules of a client to disk; False if it is to be tried again, because a full disk may soon have room.
        After the last try the runs that import the modules report what is missing."""
        from daws.data.shipping import unpack  # few nodes are sent any

        try:
            unpack(self.known[number], folder_of(tag, self._scratch), digest_in(tag))
        except (OSError, DawsError) as error:
            tries = self._unpack_tries[number] = self._unpack_tries.get(number, 0) + 1
            if tries == 1:
                log.error("node %s: modules of a client cannot be kept: %s", self._node, error)
            return not isinstance(error, OSError) or tries >= UNPACK_TRIES_MAX
        return True

    def hold_back(self, missing: int, effect: StartRun) -> bool:
        """Keep a run until `release(missing)`; is it the first that waits for that?"""
        waiting = self.held_back.setdefault(missing, [])
        waiting.append(effect)
        return len(waiting) == 1

    def release(self, missing: int) -> list[StartRun]:
        """The runs that waited for something that may be here now."""
        return self.held_back.pop(missing, [])

    def give_up(self, functions: Iterable[int], runs: dict[int, Any]) -> list[RunEnded]:
        """Take the runs that wait for one of these functions, which are gone with their session, out of `runs`. The
        answer is how they end."""
        ended: list[RunEnded] = []
        for function in functions:
            for effect in self.release(function):
                if runs.pop(effect.run, None) is not None:
                    task = effect.ready.spec.id
                    error = f"task {task} needs function {function}, which is gone with its session"
                    ended.append(RunEnded(task, effect.run, 0, (), error))
        return ended

    def forget(self, is_over: Callable[[int], bool], runs: Collection[int], kinds: set[int]) -> tuple[int, ...]:
        """Let go of functions whose root `is_over`, which are returned, and of runs that were held back and are no more
        among `runs`. Functions of the `kinds` that still run stay until the next time. One that is forgotten too early
        can be asked for again."""
        for missing, effects in [*self.held_back.items()]:
            if not any(effect.run in runs for effect in effects):
                del self.held_back[missing]
        known = self.known.items()
        gone = tuple([one for one, pickled in known if one not in kinds and is_over(root_of(one, pickled))])
        tags = {split(self.known.pop(number))[0] for number in gone}
        self.taught.difference_update(gone)
        for number in gone:
            self._unpack_tries.pop(number, None)
        self._drop_modules(tags)
        return gone

    def _drop_modules(self, tags: set[bytes]) -> None:
        """Remove folders of modules. They are named by their content, so other sessions may use the same folder."""
        gone = {folder_of(tag, self._scratch) for tag in tags if tag}
        if gone:
            needed = {folder_of(tag, self._scratch) for tag in [split(one)[0] for one in self.known.values()] if tag}
            for folder in gone - needed:
                remove_tree(folder)

    def session_number(self, task: int, kind: int) -> int:
        """A number that tells the session of a task, from its id and the number of its function.

        It is the task's own or, if a run has created the task, that of the function which a client has brought in.
        """
        return task if task < FIRST_SPAWNED_ID else root_of(kind, self.known.get(kind, b""))

    def title(self, spec: TaskSpec) -> str:
        """The name of a task, as shown to people."""
        name = name_in(self.known.get(spec.kind, b""))
        return f"task {spec.id} ({name})" if name else f"task {spec.id}"
