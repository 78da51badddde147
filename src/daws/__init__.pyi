from daws.client.cluster import Cluster as Cluster
from daws.client.future import Future as Future
from daws.client.inside import current as current
from daws.client.waiting import as_completed as as_completed
from daws.client.waiting import gather as gather
from daws.client.waiting import wait as wait

__version__: str
