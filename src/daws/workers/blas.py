"""The threads of numerical libraries that are loaded already.

Such a library reads its variables when it is loaded and never again. From then on it has to be told, which
`threadpoolctl` knows how to do. Where that is not installed, a library keeps the threads that it was loaded with.
"""

import sys
from collections.abc import Collection
from typing import Any

OMP = "OMP_NUM_THREADS"
FOLLOWERS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Where one of these is not set, its library goes by OMP_NUM_THREADS."""
THREAD_VARIABLES = (OMP, *FOLLOWERS, "VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")
_VARIABLE = {"openmp": OMP, "openblas": FOLLOWERS[0], "mkl": FOLLOWERS[1], "blis": FOLLOWERS[2]}
_USERS = ("numpy", "torch")
"""Modules without which no such library is loaded, as far as most programs go."""


def follows_cores(environment: Collection[str]) -> tuple[str, ...]:
    """The variables that the user leaves to us. One that is set stays, and with OMP_NUM_THREADS all that go by it."""
    theirs = (*environment, *FOLLOWERS) if OMP in environment else environment
    return tuple([name for name in THREAD_VARIABLES if name not in theirs])


class LoadedLibraries:
    """The numerical libraries that this process has loaded. They are searched again after modules were imported."""

    __slots__ = ("_found", "_modules")

    def __init__(self) -> None:
        self._modules = 0
        self._found: list[Any] = []

    def use(self, cores: int, variables: Collection[str]) -> None:
        """Set the number of threads of the libraries whose variables are ours to set."""
        if not any(name in sys.modules for name in _USERS):
            return
        if self._modules != len(sys.modules):
            self._found = _libraries()
            self._modules = len(sys.modules)
        for library in self._found:
            if _VARIABLE.get(library.internal_api, OMP) in variables:
                library.set_num_threads(cores)


def _libraries() -> list[Any]:
    try:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return []
    return list(ThreadpoolController().lib_controllers)
