"""The commands: a function each, with how it is written beside it.

A command takes the switch and the words of its line and gives what is to be printed. The first line
of its docstring is its help.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gradplane._suggestions import nearest
from gradplane.switch.commands.command_error import CommandError
from gradplane.switch.switch import Switch


class PortStatus(NamedTuple):
    """A port of a running switch."""

    number: int
    interface: str
    up: bool


def no_ports() -> Sequence[PortStatus]:
    """Of a switch in a Python program."""
    return ()


@dataclass(frozen=True, slots=True)
class Target:
    """What commands work on: a switch, and what it has of ports."""

    switch: Switch
    ports: Callable[[], Sequence[PortStatus]] = no_ports


Run = Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class Command:
    """`usage`: what follows the name."""

    name: str
    usage: str
    help: str
    run: Run
    signature: inspect.Signature

    def __str__(self) -> str:
        return f"{self.name} {self.usage}".rstrip()


COMMANDS: dict[str, Command] = {}


def command(usage: str = "") -> Callable[[Run], Run]:
    """Makes a function a command of its name."""

    def add(function: Run) -> Run:
        name = function.__name__
        help = (inspect.getdoc(function) or "").splitlines()[0]
        COMMANDS[name] = Command(name, usage, help, function, inspect.signature(function))
        return function

    return add


def also(name: str, other: str, first: Callable[[Target, str], str], word: str) -> None:
    """Makes `name` a command that does as `other`, whose first word is `first` of its own; `word`
    stands for that in its usage."""
    found = COMMANDS[other]

    def run(target: Target, owner: str, *words: str) -> str | None:
        return found.run(target, first(target, owner), *words)

    usage = " ".join([word, *found.usage.split()[1:]])
    COMMANDS[name] = Command(name, usage, found.help, run, found.signature)


def run_words(target: Target, words: Sequence[str]) -> str:
    """Runs one command, given as its words; what it prints. Raises SwitchError."""
    name, *arguments = words
    found = find(name)
    try:
        found.signature.bind(target, *arguments)
    except TypeError:
        count = len(arguments)
        given = f"{count} words follow" if count != 1 else "1 word follows"
        raise CommandError(f"{given} {name}; it is written: {found}") from None
    with target.switch.lock:
        return found.run(target, *arguments) or ""


def find(name: str) -> Command:
    """The command of a name. Raises CommandError with the nearest ones."""
    if name not in COMMANDS:
        near = nearest(name, COMMANDS, count=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "help lists them"
        raise CommandError(f"there is no command {name!r}; {hint}")
    return COMMANDS[name]
