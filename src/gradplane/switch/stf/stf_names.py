"""Tables, actions, fields and other objects by the names that test writers use.

Beside the names that the switch accepts (the full control-plane name, or a suffix of whole parts),
BMv2's reader accepts any suffix that fits only one name; key fields have several spellings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gradplane.switch.naming import resolve
from gradplane.switch.runtime.control_errors import SwitchError

_ELEMENT = re.compile(r"\$(\d+)")
_VALID = "$valid$"


def named(kind: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return the known name that `name` stands for. Raises SwitchError."""
    names = list(known)
    try:
        return resolve(kind, name, names, where)
    except SwitchError:
        fitting = [n for n in names if n.endswith(name)]
        if len(fitting) != 1:
            raise
        return fitting[0]


def field_named(name: str, known: list[str], where: str) -> str:
    """Return a key field: `h$0.x` is `h[0].x`; `h.valid`, `h.$valid$` and `h` are `h.isValid()`.

    Raises SwitchError.
    """
    element = _ELEMENT.sub(r"[\1]", name)
    for spelling in (name, element, f"{element}$", _validity(element)):
        fitting = [n for n in known if n == spelling or n.endswith(f".{spelling}")]
        if spelling in fitting or len(fitting) == 1:
            return spelling if spelling in fitting else fitting[0]
    return resolve("match field", name, known, where)


def _validity(name: str) -> str:
    """Return the name of a header's validity, from `h`, `h.isValid()`, `h.valid` or `valid`."""
    name = name.removesuffix("()")
    for ending in ("valid", "isValid"):
        if name == ending or name.endswith(f".{ending}"):
            return name[: -len(ending)] + _VALID
    return f"{name}.{_VALID}"
