from daws import futures as futures
from daws import graphs as _graphs
from daws.client import admin as admin
from daws.client.cancelled import TaskCancelledError as TaskCancelledError
from daws.client.cluster import Cluster as Cluster
from daws.client.commands import Command as Command
from daws.client.commands import command as command
from daws.client.connect import connect as connect
from daws.client.current import use as use
from daws.client.future import Future as Future
from daws.client.gathering import gather as gather
from daws.client.inside import current as current
from daws.client.tasks import task as task
from daws.client.waiting import as_completed as as_completed
from daws.client.waiting import progress as progress
from daws.client.waiting import wait as wait
from daws.core.journal import JournalError as JournalError
from daws.data.outside import File as File
from daws.data.outside import Out as Out
from daws.model.errors import ClosedError as ClosedError
from daws.model.errors import ClusterError as ClusterError
from daws.model.errors import CommandError as CommandError
from daws.model.errors import CommandTimeoutError as CommandTimeoutError
from daws.model.errors import ContextError as ContextError
from daws.model.errors import DamagedObjectError as DamagedObjectError
from daws.model.errors import DawsError as DawsError
from daws.model.errors import GraphError as GraphError
from daws.model.errors import InternalError as InternalError
from daws.model.errors import LogError as LogError
from daws.model.errors import NoSpaceError as NoSpaceError
from daws.model.errors import PeerError as PeerError
from daws.model.errors import StoreFullError as StoreFullError
from daws.model.errors import StrategyError as StrategyError
from daws.model.errors import TaskFailedError as TaskFailedError
from daws.model.errors import TaskKilledError as TaskKilledError
from daws.model.errors import TaskTimeoutError as TaskTimeoutError
from daws.model.errors import UnavailableError as UnavailableError
from daws.model.errors import UnpicklableError as UnpicklableError
from daws.model.errors import UsageError as UsageError
from daws.model.errors import WorkflowError as WorkflowError
from daws.model.errors import WorkloadError as WorkloadError
from daws.predict.limits import bound as bound
from daws.predict.simulation import simulate as simulate
from daws.workers.commands import Completed as Completed
from daws.workers.errors import RemoteError as RemoteError
from daws.workers.errors import ResultCountError as ResultCountError
from daws.workers.errors import SerializeError as SerializeError
from daws.workers.errors import UnreadableError as UnreadableError
from daws.workers.errors import WorkerStartError as WorkerStartError

Graph = _graphs.TaskGraph

__all__: list[str]
__version__: str
