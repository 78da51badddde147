"""Ray on this machine, without dashboard and log collection."""

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from bench.peers.systems.base import System
from bench.peers.tasks import OBJECT_BYTES

STORE_BYTES = 3 << 30


class Ray(System):
    name = "ray"
    library = "ray"
    package = "ray"
    settings = "ray.init(num_cpus=workers), 3 GB of object store, no dashboard, no authentication, no retries"
    unseen_bytes_per_object = OBJECT_BYTES  # results are written into a mapping, once

    def __init__(self, workers: int) -> None:
        os.environ["RAY_AUTH_MODE"] = "disabled"  # leaves a token in the home folder otherwise
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # the new default; keeps a warning away
        import ray

        self.ray = ray
        ray.init(
            num_cpus=workers,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            object_store_memory=STORE_BYTES,
            _node_ip_address="127.0.0.1",
            _temp_dir=os.path.join(tempfile.gettempdir(), "ray"),
        )
        self.functions: dict[Callable[..., Any], Any] = {}

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        known = self.functions.get(function)
        if known is None:
            known = self.functions[function] = self.ray.remote(num_cpus=1, max_retries=0)(function)
        return known.remote(*args)

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        found: list[Any] = self.ray.get(list(futures))
        return found

    def close(self) -> None:
        self.ray.shutdown()
