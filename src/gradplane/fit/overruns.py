"""An overrun: a resource of which a program takes more than the chip has."""

from __future__ import annotations

from dataclasses import dataclass

from gradplane.switch.source import Span


@dataclass(frozen=True, slots=True)
class Impossible:
    """Something that no ALU does, and what would do it."""

    what: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Overrun:
    """A reason for which a program does not fit: the resource, the line that causes it, and what
    would change that."""

    resource: str
    what: str
    span: Span
    way_out: str
