"""The lines of an STF file, and the values in them: one command in a line, `#` starts a comment.

Each command is a row of its usage and a pattern; a name with spaces or colons may be in double
quotes. Commands are accepted in any case, as are the commands of simple_switch_CLI. (p4c,
tools/stf: lexer and grammar.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gradplane._suggestions import did_you_mean
from gradplane.switch.commands import COMMANDS as CLI
from gradplane.switch.runtime.match_fields import KeyField

NAME = r'(?:"[^"]+"|[^\s:()=,"]+)'
# also h[0].x, h.x[7:0] and h.isValid()
KEY = r'(?:"[^"]+"|[^\s:()\[=,"]+(?:\[[^\]]*\][^\s:()\[=,"]*)*(?:\(\))?)'
MATCHES = rf"(?P<matches>(?:{KEY}\s*:\s*\S+(?:\s+|$))*)"
ACTION = rf"(?P<action>{NAME})\s*\((?P<args>[^()]*)\)"
NUMBER = r"(?:0[xXbBoO][0-9a-fA-F]+|\d{1,10})"
PRIORITY = r"(?:(?P<priority>\d{1,10})\s+)?"


@dataclass(frozen=True, slots=True)
class Statement:
    """A line: its command and the named parts after it; "" for an absent part."""

    line: int
    command: str
    args: dict[str, str]


class StfError(Exception):
    """A test that cannot be run; the text starts with file:line."""


# command -> its usage, and the pattern of its arguments
COMMANDS: dict[str, tuple[str, str]] = {
    "packet": ("PORT HEX... or @CAPTURE", r"(?P<port>\d{1,10})\s+(?P<data>@.+|[0-9a-fA-F\s]+)"),
    "expect": (
        "PORT [HEX or * ... or @CAPTURE] [$]",
        r"(?P<port>\d{1,10})(?:\s+(?P<data>@[^$]+|[0-9a-fA-F*\s]*))?\s*(?P<end>\$?)",
    ),
    "no_packet": ("", ""),
    "add": (
        "TABLE [PRIORITY] [FIELD:VALUE...] ACTION(PARAMETER:VALUE, ...) [= HANDLE]",
        rf"(?P<table>{NAME})\s+{PRIORITY}{MATCHES}{ACTION}(?:\s*=\s*(?P<handle>\S+))?",
    ),
    "setdefault": ("TABLE ACTION(PARAMETER:VALUE, ...)", rf"(?P<table>{NAME})\s+{ACTION}"),
    "remove": (
        "all, or TABLE [PRIORITY] FIELD:VALUE..., or TABLE HANDLE",
        rf"(?P<table>{NAME})(?:\s+{PRIORITY}(?:(?P<handle>{NAME})|{MATCHES}))?",
    ),
    "mirroring_add": ("SESSION PORT", rf"(?P<session>{NUMBER})\s+(?P<port>{NUMBER})"),
    "mirroring_add_mc": ("SESSION GROUP", rf"(?P<session>{NUMBER})\s+(?P<group>{NUMBER})"),
    "mirroring_get": ("SESSION", rf"(?P<session>{NUMBER})"),
    "mc_mgrp_create": ("GROUP", rf"(?P<group>{NUMBER})"),
    "mc_node_create": ("RID PORT...", rf"(?P<rid>{NUMBER})(?P<ports>(?:\s+{NUMBER})*)"),
    "mc_node_associate": ("GROUP NODE", rf"(?P<group>{NUMBER})\s+(?P<node>{NUMBER})"),
    "register_read": ("NAME [INDEX]", rf"(?P<name>{NAME})(?:\s+(?P<index>\w+))?"),
    "register_write": (
        "NAME INDEX VALUE",
        rf"(?P<name>{NAME})\s+(?P<index>\w+)\s+(?P<value>-?\w+)",
    ),
    "register_reset": ("NAME", rf"(?P<name>{NAME})"),
    "check_counter": (
        "NAME[(INDEX or HANDLE)] [[packets|bytes] ==|!=|<|<=|>|>= NUMBER]",
        rf"(?P<name>{NAME})\s*(?:\(\s*(?P<index>[\w$]+)\s*\))?"
        r"(?:\s*(?P<unit>packets|bytes)?\s*(?P<sign>[=!<>]=|[<>])\s*(?P<number>\w+))?",
    ),
    "wait": ("", ""),
}
ALIASES = {"counter": "check_counter"}

_ROWS = {name: re.compile(pattern) for name, (_, pattern) in COMMANDS.items()}
_PAIR = re.compile(rf"({KEY})\s*:\s*(\S+)")


def parse(text: str, file: str) -> list[Statement]:
    """Parse a file's statements; raise StfError that lists every invalid line."""
    statements: list[Statement] = []
    errors: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].strip()
        if not words:
            continue
        try:
            statements.append(_statement(number, words))
        except StfError as error:
            errors.append(f"{file}:{number}: {error}")
    if errors:
        raise StfError("\n".join(errors))
    return statements


