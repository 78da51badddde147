"""Whatever can happen has a handler, and whatever a node asks the store has somebody who hears the answer."""

import ast
from pathlib import Path
from typing import get_args

from daws.core import node
from daws.core.events import EventType
from daws.core.handlers import HANDLERS
from daws.core.store_calls import ANSWERED
from daws.wire import store as wire
from daws.wire.messages import CancelTaken, SubmissionTaken

CORE = Path(node.__file__).parent
FOR_CLIENTS = {SubmissionTaken, CancelTaken}
"""Messages that only a client gets."""


def test_each_event_has_one_handler():
    assert set(HANDLERS) == {*get_args(EventType)} - FOR_CLIENTS


def test_each_row_that_a_node_sends_is_heard_of():
    rows = {row.__name__: row for row in get_args(wire.RowType)}
    sent = set()
    for path in CORE.glob("*.py"):
        if path.name.startswith("session"):
            continue
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in rows:
                sent.add(rows[call.func.id])
    assert sent and sent <= set(ANSWERED), f"nobody hears the answer to {sent - set(ANSWERED)}"


def test_no_answer_is_awaited_that_cannot_come():
    assert set(ANSWERED) <= {*get_args(wire.RowType)}
