"""The P4 programs that come with the package, and their includes."""

from __future__ import annotations

from pathlib import Path

SHIPPED = Path(__file__).parent / "p4"
# Where includes are looked for besides a program's own folder: a copy of a shipped program finds
# its "include/headers.p4".
INCLUDE_DIRS = (SHIPPED, SHIPPED / "include")


def shipped() -> list[str]:
    """Return the names of the shipped programs."""
    return sorted(path.name for path in SHIPPED.glob("*.p4"))


def find(program: str | Path) -> Path:
    """Return the file of a program on a command line: the path as it is given, or the shipped
    program of that name where there is no such file."""
    path = Path(program)
    return SHIPPED / path if str(path) in shipped() and not path.exists() else path
