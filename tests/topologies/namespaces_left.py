"""Which processes are still in given namespaces ("net:[4026532252]")."""

import os
import select
from pathlib import Path


def await_gone(namespaces: set[str]) -> None:
    """The kernel reaps what it killed in its own time: wait for that, not for a clock."""
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
    """Zombies do not count: nothing is left of them but a number to be read."""
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        inside = {os.readlink(process / "ns" / kind) for kind in ("net", "pid")} & namespaces
    except OSError:
        return False
    return bool(inside) and state != "Z"
