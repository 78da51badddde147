"""Lets workers use the queues, dicts and locks of a `multiprocessing.Manager` of the client's.

A proxy of a manager connects to the manager's process when it is unpickled, with the key of that process. Processes of
`multiprocessing` have the key of the one that started them. Workers are started by another process, so they get the
key.
"""

import sys
from collections.abc import Callable
from functools import partial


def with_key(setup: Callable[[], object] | None) -> Callable[[], object] | None:
    """The set-up of workers of a client that uses `multiprocessing`; that of others is as it was."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is None:
        return setup
    return partial(_set_up, bytes(processes.current_process().authkey), setup)


def _set_up(key: bytes, setup: Callable[[], object] | None) -> None:
    from multiprocessing.process import current_process

    current_process().authkey = key
    if setup is not None:
        setup()
