"""The machine of a run: versions, processor, BLAS. Only equal machines give equal bits."""

import importlib.metadata
import platform
import sys
import threading
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

PACKAGES = ("gradplane", "numpy", "numba", "llvmlite", "scikit-learn", "mininet", "finsy", "grpcio")


def describe() -> dict[str, Any]:
    """Return versions of Python and packages, processor, BLAS and platform, ready for JSON."""
    return {
        "versions": {"python": platform.python_version()} | _versions(),
        "cpu": _cpu(),
        "blas": _blas(),
        "platform": platform.platform(),
    }


class OneBlasThread:
    """A context manager inside which BLAS adds floats in one order, however many cores there are.

    The number of threads is the process's, so the first of several that run at once sets it and the
    last one restores it."""

    _lock = threading.Lock()
    _users = 0
    _limits: threadpool_limits | None = None

    def __enter__(self) -> None:
        kind = type(self)
        with kind._lock:
            kind._users += 1
            if kind._users == 1:
                kind._limits = threadpool_limits(limits=1)

    def __exit__(self, *error: object) -> None:
        kind = type(self)
        with kind._lock:
            kind._users -= 1
            if kind._users == 0 and kind._limits is not None:
                kind._limits.restore_original_limits()


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _cpu() -> str:
    """Return the processor's name from Linux, else from Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _blas() -> str:
    """Return NumPy's BLAS with its version and the kernels it chose for this processor."""
    import numpy  # noqa: F401  (loads the library that is asked about)

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    pools.sort(key=lambda pool: "numpy" not in pool["filepath"])  # SciPy may have another one
    names = [
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}" for pool in pools
    ]
    return names[0].strip() if names else f"unknown ({sys.platform})"
