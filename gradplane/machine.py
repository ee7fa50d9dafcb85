"""What a run ran on: versions, processor, BLAS. Results compare bit for bit only between equals."""

import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGES = ("gradplane", "numpy", "numba", "llvmlite", "scikit-learn", "mininet", "finsy", "grpcio")


def describe() -> dict[str, Any]:
    """Versions of Python and packages, processor, BLAS, platform; ready for JSON."""
    return {
        "versions": {"python": platform.python_version()} | _versions(),
        "cpu": _cpu(),
        "blas": _blas(),
        "platform": platform.platform(),
    }


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Floats are added in one order inside, whatever number of cores there is."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _cpu() -> str:
    """The processor's name as Linux gives it, else as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _blas() -> str:
    """NumPy's BLAS with its version and the kernels it chose for this processor."""
    import numpy  # noqa: F401  (loads the library that is asked about)
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    names = [
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}" for pool in pools
    ]
    return names[0].strip() if names else f"unknown ({sys.platform})"
