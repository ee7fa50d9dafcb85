"""Command lines of other programs that a command of ours stands for: simple_switch's, p4c's.

A table has a row for each option. gradplane's own commands are typer's.
"""

from __future__ import annotations

import re
import textwrap
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NoReturn

_NEGATIVE = re.compile(r"-\d+$|-\d*\.\d+$")
_COLUMN, _WIDTH = 26, 80  # of a help text


class OptionError(Exception):
    """The command line is not valid; the message says what is expected."""


@dataclass(frozen=True, slots=True)
class Option:
    """A row: the names, as "-L --log-level", what stands for the value in the help ("": it takes
    none), and the help.

    kind: makes the value of the text, or raises ValueError. many: the option may be repeated; its
    value is a list. choices: the texts allowed. alone: the value where no text follows. group: the
    heading in the help.
    """

    names: str
    metavar: str
    help: str = ""
    kind: Callable[[str], Any] = str
    default: Any = None
    many: bool = False
    choices: tuple[str, ...] = ()
    alone: Any = None
    group: str = "options"

    @property
    def field(self) -> str:
        """The attribute that has the value: of the first long name, or the first one."""
        names = self.names.split()
        long = next((name for name in names if name.startswith("--")), names[0])
        return long.lstrip("-").replace("-", "_")

    def refuse(self, reason: str) -> NoReturn:
        """Raise OptionError."""
        raise OptionError(f"argument {'/'.join(self.names.split())}: {reason}")

    def value(self, text: str) -> Any:
        """Return the value of a text. Raises OptionError."""
        try:
            made = self.kind(text)
        except ValueError:
            self.refuse(f"invalid {self.kind.__name__} value: {text!r}")
        if self.choices and made not in self.choices:
            known = ", ".join(map(repr, self.choices))
            self.refuse(f"invalid choice: {made!r} (choose from {known})")
        return made


def parse(table: Sequence[Option], arguments: Sequence[str]) -> tuple[SimpleNamespace, list[str]]:
    """Return the options' values, as attributes, and the other arguments. Raises OptionError."""
    rows = {name: option for option in table for name in option.names.split()}
    found = SimpleNamespace(
        **{option.field: [] if option.many else _default(option) for option in table}
    )
    left, others = deque(arguments), list[str]()
    while left:
        argument = left.popleft()
        if argument == "--":
            return found, [*others, *left]
        name, text = (argument, None) if argument in rows else _split(argument)
        option = rows.get(name)
        if option is None:
            others.append(argument)
        elif option.many:
            getattr(found, option.field).append(_taken(option, text, left))
        else:
            setattr(found, option.field, _taken(option, text, left))
    return found, others


def _default(option: Option) -> Any:
    return option.default if option.metavar else False


def _split(argument: str) -> tuple[str, str | None]:
    """Return an option's name and the text in the same argument, None where there is none."""
    if argument.startswith("--"):
        name, equals, text = argument.partition("=")
        return name, text if equals else None
    return argument[:2], argument[2:].removeprefix("=") or None


def _taken(option: Option, text: str | None, left: deque[str]) -> Any:
    """Return an option's value, from its argument or from the next one."""
    if not option.metavar:
        if text is not None:
            option.refuse(f"ignored explicit argument {text!r}")
        return True
    if text is None and left and not _is_option(left[0]):
        text = left.popleft()
    if text is not None:
        return option.value(text)
    if option.alone is None:
        option.refuse("expected one argument")
    return option.alone


def _is_option(argument: str) -> bool:
    return argument.startswith("-") and argument != "-" and not _NEGATIVE.match(argument)


def help_text(usage: str, description: str, table: Sequence[Option], epilog: str = "") -> str:
    """Return what --help prints."""
    parts = [f"usage: {usage}", description]
    for group in dict.fromkeys(option.group for option in table):
        lines = [_line(option) for option in table if option.group == group]
        parts.append("\n".join([f"{group}:", *lines]))
    return "\n\n".join([*parts, *([epilog] if epilog else [])]) + "\n"


def _line(option: Option) -> str:
    value = f"[{option.metavar}]" if option.alone is not None else option.metavar
    head = f"  {', '.join(option.names.split())} {value}".rstrip().ljust(_COLUMN - 1)
    text = option.help or f"{', '.join(option.choices)}"
    first = f"{head} " if len(head) < _COLUMN else f"{head}\n{' ' * _COLUMN}"
    wrapped = textwrap.wrap(text, _WIDTH - _COLUMN) or [""]
    return (first + f"\n{' ' * _COLUMN}".join(wrapped)).rstrip()
