from daws.client.cluster import Cluster as Cluster
from daws.client.commands import Command as Command
from daws.client.commands import command as command
from daws.client.future import Future as Future
from daws.client.waiting import as_completed as as_completed
from daws.client.waiting import gather as gather
from daws.client.waiting import wait as wait
from daws.data.outside import File as File
from daws.data.outside import Out as Out
from daws.model.errors import CommandError as CommandError
from daws.workers.commands import Completed as Completed

__version__: str
