"""How a session's tasks get into the store.

A task whose parents are in its own shard is one row. Another one is added as graphs grow (rule 7). It is written with
an edge to itself, and each parent is told of it. Parents that are done answer with their objects. Then it loses that
edge. Every step may be repeated. Rows that come too early, because what they need is yet to be written, are sent again.

A task is let go of when all tasks that were submitted to read it are written.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

from msgspec.structs import replace

from daws.core.session_ends import forgotten
from daws.core.session_tell import Announced
from daws.model.states import CANCELLED as STATE_CANCELLED
from daws.model.states import FAILED as STATE_FAILED
from daws.model.states import FINAL, READY, WAITING
from daws.model.task import AGAIN, NOBODY, Input, NodeId, Ready
from daws.wire.store import (
    CANCELLED,
    CLIENT_HOLDER,
    FAILED,
    OK,
    STRUCK,
    UNKNOWN,
    AnswerType,
    Available,
    Create,
    Inspect,
    Open,
    Register,
    Release,
    Row,
    Satisfy,
    Story,
    Submit,
    Unheld,
    shard_of,
)

if TYPE_CHECKING:
    from daws.core.session import SessionCore


class _Growing:
    """A task with parents in other shards, while these are told. `left`: parents of which the answer is yet to come.
    `made`: objects of the parents that are done. `is_repeated`: another client, or this one before a failover, may have
    told some of them."""

    __slots__ = ("is_repeated", "left", "made", "row")

    def __init__(self, row: Submit, is_repeated: bool = False) -> None:
        self.row = row
        self.left = set(row.parents)
        self.made: dict[int, tuple[Input, ...]] = {}
        self.is_repeated = is_repeated


class Writing:
    """Tasks on their way into the store."""

    __slots__ = (
        "_causes",
        "_doomed",
        "_doubted",
        "_early",
        "_growing",
        "_let_go",
        "_needed",
        "_orphans",
        "_sure",
        "_unheard",
        "unwritten",
    )

    def __init__(self) -> None:
        self.unwritten: dict[int, Submit] = {}
        self._growing: dict[int, _Growing] = {}
        self._unheard: dict[int, set[NodeId]] = {}  # objects, and the nodes that have yet to hear that they have them
        self._early: list[Row] = []  # that are to be sent again
        self._needed: dict[int, int] = {}  # tasks, and how many that read them are not written
        self._let_go: dict[int, None] = {}
        self._doubted: dict[int, Submit] = {}  # tasks of which it is not known whether their owners have them
        self._doomed: dict[int, Submit] = {}  # tasks that are to end because of a parent
        self._sure: set[tuple[int, int]] = set()  # parent and child: the parent was written when the child was told of
        self._orphans: dict[int, tuple[Register, AnswerType]] = {}  # tasks that a parent may leave without an input
        self._causes: dict[int, list[int]] = {}  # tasks that have failed, and those that fail by it

    def __bool__(self) -> bool:
        return bool(self.unwritten or self._early or self._let_go or self._doubted or self._causes or self._orphans)

    def count(self) -> int:
        """The number of tasks that are not in the store yet."""
        return sum(1 for row in self.unwritten.values() if not row.outputs)

    # -- from the client -----------------------------------------------------------------------------------------------

    def submit(self, core: "SessionCore", row: Submit) -> None:
        self._expect(row)
        self._write(core, row)

    def submit_plain(self, core: "SessionCore", rows: Sequence[Submit]) -> None:
        """Submit tasks without parents whose nodes are there: the usual tasks, in few steps."""
        self.unwritten.update([(row.spec.id, row) for row in rows])
        core.calls.ask_plain(rows, core.shard_count)

    def on_plain(self, core: "SessionCore", rows: Sequence[Submit]) -> None:
        """Hand out such tasks, which are in the store for the first time, as `on_submit` would."""
        written = self.unwritten.pop
        for row in rows:
            written(row.spec.id, None)
        core.hand_outs.add_new(rows)

    def _expect(self, row: Submit) -> None:
        """A task is to be written, for the first time or once more: until then its parents are not let go of."""
        if row.spec.id not in self.unwritten:
            for parent in dict.fromkeys(row.parents):
                self._needed[parent] = self._needed.get(parent, 0) + 1
        self.unwritten[row.spec.id] = row

    def let_go(self, core: "SessionCore", task: int) -> None:
        self._let_go[task] = None

    def flush(self, core: "SessionCore") -> None:
        """Let go of tasks that nothing needs any more which is yet to be written."""
        for task in [one for one in self._let_go if one not in self.unwritten and not self._needed.get(one)]:
            del self._let_go[task]
            core.ask(task, Release(task, CLIENT_HOLDER))

    def send_early(self, core: "SessionCore") -> None:
        """Send what came too early, or had no node to own it: on each tick, and when there are other members."""
        if not core.members:
            return
        early, self._early = self._early, []
        for row in early:
            if isinstance(row, Submit):
                self._write(core, row)
            elif isinstance(row, Open | Satisfy):
                self._ask_owned(core, row)
            else:
                assert isinstance(row, Register)
                self._tell_parent(core, row.task, row.child)

    def drop_unsent(self) -> None:
        """The session ends: what was not sent never will be."""
        self._early = [row for row in self._early if not isinstance(row, Submit)]
        sent = self._growing.keys()
        self.unwritten = {task: row for task, row in self.unwritten.items() if task in sent}

    def complete(self, core: "SessionCore", row: Submit) -> None:
        """Tell all parents of a task that a client before this one may not have told."""
        task = row.spec.id
        if task not in self.unwritten:
            self._expect(row)
            self._growing[task] = _Growing(row, True)
            self._register(core, self._growing[task])

    # -- one task ------------------------------------------------------------------------------------------------------

    def _write(self, core: "SessionCore", row: Submit) -> None:
        task = row.spec.id
        is_function = bool(row.outputs) and not row.outputs[0].places
        if not is_function and row.node not in core.members:
            node = core.node_for(row)
            if node == NOBODY:
                self._early.append(row)
                return
            row = replace(row, node=node)
        self.unwritten[task] = row  # with the node that it was given
        if row.outputs and task not in self._unheard and any(one.places and not one.value for one in row.outputs):
            self._unheard[task] = set(row.outputs[0].places)
            core.hand_outs.put(row)
            return
        count = core.shard_count
        home = shard_of(task, count)
        if all(shard_of(parent, count) == home for parent in row.parents):
            if self.unwritten.keys().isdisjoint(row.parents):
                self._sure.add((task, task))
            core.ask(task, row)
        else:
            self._growing[task] = _Growing(row)
            core.ask(task, Create(row.spec, row.parents, guarded=True, held=True))

    def on_announced(self, core: "SessionCore", announced: Announced) -> None:
        """Write objects that lie on nodes when all of these know that they have them. A task that reads an object may
        come to any of its places at once, and a node that has not heard of the object would take it for lost."""
        for node, row in announced:
            unheard = self._unheard.get(row.spec.id)
            if unheard and node in unheard:
                unheard.remove(node)
                if not unheard:
                    core.ask(row.spec.id, self.unwritten.get(row.spec.id, row))

    def on_silent(self, core: "SessionCore", announced: Announced) -> None:
        """Nodes have not said for a long time that they know of these objects. If other nodes have the objects, tasks
        that read them wait no longer. A silent node that is dead is no place any more. One that is a member stays a
        place, and is told until it has heard: it may soon have the only copy."""
        for node, row in announced:
            task = row.spec.id
            row = self.unwritten.get(task, row)
            places = tuple([place for place in row.outputs[0].places if place != node])
            is_dead = node not in core.members
            if node in self._unheard.get(task, ()) and (places or is_dead):
                if places and is_dead:
                    self.unwritten[task] = _at(row, places)
                self.on_announced(core, [(node, row)])

    def _written(self, task: int) -> None:
        row = self.unwritten.pop(task, None)
        self._growing.pop(task, None)
        if row is not None:
            self._let_go_of_parents(row)

    def _let_go_of_parents(self, row: Submit) -> None:
        for parent in dict.fromkeys(row.parents):
            left = self._needed.get(parent, 0) - 1
            if left > 0:
                self._needed[parent] = left
            else:
                self._needed.pop(parent, None)

    def on_submit(self, core: "SessionCore", row: Submit, answer: AnswerType, again: bool) -> None:
        task = row.spec.id
        is_sure = self._was_sure(task, task) and self.unwritten.keys().isdisjoint(row.parents)
        if answer.__class__ is int:
            if answer == STRUCK or (answer == UNKNOWN and not is_sure):
                if core.takes_tasks:
                    self._expect(row)
                    self._early.append(row)
                else:
                    self._written(task)
                return
            self._refused(core, row, answer)
            return
        self._written(task)
        if row.outputs:
            if self._unheard.pop(task, None) is None:
                core.hand_outs.put(row)
            else:
                self.send_early(core)  # what reads it has waited
        elif isinstance(answer, Ready):
            core.hand_outs.add(row.node, answer)
        elif not row.parents:
            if again:  # its owner may have it, or may have had it before
                self._doubted[task] = row
                core.ask(task, Inspect(task))
            else:
                core.hand_outs.add(row.node, Ready(row.spec, 0, 0))

    def _refused(self, core: "SessionCore", row: Submit | Create, answer: AnswerType) -> None:
        """The store does not take a task. If it is cancelled and nobody wanted that, another client has begun to end
        the session: this one is about to hear so."""
        task = row.spec.id
        if answer == CANCELLED and core.takes_tasks and not core.cancels.wants(task):
            self._growing.pop(task, None)
            if task in self.unwritten:
                self._early.append(self.unwritten[task])
            return
        self._written(task)
        self._unheard.pop(task, None)
        core.ends.over(core, task, *_refusal(row, answer))

    def on_create(self, core: "SessionCore", row: Create, answer: AnswerType) -> None:
        task = row.spec.id
        if answer != OK:
            self._refused(core, row, answer)
            return
        if task not in self._growing:  # said again after a failover
            submit = Submit(row.spec, row.parents, NOBODY)
            self._expect(submit)
            self._growing[task] = _Growing(submit, True)
        self._register(core, self._growing[task])

    def _register(self, core: "SessionCore", growing: _Growing) -> None:
        task = growing.row.spec.id
        for parent in growing.left:
            self._tell_parent(core, parent, task)
        if not growing.left:
            self._ask_owned(core, Open(task, NOBODY))

    def _ask_owned(self, core: "SessionCore", row: Open | Satisfy) -> None:
        """Send a row that may make its task ready, with a node that owns it then. Without nodes it waits for one.
        Objects of parents go before the row that opens the task, in the same call. If a client died between the two,
        no other client would know that the task still waits for these parents."""
        growing = self._growing.get(row.task)
        node = core.node_for(None if growing is None else growing.row)
        if node == NOBODY:
            self._early.append(row)
            return
        for parent, made in growing.made.items() if growing is not None else ():
            core.ask(row.task, Satisfy(row.task, parent, node, made))
        core.ask(row.task, replace(row, node=node))

    def _tell_parent(self, core: "SessionCore", parent: int, child: int) -> None:
        if parent in self.unwritten:
            self._sure.discard((parent, child))
        else:
            self._sure.add((parent, child))  # if it is not in the store now, it never will be
        core.ask(parent, Register(parent, child))

    def _was_sure(self, parent: int, child: int) -> bool:
        """Was the parent written when the child was told of? It may have to be written once more since."""
        is_sure = (parent, child) in self._sure
        self._sure.discard((parent, child))
        return is_sure

    def on_register(self, core: "SessionCore", row: Register, answer: AnswerType) -> None:
        growing = self._growing.get(row.child)
        is_sure = self._was_sure(row.task, row.child) and row.task not in self.unwritten
        if isinstance(answer, Available):
            if growing is not None and row.task in growing.left:
                growing.made[row.task] = answer.inputs
            else:
                self._ask_owned(core, Satisfy(row.child, row.task, NOBODY, answer.inputs))
        elif answer == UNKNOWN and not is_sure:
            self._early.append(row)
            return
        elif answer != OK and growing is None:
            if row.child in self._orphans:
                self._early.append(row)
            else:
                self._orphans[row.child] = row, answer  # said again after a failover; it may have had what it needs
                core.ask(row.child, Inspect(row.child))
            return
        elif answer != OK:
            self._doom(core, row, answer)
            return
        if growing is not None and row.task in growing.left:
            growing.left.discard(row.task)
            if not growing.left:
                self._ask_owned(core, Open(row.child, NOBODY))

    def _doom(self, core: "SessionCore", row: Register, answer: AnswerType) -> None:
        """A parent has failed, was cancelled, or is not there any more: the task ends like that."""
        if answer == FAILED:
            self._causes.setdefault(row.task, []).append(row.child)
            core.ask(row.task, Inspect(row.task))
            return
        if answer == CANCELLED:
            error = ""
        else:
            error = core.ends.fate_of(row.task)
        self._end_as(core, row.child, error)

    def _end_as(self, core: "SessionCore", task: int, error: str) -> None:
        """Have a task end. Until a node has seen to that, its parents stay: another client may have to do it."""
        row = self.unwritten.pop(task, None)
        self._growing.pop(task, None)
        if row is not None:
            self.on_cancelled(task)  # it was doomed before, and was written once more after a failover
            self._doomed[task] = row
        core.cancels.want(task, error)

    def on_cancelled(self, task: int) -> None:
        """A node has seen to it that a task ends."""
        row = self._doomed.pop(task, None)
        if row is not None:
            self._let_go_of_parents(row)

    def on_story(self, core: "SessionCore", row: Inspect, answer: AnswerType) -> None:
        """Take the story of a task: why its children fail, and whether its owner may not have heard of it. (A brief
        answer is to another question, and may be older.)"""
        if row.brief:
            return
        orphan = self._orphans.pop(row.task, None)
        if orphan is not None and isinstance(answer, Story) and answer.state == WAITING:
            register, refusal = orphan
            if register.task in answer.edges:
                self._doom(core, register, refusal)
        error = answer.error if isinstance(answer, Story) else core.ends.fate_of(row.task)
        for child in self._causes.pop(row.task, ()):
            if isinstance(answer, Story) and answer.state not in FINAL:
                self._early.append(Register(row.task, child))  # after a failover it has not failed yet
            else:
                self._end_as(core, child, error)
        submit = self._doubted.pop(row.task, None)
        if submit is None or not isinstance(answer, Story):
            return
        if answer.state == READY and answer.owner == submit.node and not answer.move and not answer.attempt:
            core.hand_outs.add(submit.node, Ready(submit.spec, 0, 0, (), AGAIN))

    def on_satisfy(self, core: "SessionCore", row: Satisfy | Open, answer: AnswerType, again: bool) -> None:
        growing = self._growing.get(row.task)
        if isinstance(answer, Ready):
            if again or growing is None or growing.is_repeated:  # its owner may have told its last edge as well
                answer = replace(answer, mode=answer.mode | AGAIN)
            core.hand_outs.add(row.node, answer)
        elif answer in (STRUCK, UNKNOWN):
            if growing is None or isinstance(row, Open):  # else the row that opens the task comes with it once more
                self._early.append(row)
            return
        if isinstance(row, Open):
            self._written(row.task)

    def on_release(self, core: "SessionCore", row: Release, answer: AnswerType) -> None:
        if isinstance(answer, Unheld):
            core.letting_go.add(row.task, answer.places, core.members, not answer.readers)
        else:
            core.letting_go.gone(row.task)


def _at(row: Submit, places: tuple[NodeId, ...]) -> Submit:
    """An object in these places alone."""
    return replace(row, outputs=tuple([replace(one, places=places) for one in row.outputs]))


def is_plain(row: Row) -> TypeGuard[Submit]:
    """Is it a task without parents, and not an object that was put in?"""
    return type(row) is Submit and not row.parents and not row.outputs


def are_plain(rows: Sequence[Row]) -> TypeGuard[Sequence[Submit]]:
    return all(map(is_plain, rows))


def _refusal(row: Submit | Create, answer: AnswerType) -> tuple[int, str]:
    if answer == CANCELLED:
        return STATE_CANCELLED, ""
    if answer == UNKNOWN and row.parents:
        return STATE_FAILED, forgotten(row.parents[0])
    return STATE_FAILED, f"the store has refused task {row.spec.id}: what it needs is gone"
