"""ActionProfileMember and ActionProfileGroup: shared actions, and groups that select among them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from gradplane._p4runtime import p4i, p4r
from gradplane.switch.p4runtime.catalog import Extern, ListedActions, TableInfo, find
from gradplane.switch.p4runtime.entities.table_actions import (
    read_action,
    read_watch_port,
    read_weight,
    show_action,
    show_watch_port,
    shown_weight,
)
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.entries import Entry, OneShot
from gradplane.switch.runtime.profiles import ActionProfile, Group, Weighted


def write_member(p: Pipeline, kind: int, message: p4r.ActionProfileMember) -> None:
    extern, profile = _profile(p, message.action_profile_id)
    number = message.member_id
    if number == 0 and not p.whole:
        raise _error(extern, "member id 0 stands for all members, it cannot be written")
    members = p.store.members(profile)
    if kind == p4r.Update.DELETE:
        members.delete(number)
        return
    if not message.HasField("action"):
        raise _error(extern, f"member {number} is given without an action")
    action = read_action(_actions(p, extern), message.action)
    p.rules.check_action(_actions(p, extern), action)
    if kind == p4r.Update.INSERT:
        members.insert(number, action=action)
    else:
        members.modify(number, action=action)


def write_group(p: Pipeline, kind: int, message: p4r.ActionProfileGroup) -> None:
    extern, profile = _profile(p, message.action_profile_id)
    number = message.group_id
    if number == 0 and not p.whole:
        raise _error(extern, "group id 0 stands for all groups, it cannot be written")
    groups = p.store.groups(profile)
    if kind == p4r.Update.DELETE:
        groups.delete(number)
        return
    shape = _described(p, extern)
    where = f"action profile {extern.name}: group {number}"
    members = []
    for m in message.members:
        wrong = f"member {m.member_id} has weight {m.weight}, expected at least 1"
        weight = read_weight(shape, m.weight, where, wrong)
        watched = read_watch_port(p, m, f"action profile {extern.name}")
        members.append(Weighted(m.member_id, weight, watched))
    _check_members(extern, number, members)
    _check_max_size(extern, shape, message.max_size)
    weights = [m.weight for m in members]
    _check_weights(extern, shape, weights, message.max_size)
    former = profile.groups.get(number)
    if (former is None) == (kind == p4r.Update.INSERT):  # else there is one already, or none
        replaced = [w.weight for w in former.members] if former else []
        _check_total(p, extern, shape, weights, replaced)
    if kind == p4r.Update.INSERT:
        groups.insert(number, members=members, max_size=message.max_size)
        return
    if former is not None and (size := _max_size(former, shape)) != message.max_size:
        raise _error(
            extern,
            f"group {number} has max_size {size}, which cannot be changed to {message.max_size}",
        )
    groups.modify(number, members=members, max_size=message.max_size)


def read_members(p: Pipeline, query: p4r.ActionProfileMember) -> Iterator[p4r.ActionProfileMember]:
    for extern in _chosen(p, query.action_profile_id):
        actions = p.catalog.member_actions[extern.id]
        for number, action in list(p.state.profiles[extern.name].members.items()):
            if query.member_id in (0, number):
                yield p4r.ActionProfileMember(
                    action_profile_id=extern.id,
                    member_id=number,
                    action=show_action(actions, action),
                )


def read_groups(p: Pipeline, query: p4r.ActionProfileGroup) -> Iterator[p4r.ActionProfileGroup]:
    for extern in _chosen(p, query.action_profile_id):
        shape = _described(p, extern)
        for number, group in list(p.state.profiles[extern.name].groups.items()):
            if query.group_id in (0, number):
                size = _max_size(group, shape)
                shown = p4r.ActionProfileGroup(
                    action_profile_id=extern.id, group_id=number, max_size=size
                )
                for m in group.members:
                    weight = shown_weight(shape, m.weight)
                    one = shown.members.add(member_id=m.member, weight=weight)
                    if m.watch_port:
                        one.watch_port = show_watch_port(p, m.watch_port)
                yield shown


def check_one_shot(
    p: Pipeline, table: TableInfo, target: OneShot, replaced: Entry | None = None
) -> None:
    """Refuse a one-shot action set beyond the selector's limits, or in use beside members.

    replaced: the entry that is to have it.
    """
    implementation = table.table.implementation
    assert implementation is not None
    extern = next(e for e in p.catalog.profiles.values() if e.name == implementation.name)
    profile = p.state.profiles[extern.name]
    if profile.members or profile.groups:
        raise _error(
            extern,
            "its tables are programmed with members and groups, so no entry takes a set of actions"
            " (one shot)",
        )
    shape, weights = _described(p, extern), [weight for _, weight, _ in target.actions]
    _check_weights(extern, shape, weights, 0)
    gone = replaced.action if replaced is not None else None
    _check_total(p, extern, shape, weights,
                 [w for _, w, _ in gone.actions] if isinstance(gone, OneShot) else [])  # fmt: skip


# -- rules ---------------------------------------------------------------------------------------


def _check_members(extern: Extern, group: int, members: Iterable[Weighted]) -> None:
    seen: set[int] = set()
    for member in members:
        if member.member in seen:
            raise _error(
                extern, f"group {group} has member {member.member} twice; use its weight instead"
            )
        seen.add(member.member)


def _max_size(group: Group, shape: p4i.ActionProfile) -> int:
    """Return a group's limit. Those that commands made have none of their own."""
    return group.max_size or shape.max_group_size


