"""The records of a run: what it is given, its path, and the state that it makes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.entries import ActionData, Entry
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.valuesets import ParserValueSet
from gradplane.switch.source import Span
from gradplane.switch.testgen.symbols import Term

Goal = tuple[str, Span, str]
"""Something to cover: "line", "branch", "case" or "table", its place, and the outcome there."""

# Why a value is fixed: it says where something is, or something is computed of it.
INDEX, DATA = 1, 2
MOST_LENGTH = 2000  # bytes of a packet
MOST_PORT = 8  # the ports below it are tried first


@dataclass(frozen=True, slots=True)
class Given:
    """A packet of a test."""

    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Choice:
    """The result of a lookup that no entry matches: an entry with an action ("hit"), nothing
    ("miss"), or an action that was set as the table's default ("default")."""

    kind: str
    action: int = 0


_KINDS = ("hit", "miss", "default")


def number_of(choice: Choice) -> int:
    """Return the number that stands for a choice in terms."""
    return choice.action * len(_KINDS) + _KINDS.index(choice.kind)


def choice_of(number: int) -> Choice:
    return Choice(_KINDS[number % len(_KINDS)], number // len(_KINDS))


Other = tuple[Term, bool, Any]
"""Another result that a lookup could have: the condition, whether it would be a hit, and the
action's data."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a run. choices: by the number of the lookup in the run. values: of action data,
    by the names of their variables."""

    packets: tuple[Given, ...]
    choices: dict[int, Choice] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Way:
    """Another way at a branch. condition: makes the term under which a packet takes it; size: the
    bytes that it needs for it. choice: to be made instead, with the number of the lookup."""

    goal: Hashable
    condition: Callable[[], Term] | None = None
    choice: tuple[int, Choice] | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A step of a path. holds: the term that made the packet go this way, if one did. soft: it only
    fixes a value that no term follows, and may be dropped: INDEX, or DATA, which goes first.
    choices: how many the run had made."""

    goal: Hashable
    holds: Term | None = None
    others: Sequence[Way] = ()
    soft: int = 0
    choices: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a lookup or a condition, for people: `text`, in which `{}` stands for what
    `term` depends on. rank: its place among the outcomes that it has there."""

    place: Span
    text: str
    rank: int = 0
    term: Term | None = None


@dataclass(slots=True)
class Made:
    """The state that a control plane gives a test before its packets."""

    entries: list[tuple[MatchTable, Entry, ActionData]] = field(default_factory=list)
    defaults: dict[str, tuple[MatchTable, ActionData]] = field(default_factory=dict)
    members: list[tuple[ParserValueSet, tuple[int, ...]]] = field(default_factory=list)
    groups: dict[int, tuple[int, int]] = field(default_factory=dict)  # the ports of instances 1, 2
    sessions: dict[int, int] = field(default_factory=dict)  # their ports
    cells: list[tuple[Register, int, int]] = field(default_factory=list)  # register, index, value


@dataclass(slots=True)
class Run:
    """A run that is over. remembers: it wrote registers, so that a further packet may find them.
    fresh: it was the first to cover something. rejected: the steps that led to the parser's errors.
    missing: goals that it passed by. repeated: steps in loops, at which to go on without."""

    inputs: Inputs
    made: Made
    path: list[Branch]
    covered: set[Goal]
    remembers: bool = False
    fresh: bool = False
    rejected: set[int] = field(default_factory=set)
    missing: set[Goal] = field(default_factory=set)
    repeated: set[int] = field(default_factory=set)
    decisions: list[Decision] = field(default_factory=list)
