"""The registry of commands: for each a function and its usage.

A command takes the switch and the words of its line and returns the text to print. The first line
of its docstring is its help.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gradplane._suggestions import nearest
from gradplane.switch.control_handles import ControlledSwitch
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.control_errors import SwitchError


class CommandError(SwitchError):
    """A command is not understood, or commands of a file failed, one line each."""


class PortStatus(NamedTuple):
    """A port of a running switch. missed: packets that came when the switch was behind."""

    number: int
    interface: str
    up: bool
    missed: int = 0


class Ports(Protocol):
    """The ports of a running switch, as commands show and change them."""

    def status(self) -> Sequence[PortStatus]: ...

    def add(self, number: int, interface: str) -> None: ...

    def remove(self, number: int) -> None: ...


class NoPorts:
    """The ports of a switch in a Python program: none."""

    def status(self) -> Sequence[PortStatus]:
        return ()

    def add(self, number: int, interface: str) -> None:
        raise CommandError("the switch has no interfaces: only `gradplane switch` opens some")

    def remove(self, number: int) -> None:
        raise CommandError(f"port {number} has no interface; ports: none")


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """The target of commands: a switch and its ports. losses: the counts of messages to controllers
    that are lost, by kind."""

    switch: ControlledSwitch
    ports: Ports = NoPorts()
    losses: Mapping[str, int] = field(default_factory=dict)


Run = Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `usage`: the words after its name."""

    name: str
    usage: str
    help: str
    run: Run
    signature: inspect.Signature

    def __str__(self) -> str:
        return f"{self.name} {self.usage}".rstrip()


COMMANDS: dict[str, Command] = {}


def command(usage: str = "") -> Callable[[Run], Run]:
    """Register a function as the command of its name."""

    def add(function: Run) -> Run:
        name = function.__name__
        help = (inspect.getdoc(function) or "").splitlines()[0]
        COMMANDS[name] = Command(name, usage, help, function, inspect.signature(function))
        return function

    return add


def also(name: str, other: str, first: Callable[[CommandTarget, str], str], word: str) -> None:
    """Register `name` as another form of the command `other`.

    `first` converts its first word to that of `other`; `word` stands for it in the usage.
    """
    found = COMMANDS[other]

    def run(target: CommandTarget, owner: str, *words: str) -> str | None:
        return found.run(target, first(target, owner), *words)

    usage = " ".join([word, *found.usage.split()[1:]])
    COMMANDS[name] = Command(name, usage, found.help, run, found.signature)


def run_words(target: CommandTarget, words: Sequence[str]) -> str:
    """Run one command, given as its words, and return its output. Raises SwitchError."""
    name, *arguments = words
    found = find(name)
    try:
        found.signature.bind(target, *arguments)
    except TypeError:
        count = len(arguments)
        given = f"{count} words follow" if count != 1 else "1 word follows"
        raise CommandError(f"{given} {name}; usage: {found}") from None
    with target.switch.lock, target.switch.store.batch():
        return found.run(target, *arguments) or ""


def find(name: str) -> Command:
    """Return the command of a name; raise CommandError with the nearest names."""
    if name not in COMMANDS:
        near = nearest(name, COMMANDS, count=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "help lists them"
        raise CommandError(f"there is no command {name!r}; {hint}")
    return COMMANDS[name]


_READS = re.compile(
    r"help|(show|get)_\w+|switch_info|\w+_(dump\w*|get|get_rates|read|info|num_entries|show_actions)"
)


def changes(name: str) -> bool:
    """Return whether a command of this name may change the switch."""
    return not _READS.fullmatch(name)


# -- completion of an unfinished command's last word, by the placeholder in the command's usage ---


def complete(target: CommandTarget, line: str) -> list[str]:
    """Return the choices, sorted; a name may be completed from any of its dotted parts."""
    words = line.split()
    if not words or line[-1].isspace():
        words.append("")
    fitting = (_fitting(name, words[-1]) for name in _choices(target, words))
    return sorted({name for name in fitting if name is not None})


def _fitting(name: str, start: str) -> str | None:
    """Return a name that starts so, without leading parts if needed; None if there is none."""
    while not name.startswith(start):
        _, dot, name = name.partition(".")
        if not dot:
            return None
    return name


def _choices(target: CommandTarget, words: list[str]) -> Iterable[str]:
    if len(words) == 1:
        return COMMANDS
    found = COMMANDS.get(words[0])
    usage = found.usage.split() if found else []
    kind = usage[len(words) - 2] if len(words) - 2 < len(usage) else ""
    state = target.switch.state
    match kind.strip("[]"):
        case "TABLE":
            return state.tables
        case "ACTION":
            return _actions(target, words[1])
        case "PROFILE":
            return state.profiles
        case "REGISTER":
            return state.registers
        case "COUNTER" | "METER" as cells:
            return target.switch.store.names.cells(cells.lower())
        case "VALUE_SET":
            return state.value_sets
        case "COMMAND":
            return COMMANDS
    return ()


def _actions(target: CommandTarget, owner: str) -> Iterable[str]:
    """Return the actions of a table, or of the tables with a profile."""
    state = target.switch.state
    try:
        name = resolve("table", owner, [*state.tables, *state.profiles])
    except SwitchError:
        return ()
    tables = [
        t for t in state.tables.values() if name in (t.table.name, t.profile and t.profile.name)
    ]
    return [choice.action.name for table in tables for choice in table.table.actions]
