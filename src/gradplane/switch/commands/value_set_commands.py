"""Commands on parser value sets."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.commands.command_registry import CommandError, CommandTarget, command
from gradplane.switch.commands.command_values import natural
from gradplane.switch.commands.dumps import hexadecimal
from gradplane.switch.match_values import match_of, number
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.valuesets import ParserValueSet


@command("VALUE_SET VALUE...")
def pvs_add(target: CommandTarget, value_set: str, value: str, *more: str) -> None:
    """Add a member: one number with all fields concatenated, or one number for each field."""
    found = target.switch.value_set(value_set)
    member = _member(found, [value, *more])
    if member not in found.members:
        target.switch.store.cells.set_members(found, [*found.members, member])


@command("VALUE_SET VALUE...")
def pvs_remove(target: CommandTarget, value_set: str, value: str, *more: str) -> None:
    """Remove a member, if it exists."""
    found = target.switch.value_set(value_set)
    member = _member(found, [value, *more])
    left = [m for m in found.members if m != member]
    target.switch.store.cells.set_members(found, left)


@command("VALUE_SET")
def pvs_clear(target: CommandTarget, value_set: str) -> None:
    """Remove all members."""
    target.switch.store.cells.set_members(target.switch.value_set(value_set), [])


@command("VALUE_SET")
def pvs_get(target: CommandTarget, value_set: str) -> str:
    """Print the members, each as one number in hexadecimal."""
    found = target.switch.value_set(value_set)
    return "\n".join(_shown(found, member) for member in found.members)


@command()
def show_pvs(target: CommandTarget) -> str:
    """Print the program's parser value sets and the widths of their members."""
    sets = target.switch.state.value_sets
    return "\n".join(
        f"{name:30} [compressed bitwidth:{_width(sets[name])}]" for name in sorted(sets)
    )


def _width(value_set: ParserValueSet) -> int:
    return sum(field.width for field in value_set.fields)


def _member(value_set: ParserValueSet, words: Sequence[str]) -> tuple[Match, ...]:
    fields, where = value_set.fields, f"value set {value_set.name}"
    if len(words) == len(fields):
        values = [number(w, f"{where}: {f.name}") for f, w in zip(fields, words, strict=True)]
    elif len(words) == 1:
        values = _split(value_set, natural(words[0], where))
    else:
        what = f"{len(words)} values for {len(fields)} fields: give one a field, or one number"
        raise CommandError(f"{where}: {what}")
    return tuple(match_of(field, value) for field, value in zip(fields, values, strict=True))


def _split(value_set: ParserValueSet, whole: int) -> list[int]:
    """Split a number by the fields' widths."""
    left = _width(value_set)
    if whole >> left:
        raise CommandError(f"value set {value_set.name}: {whole:#x} does not fit {left} bits")
    parts = []
    for field in value_set.fields:
        left -= field.width
        parts.append(whole >> left & field.full)
    return parts


def _shown(value_set: ParserValueSet, member: tuple[Match, ...]) -> str:
    """Format a member without masks and prefixes, which only a controller can set."""
    whole = 0
    for field, match in zip(value_set.fields, member, strict=True):
        whole = whole << field.width | (match[0] if match else 0)
    return hexadecimal(whole, _width(value_set))
