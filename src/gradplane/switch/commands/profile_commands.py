"""Commands on action profiles and selectors, and on the tables that use them.

Members and groups are numbered from 0: a new one gets the lowest number that is free, also of those
that a controller gave.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gradplane.switch.commands import command_values, dumps
from gradplane.switch.commands.command_registry import CommandError, CommandTarget, also, command
from gradplane.switch.commands.table_commands import (
    ARROW,
    action_named,
    added,
    entry_of,
    entry_words,
)
from gradplane.switch.control_handles import Profile, Table
from gradplane.switch.runtime.entries import GroupRef, MemberRef
from gradplane.switch.runtime.profiles import Weighted

# -- members -------------------------------------------------------------------------------------


@command("PROFILE ACTION [PARAMETER...]")
def act_prof_create_member(target: CommandTarget, profile: str, action: str, *words: str) -> str:
    """Add a member to an action profile."""
    found = target.switch.profile(profile)
    name, params = _action(found, action, words)
    member = _free(found.state.members)
    found.add_member(member, name, params)
    return f"Member has been created with handle {member}"


@command("PROFILE ACTION MEMBER [PARAMETER...]")
def act_prof_modify_member(
    target: CommandTarget, profile: str, action: str, member: str, *words: str
) -> None:
    """Give a member another action."""
    found = target.switch.profile(profile)
    name, params = _action(found, action, words)
    found.modify_member(_handle("member", member), name, params)


@command("PROFILE MEMBER")
def act_prof_delete_member(target: CommandTarget, profile: str, member: str) -> None:
    """Remove a member."""
    target.switch.profile(profile).remove_member(_handle("member", member))


# -- groups --------------------------------------------------------------------------------------


@command("PROFILE")
def act_prof_create_group(target: CommandTarget, profile: str) -> str:
    """Add an empty group to an action selector."""
    found = target.switch.profile(profile)
    group = _free(found.state.groups)
    found.add_group(group, [])
    return f"Group has been created with handle {group}"


@command("PROFILE GROUP")
def act_prof_delete_group(target: CommandTarget, profile: str, group: str) -> None:
    """Remove a group."""
    target.switch.profile(profile).remove_group(_handle("group", group))


@command("PROFILE MEMBER GROUP")
def act_prof_add_member_to_group(
    target: CommandTarget, profile: str, member: str, group: str
) -> None:
    """Add a member to a group."""
    found, number, there = _membership(target, profile, member, group)
    if any(m.member == number for m in there):
        raise CommandError(f"action profile {found.state.name}: group {group} has member {member}")
    members = [*there, Weighted(number)]
    found.groups.modify(_handle("group", group), members=members)


@command("PROFILE MEMBER GROUP")
def act_prof_remove_member_from_group(
    target: CommandTarget, profile: str, member: str, group: str
) -> None:
    """Remove a member from a group."""
    found, number, there = _membership(target, profile, member, group)
    left = [m for m in there if m.member != number]
    if len(left) == len(there):
        has = ", ".join(str(m.member) for m in there) or "none"
        what = f"group {group} has no member {member}; its members: {has}"
        raise CommandError(f"action profile {found.state.name}: {what}")
    found.groups.modify(_handle("group", group), members=left)


# -- dumps ---------------------------------------------------------------------------------------


@command("PROFILE")
def act_prof_dump(target: CommandTarget, profile: str) -> str:
    """Print a profile's members and groups."""
    found = target.switch.profile(profile)
    return "\n".join([*dumps.profile_lines(found.state), dumps.LINE])


@command("PROFILE MEMBER")
def act_prof_dump_member(target: CommandTarget, profile: str, member: str) -> str:
    """Print a member."""
    found, number = target.switch.profile(profile), _handle("member", member)
    found.state.member(number)
    return "\n".join(dumps.member_lines(found.state, number))


@command("PROFILE GROUP")
def act_prof_dump_group(target: CommandTarget, profile: str, group: str) -> str:
    """Print a group."""
    found, number = target.switch.profile(profile), _handle("group", group)
    found.state.group(number)
    return "\n".join(dumps.group_lines(found.state, number))


# -- entries -------------------------------------------------------------------------------------


