"""The best possible speed of a graph, whatever schedules it.

`provable.py` has lower bounds on the makespan that hold for every schedule; runs are judged by them. `recursion.py` has
the earliest finishing times as MATRIX (2015) published them, which are no bound; they are shown for comparison. The
package knows graphs and descriptions of nodes, and neither strategies nor simulators.
"""

from daws.bounds.ground import NO_COSTS, AlikeNodes, CostModel, Nodes
from daws.bounds.provable import Bound, BoundPart, bound
from daws.bounds.recursion import Recursion, recursion

__all__ = ["NO_COSTS", "AlikeNodes", "Bound", "CostModel", "Nodes", "BoundPart", "Recursion", "bound", "recursion"]