def _check_max_size(extern: Extern, shape: p4i.ActionProfile, size: int) -> None:
    limit = shape.max_group_size
    if limit and not 0 < size <= limit:
        raise _error(extern, f"max_size {size} is not within 1 to {limit}, its max_group_size")
    if size < 0:
        raise _error(extern, f"max_size {size} is below 0")


def _check_weights(
    extern: Extern, shape: p4i.ActionProfile, weights: Collection[int], size: int
) -> None:
    """Check the selector's size semantics: the sum of weights, or the number of members.

    `size`: the group's own limit, 0 for a one shot, which has none.
    """
    by_members = _by_members(shape)
    largest = shape.sum_of_members.max_member_weight
    if by_members and largest and max(weights, default=0) > largest:
        raise _error(extern, f"weight {max(weights)} is above its max_member_weight of {largest}")
    limit = size or shape.max_group_size
    used, what = _size(shape, weights), "members" if by_members else "weights in sum"
    if limit and used > limit:
        code = "RESOURCE_EXHAUSTED" if size else "INVALID_ARGUMENT"
        raise _error(extern, f"a group of {used} {what} is above its size of {limit}", code)


def _check_total(
    p: Pipeline,
    extern: Extern,
    shape: p4i.ActionProfile,
    weights: Collection[int],
    replaced: Collection[int],
) -> None:
    """Check the selector's size, which limits all groups and one shots together, whoever made them.

    replaced: the weights of the group or one shot that goes.
    """
    if not shape.size:
        return
    use = p.state.profiles[extern.name].use
    used = use.members if _by_members(shape) else use.weights
    used += _size(shape, weights) - _size(shape, replaced)
    if used > shape.size:
        what = "members" if _by_members(shape) else "weights in sum"
        raise _error(
            extern, f"{used} {what} in all groups are above its size of {shape.size}",
            "RESOURCE_EXHAUSTED",
        )  # fmt: skip


def _by_members(shape: p4i.ActionProfile) -> bool:
    return shape.WhichOneof("selector_size_semantics") == "sum_of_members"


def _size(shape: p4i.ActionProfile, weights: Collection[int]) -> int:
    """Return a group's size in the selector's unit."""
    return len(weights) if _by_members(shape) else sum(weights)


# -- shared by all ------------------------------------------------------------------------------


def _profile(p: Pipeline, number: int) -> tuple[Extern, ActionProfile]:
    extern = find(p.catalog.profiles, number, "action profile")
    return extern, p.state.profiles[extern.name]


def _chosen(p: Pipeline, number: int) -> Collection[Extern]:
    profiles = p.catalog.profiles
    return [find(profiles, number, "action profile")] if number else profiles.values()


def _described(p: Pipeline, extern: Extern) -> p4i.ActionProfile:
    """Return the profile's description in P4Info."""
    profiles = p.catalog.p4info.action_profiles
    shape: p4i.ActionProfile = next(found for found in profiles if found.preamble.id == extern.id)
    return shape


def _actions(p: Pipeline, extern: Extern) -> ListedActions:
    """Return the actions that a member can have."""
    if not extern.tables:
        raise _error(extern, "no table uses it, so it cannot have members")
    return p.catalog.member_actions[extern.id]


def _error(extern: Extern, what: str, code: str = "INVALID_ARGUMENT") -> RpcError:
    return RpcError(code, f"action profile {extern.name}: {what}")
