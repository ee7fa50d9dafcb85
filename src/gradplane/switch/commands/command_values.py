"""Numbers, match values and action parameters in the form of simple_switch's commands.

A number is decimal, 0x, 0b or 0o, or a MAC, IPv4 or IPv6 address. A match by kind: exact VALUE, lpm
VALUE/LENGTH, ternary VALUE&&&MASK, range LOW->HIGH, optional VALUE or VALUE&&&MASK with a mask of
all ones or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import hexdigits
from typing import Any

from gradplane.switch.commands.command_registry import CommandError
from gradplane.switch.match_values import match_of, number
from gradplane.switch.runtime.action_lists import ActionList
from gradplane.switch.runtime.match_fields import KeyField, Match
from gradplane.switch.runtime.match_table import MatchTable

MOST_PRIORITY = (1 << 31) - 1
"""The highest priority of the switch and of P4Runtime, where the larger wins. Here the smaller
wins; simple_switch_grpc converts with the same sum, so controllers and commands see one order."""

_SIGNS = {"lpm": "/", "ternary": "&&&", "range": "->", "optional": "&&&"}
_WORDS = {"true": "1", "false": "0"}


def integer(word: str, what: str) -> int:
    """Parse a number; raise CommandError that names `what`."""
    try:
        return int(word, 10 if word.isdecimal() else 0)  # 007 is a number too
    except ValueError:
        raise CommandError(f"{what}: {word!r} is not a number") from None


def natural(word: str, what: str) -> int:
    """Parse a number that is not negative."""
    value = integer(word, what)
    if value < 0:
        raise CommandError(f"{what}: {word} is below 0")
    return value


def matches(table: MatchTable, words: Sequence[str]) -> dict[str, Any]:
    """Return an entry's matches by field, in the form of Table.add."""
    fields, where = table.fields, f"table {table.table.name}"
    if len(words) != len(fields):
        wanted = ", ".join(f"{f.name} ({f.kind})" for f in fields) or "none"
        given = " ".join(words) or "none"
        raise CommandError(
            f"{where}: {len(words)} match values ({given}) for its {len(fields)} fields: {wanted}"
        )
    return {f.name: _match(f, word) for f, word in zip(fields, words, strict=True)}


def canonical(table: MatchTable, words: Sequence[str]) -> tuple[Match, ...]:
    """Return the matches in the form that entries have."""
    given = matches(table, words)
    return tuple(match_of(field, given[field.name]) for field in table.fields)


_PRIORITY = (
    "; the last number is the entry's priority, which follows the parameters, since not all of the"
    " table's fields are exact or lpm"
)
_OF_VALUES = frozenset(f"{hexdigits}xX.:")  # numbers and addresses
_FORMS = {
    "lpm": "VALUE/LENGTH of an lpm",
    "ternary": "VALUE&&&MASK of a ternary",
    "range": "LOW->HIGH of a range",
}


def _match(field: KeyField, word: str) -> Any:
    sign = _SIGNS.get(field.kind)
    if sign is None:
        return _WORDS.get(word.lower(), word) if field.width == 1 else word
    first, found, second = word.partition(sign)
    if field.kind == "optional":
        return _optional(field, first, second if found else None)
    if not (first and second):
        what = f"field {field.name}: {word!r} is not of the form {_FORMS[field.kind]} match"
        same = {"lpm": field.width, "ternary": f"{field.full:#x}", "range": word}
        value = word and set(word) <= _OF_VALUES and ".." not in word
        hint = f": {word}{sign}{same[field.kind]} matches it alone" if value else ""
        raise CommandError(f"{field.owner}: {what}{hint}")
    return first, second


def _optional(field: KeyField, value: str, mask: str | None) -> Any:
    """Return the match of an optional field, which is a ternary one to BMv2."""
    what = f"{field.owner}: field {field.name}"
    bits = field.full if mask is None else number(mask, what)
    if bits == 0:
        return None
    if bits != field.full:
        text = f"mask {mask} of an optional match is neither 0 nor {field.full:#x}"
        raise CommandError(f"{what}: {text}")
    return value


def parameters(
    actions: ActionList, action: str, words: Sequence[str], with_priority: bool = False
) -> dict[str, str]:
    """Return an action's parameters by name; `action` is its full name.

    with_priority: a word behind them was taken as the entry's priority."""
    choice = next(c.action for c in actions.choices if c.action.name == action)
    if len(words) != len(choice.params):
        wanted = ", ".join(f"{p.name} ({p.type})" for p in choice.params) or "none"
        given = " ".join(words) or "none"
        raise CommandError(
            f"action {action}: {len(words)} parameters ({given}) for its {len(choice.params)}:"
            f" {wanted}"
            + (_PRIORITY if with_priority and len(words) == len(choice.params) - 1 else "")
        )
    pairs = zip(choice.params, words, strict=True)
    return {param.name: _WORDS.get(word.lower(), word) for param, word in pairs}


def priority(table: MatchTable, word: str) -> int:
    """Convert a command's priority to the switch's."""
    value = integer(word, f"table {table.table.name}: priority")
    if not 0 <= value < MOST_PRIORITY:
        what = f"priority {word} is not within 0 to {MOST_PRIORITY - 1}"
        raise CommandError(f"table {table.table.name}: {what}")
    return MOST_PRIORITY - value
