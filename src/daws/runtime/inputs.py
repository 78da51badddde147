"""The inputs of runs as workers are told of them: values that came with the task, or files of objects."""

from daws.data.files import ObjectFiles
from daws.model.task import Input, Ready
from daws.wire.worker import ObjectFile


def inline_inputs(ready: Ready) -> tuple[bytes, ...] | None:
    """The values that a task reads, if all of them came with it."""
    inputs = ready.inputs
    if len(inputs) == 1:
        return (inputs[0].value,) if inputs[0].value else None
    known = {one.object: one.value for one in inputs}
    values = tuple([known[object_] for object_ in ready.spec.inputs])
    return values if all(values) else None


class RunInputs:
    """The inputs of runs. Files are pinned until the run that reads them is over: to spill a file that a run may open
    would free nothing. With `shares_memory` workers are threads and take the bytes themselves."""

    def __init__(self, files: ObjectFiles, shares_memory: bool) -> None:
        self.pinned: dict[int, list[int]] = {}  # objects, by run
        self._files = files
        self._shares_memory = shares_memory

    def of(self, run: int, ready: Ready) -> tuple[bytes | ObjectFile, ...]:
        if not ready.inputs:
            return ()
        if len(ready.inputs) == 1:
            return (self._input(run, ready.inputs[0]),)
        known = {one.object: one for one in ready.inputs}
        return tuple([self._input(run, known[object_]) for object_ in ready.spec.inputs])

    def _input(self, run: int, one: Input) -> bytes | ObjectFile:
        files = self._files
        if one.value:
            return one.value
        if one.object not in files:  # given up while the run waited for its function: its worker reports it missing
            return ObjectFile(files.where(one.object), one.object, 0)
        if self._shares_memory:
            held = files.held(one.object)
            if held is not None:
                return ObjectFile("", one.object, len(held), held)
        files.pin(one.object)
        self.pinned.setdefault(run, []).append(one.object)
        return ObjectFile(files.path(one.object), one.object, files.size_bytes(one.object))

    def unpin(self, run: int) -> None:
        """Release the files of a run that is over."""
        for object_ in self.pinned.pop(run, ()):
            self._files.unpin(object_)
