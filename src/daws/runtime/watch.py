"""Watch the strategy of a live node, from its start or from now on, so that the listener is told of its decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daws.core.events import NewStrategy
from daws.core.node import NodeCore
from daws.runtime.ports import Listener
from daws.strategy import format_strategy, parse_strategy

if TYPE_CHECKING:
    from daws.runs.watching import StrategyWatch


def watch_of(listener: Listener) -> StrategyWatch:
    from daws.runs.watching import StrategyWatch  # few sessions want it

    return StrategyWatch(listener.on_fact)


def rename_strategy(core: NodeCore, before: StrategyWatch | None, after: StrategyWatch | None) -> NewStrategy:
    """Have the node read strategies with another watch, or with none. Returns the event that names the strategy that it
    uses once more: a strategy is watched from its start."""
    text = format_strategy(core.strategy if before is None else before.under(core.strategy))
    core.read_strategy = parse_strategy if after is None else after.read
    return NewStrategy(text)