def _statement(line: int, words: str) -> Statement:
    first, *rest = words.split(None, 1)
    command = ALIASES.get(first.lower(), first.lower())
    if command not in COMMANDS and command in CLI:
        return Statement(line, "command_line", {"words": " ".join([command, *rest])})
    if command not in COMMANDS:
        near = did_you_mean(command, [*COMMANDS, *CLI])
        hint = near or f"commands: {', '.join(COMMANDS)}"
        raise StfError(f"there is no command {first!r}; {hint}")
    found = _ROWS[command].fullmatch(rest[0] if rest else "")
    if found is None:
        raise StfError(f"{words!r} is not of the form: {command} {COMMANDS[command][0]}".rstrip())
    args = {name: unquoted(part or "") for name, part in found.groupdict().items()}
    return Statement(line, command, args)


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the FIELD:VALUE pairs of an entry, in order."""
    for found in _PAIR.finditer(text):
        yield unquoted(found[1]), found[2]


def arguments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the PARAMETER:VALUE pairs between an action's parentheses. Raises StfError."""
    for part in text.split(",") if text.strip() else ():
        name, colon, value = (piece.strip() for piece in part.partition(":"))
        if not (name and colon and value):
            raise StfError(f"action argument {part.strip()!r} is not PARAMETER:VALUE")
        yield unquoted(name), value


def unquoted(name: str) -> str:
    """Return a name without its double quotes."""
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name


# -- values ---------------------------------------------------------------------------------------

# A number is decimal, 0x, 0b or 0o; in the latter three `*` is a wildcard digit. The digits written
# determine how much of a field is matched, as in BMv2's reader: ternary `0x0a` compares eight bits,
# whatever the field's width, and lpm `0x0a00****` has a prefix of 16.

BITS = {"0x": 4, "0b": 1, "0o": 3}  # bits of a digit
_RANGE = re.compile(r"(.+?)(?:\.\.|->)(.+)")
_WORDS = {"true": 1, "false": 0}


def number(text: str) -> int | str:
    """Parse a number; return any other text, such as an address, unchanged."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return int(text, 10 if text.isdecimal() else 0)  # 007 is a number too
    except ValueError:
        return text


def match_value(field: KeyField, text: str) -> Any:
    """Convert a match value to the form of Table.add for the field's kind. Raises StfError."""
    return _KINDS[field.kind](field, text)


def absent(field: KeyField) -> Any:
    """Return the match of a field that an entry does not name: zero for exact fields."""
    return 0 if field.kind == "exact" else None


def _single(field: KeyField, text: str) -> Any:
    if "*" in text:
        raise StfError(f"field {field.name} is matched {field.kind}: {text} has wildcards")
    return number(text)


def _optional(field: KeyField, text: str) -> Any:
    if not text.lower().removeprefix("0x").removeprefix("0b").strip("*"):
        return None
    return _single(field, text)


def _prefix(field: KeyField, text: str) -> Any:
    if "/" in text:
        return tuple(number(part) for part in text.split("/", 1))
    if text[:2].lower() not in BITS:
        return number(text)
    value, mask = _written(text)
    return value, min(mask.bit_count(), field.width)


def _ternary(field: KeyField, text: str) -> Any:
    if "&&&" in text:
        return tuple(number(part) for part in text.split("&&&", 1))
    if text == "*":
        return 0, 0
    if text[:2].lower() not in BITS:
        return number(text), field.full
    value, mask = _written(text)
    return value, mask & field.full


def _range(field: KeyField, text: str) -> Any:
    found = _RANGE.fullmatch(text)
    if found is None:
        return _single(field, text)
    return number(found[1]), number(found[2])


def _written(text: str) -> tuple[int, int]:
    """Return the value, and the mask of the digits that are not wildcards."""
    base, digits = text[:2].lower(), text[2:].replace("_", "")
    try:
        value = int(digits.replace("*", "0"), 1 << BITS[base])
    except ValueError:
        raise StfError(f"{text!r} is not a number") from None
    full = "1" * BITS[base]
    mask = "".join("0" * len(full) if digit == "*" else full for digit in digits)
    return value, int(mask, 2)


_KINDS = {
    "exact": _single,
    "lpm": _prefix,
    "ternary": _ternary,
    "range": _range,
    "optional": _optional,
}
