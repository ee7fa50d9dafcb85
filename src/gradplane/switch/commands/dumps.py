"""Entries, actions and members as table_dump and act_prof_dump print them.

Scripts read these lines: `Dumping entry 0x0`, `* FIELD: LPM 0a000000/8`, `Action entry: NAME - 01`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.switch.commands.command_values import MOST_PRIORITY
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.runtime.action_lists import ActionList
from gradplane.switch.runtime.entries import ActionData, Entry, EntryAction, GroupRef, MemberRef
from gradplane.switch.runtime.match_fields import KeyField, Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.profiles import ActionProfile

LINE, STARS = "=" * 10, "*" * 10
_LEAST_WIDTH = 20  # of the fields' names
_SIGNS = {"lpm": "/", "ternary": " &&& ", "range": " -> ", "optional": " &&& "}


def hexadecimal(value: int, width: int) -> str:
    """Format a value's bytes."""
    size = max(1, -(-width // 8))
    return f"{value & ((1 << 8 * size) - 1):0{2 * size}x}"


def entry_lines(table: MatchTable, entry: Entry, now: int) -> Iterator[str]:
    """Yield the lines of one entry; `now` in ns gives the time since its last hit."""
    yield f"Dumping entry {entry.handle:#x}"
    yield "Match key:"
    width = max([_LEAST_WIDTH, *(len(f.name) for f in table.fields)])
    for field, match in zip(table.fields, entry.matches, strict=True):
        # simple_switch knows no kind optional.
        kind = "TERNARY" if field.kind == "optional" else field.kind.upper()
        yield f"* {field.name:{width}}: {kind:10}{_match(field, match)}"
    if table.with_priority:
        yield f"Priority: {MOST_PRIORITY - entry.priority}"
    yield target_line(table, entry.action)
    if table.table.support_timeout:
        idle, timeout = now - entry.last_hit_ns, entry.idle_timeout_ns
        yield f"Life: {idle // 1_000_000}ms since hit, timeout is {timeout // 1_000_000}ms"


def target_line(table: MatchTable, target: EntryAction) -> str:
    """Format the target of an entry."""
    match target:
        case ActionData():
            return action_line(table.actions, target)
        case MemberRef(id=number):
            return f"Index: member({number})"
        case GroupRef(id=number):
            return f"Index: group({number})"
    actions = [f"{action_line(table.actions, data)} (weight {w})" for data, w, _ in target.actions]
    return "\n".join(actions)


def action_line(actions: ActionList, data: ActionData) -> str:
    action = actions.action(data)
    parts = [hexadecimal(v, _width(p)) for p, v in zip(action.params, data.args, strict=True)]
    return f"Action entry: {action.name} - {', '.join(parts)}"


def profile_lines(profile: ActionProfile) -> Iterator[str]:
    """Yield the members and groups of a profile."""
    yield from (LINE, "MEMBERS")
    for member in sorted(profile.members):
        yield STARS
        yield from member_lines(profile, member)
    if profile.has_groups:
        yield from (LINE, "GROUPS")
        for group in sorted(profile.groups):
            yield STARS
            yield from group_lines(profile, group)


def member_lines(profile: ActionProfile, member: int) -> Iterator[str]:
    yield f"Dumping member {member}"
    yield action_line(profile.actions, profile.members[member])


def group_lines(profile: ActionProfile, group: int) -> Iterator[str]:
    yield f"Dumping group {group}"
    yield f"Members: [{', '.join(str(m.member) for m in profile.groups[group].members)}]"


def table_line(table: MatchTable) -> str:
    """Format a table for show_tables."""
    keys = ",\t".join(f"{f.name}({f.kind}, {f.width})" for f in table.fields)
    implementation = table.profile.name if table.profile else None
    return f"{table.table.name:30} [implementation={implementation}, mk={keys}]"


def action_usage(action: ir.Action) -> str:
    """Format an action for show_actions."""
    params = ",\t".join(f"{p.name}({_width(p)})" for p in action.params)
    return f"{action.name:30} [{params}]"


def _match(field: KeyField, match: Match) -> str:
    first, second = match if match and len(match) == 2 else (match[0] if match else 0, None)
    if second is None:
        second = _second(field, match)
    text = hexadecimal(first, field.width)
    if second is None:
        return text
    end = str(second) if field.kind == "lpm" else hexadecimal(second, field.width)
    return f"{text}{_SIGNS[field.kind]}{end}"


def _second(field: KeyField, match: Match) -> int | None:
    """Return the second number of a match, for a "don't care" match too; None for exact ones."""
    if field.kind == "exact":
        return None
    if field.kind == "optional" and match is not None:
        return field.full
    return field.full if field.kind == "range" else 0


def _width(param: ir.Var) -> int:
    return param.type.width if isinstance(param.type, Bits) else 1
