"""Journals of live nodes, as files: one for each node in a folder of the user's."""

import os
from typing import TYPE_CHECKING

from daws.core.node import NodeConfig
from daws.model.cluster import NodeInfo
from daws.model.task import NodeId
from daws.strategy.decisions import Strategy

if TYPE_CHECKING:
    from daws.core.journal import Journal


def new_journal(info: NodeInfo, strategy: Strategy, config: NodeConfig) -> "Journal":
    from daws.core.journal import Journal  # few sessions want it

    return Journal(info, strategy, config, 0)


def write_journal(folder: str, node: NodeId, journal: "Journal") -> None:
    """Write the journal of a node. The file gets its name only when it is complete."""
    path = os.path.join(folder, f"node-{node}.journal")
    part = f"{path}.part"
    with open(part, "wb") as file:
        file.write(journal.to_bytes())
    os.replace(part, path)
