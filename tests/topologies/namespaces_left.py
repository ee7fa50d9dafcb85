"""Which processes are still in given namespaces ("net:[4026532252]")."""

import os
import select
from pathlib import Path


def await_gone(namespaces: set[str]) -> None:
    """Wait until the kernel has reaped the processes that it killed, however long that takes."""
    for pid in processes_in(namespaces):
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        with os.fdopen(process):
            select.select([process], [], [], 60)
    assert not processes_in(namespaces)


def processes_in(namespaces: set[str]) -> list[int]:
    return [int(p.name) for p in Path("/proc").glob("[0-9]*") if _is_in(p, namespaces)]


def _is_in(process: Path, namespaces: set[str]) -> bool:
    """Return whether a process is in a namespace; zombies do not count."""
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        inside = {os.readlink(process / "ns" / kind) for kind in ("net", "pid")} & namespaces
    except OSError:
        return False
    return bool(inside) and state != "Z"
