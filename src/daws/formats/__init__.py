"""Workflow files: DAX and WfFormat into graphs, graphs and finished runs into WfFormat.

`read_workflow` recognises the format by the content of a file and returns a `Workflow`: a graph, and beside it the
names, commands and files that a graph does not hold. `write_wfformat` is the way back. The package may not know nodes,
clocks or how tasks run.
"""

from daws.formats.execution import Execution, RecordedMachine
from daws.formats.export import check_target, write_wfformat
from daws.formats.reader import read_workflow
from daws.formats.workflow import Workflow, workflow_of

__all__ = ["Execution", "RecordedMachine", "Workflow", "check_target", "read_workflow", "workflow_of", "write_wfformat"]
