"""Resolve control-plane names, given in full or as an unambiguous suffix."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane._suggestions import nearest
from gradplane.switch.runtime.control_errors import SwitchError


def resolve(kind: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return the known name that `name` stands for: itself, or the only one that ends in `.name`.

    Raises SwitchError with the candidates, the nearest names, or all names.
    """
    names = list(known)
    if name in names:
        return name
    fitting = [n for n in names if n.endswith(f".{name}")]
    if len(fitting) == 1:
        return fitting[0]
    place = f"{where}: " if where else ""
    if fitting:
        raise SwitchError(f"{place}{kind} {name!r} is ambiguous: {', '.join(sorted(fitting))}")
    raise SwitchError(f"{place}there is no {kind} {name!r}; {_known(kind, name, names)}")


def _known(kind: str, name: str, names: list[str]) -> str:
    if not names:
        return f"there are no {kind}s" if kind[-1] != "y" else f"there are no {kind[:-1]}ies"
    if len(names) <= 12:
        return f"known: {', '.join(sorted(names))}"
    near = nearest(name, names, count=3)
    return f"nearest: {', '.join(near or sorted(names)[:3])} ({len(names)} in all)"