@command("TABLE MATCH... => MEMBER [PRIORITY]")
def table_indirect_add(target: CommandTarget, table: str, *words: str) -> str:
    """Add an entry that runs a member."""
    found = _indirect(target, table)
    left, number, priority = _indirect_words(found, "member", words)
    return added(
        found.add(command_values.matches(found.state, left), priority=priority, member=number)
    )


@command("TABLE MATCH... => GROUP [PRIORITY]")
def table_indirect_add_with_group(target: CommandTarget, table: str, *words: str) -> str:
    """Add an entry that runs a member of a group, chosen by the hash of the selector's fields."""
    found = _indirect(target, table)
    left, number, priority = _indirect_words(found, "group", words)
    return added(
        found.add(command_values.matches(found.state, left), priority=priority, group=number)
    )


@command("TABLE HANDLE")
def table_indirect_delete(target: CommandTarget, table: str, handle: str) -> None:
    """Remove an entry."""
    found = _indirect(target, table)
    target.switch.store.entries(found.state).delete(entry_of(found.state, handle).key)


@command("TABLE MEMBER")
def table_indirect_set_default(target: CommandTarget, table: str, member: str) -> None:
    """Let lookup misses run a member's action."""
    _set_default(target, table, MemberRef(_handle("member", member)))


@command("TABLE GROUP")
def table_indirect_set_default_with_group(target: CommandTarget, table: str, group: str) -> None:
    """Let lookup misses run a member of a group, chosen as for entries."""
    _set_default(target, table, GroupRef(_handle("group", group)))


@command("TABLE")
def table_indirect_reset_default(target: CommandTarget, table: str) -> None:
    """Restore the default action of the source."""
    _indirect(target, table).set_default()


# -- shared by all ------------------------------------------------------------------------------


def _set_default(target: CommandTarget, table: str, action: MemberRef | GroupRef) -> None:
    target.switch.store.entries(_indirect(target, table).state).set_default(action)


def _indirect(target: CommandTarget, name: str) -> Table:
    """Return a table that has a profile."""
    table = target.switch.table(name)
    if table.state.profile is None:
        where = table.state.table.name
        raise CommandError(
            f"table {where}: it has no action profile; use table_add and the other table_ commands"
        )
    return table


def _profile_name(target: CommandTarget, table: str) -> str:
    profile = _indirect(target, table).state.profile
    assert profile is not None
    return profile.name


def _indirect_words(
    table: Table, kind: str, words: Sequence[str]
) -> tuple[Sequence[str], int, int | None]:
    """Return an entry's match values, its member or group, and its priority."""
    left, right, priority = entry_words(table.state, words)
    if len(right) != 1:
        where = f"table {table.state.table.name}"
        what = f"{kind}'s number and nothing else"
        raise CommandError(
            f"{where}: after => expected a {what}, got {' '.join(right) or 'nothing'}"
        )
    return left, _handle(kind, right[0]), priority


def _action(profile: Profile, action: str, words: Sequence[str]) -> tuple[str, dict[str, str]]:
    name = action_named(profile.actions, action)
    given = words[1:] if words[:1] == (ARROW,) else words
    return name, command_values.parameters(profile.actions, name, given)


def _membership(
    target: CommandTarget, profile: str, member: str, group: str
) -> tuple[Profile, int, list[Weighted]]:
    """Return the profile, the member's number, and the group's members."""
    found = target.switch.profile(profile)
    number = _handle("member", member)
    found.state.member(number)
    return found, number, found.state.group(_handle("group", group)).members


def _handle(kind: str, word: str) -> int:
    return command_values.natural(word, f"{kind}'s handle")


def _free(taken: Collection[int]) -> int:
    return next(n for n in range(len(taken) + 1) if n not in taken)


for _name in ("create_member", "modify_member", "delete_member", "create_group", "delete_group",
              "add_member_to_group", "remove_member_from_group"):  # fmt: skip
    also(f"table_indirect_{_name}", f"act_prof_{_name}", _profile_name, "TABLE")
for _name in ("dump_member", "dump_group"):
    also(f"table_{_name}", f"act_prof_{_name}", _profile_name, "TABLE")
