"""The tables of action profiles: members, and the groups of a selector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from finsy.proto import p4i

from gradplane.switch.bfruntime.identifiers import FieldId, TableId, table_id
from gradplane.switch.bfruntime.schema import ActionSpec, DataField, KeyField, TableSchema
from gradplane.switch.bfruntime.schema_fields import U32, U64, annotations_of, selector_fields
from gradplane.switch.ir import nodes as ir


def profile_tables(
    profile: p4i.ActionProfile,
    instance: ir.ExternInstance,
    actions: Iterable[ActionSpec],
    table_name: Callable[[str], str],
) -> Iterator[TableSchema]:
    """Yield the table of a profile's members, and those of its groups if it is a selector.

    actions: those of the tables that use it. table_name: gives a table's name here."""
    specs = {a.id: a for a in actions if a.scope != "DefaultOnly"}
    number = table_id(TableId.ACTION_PROFILE, profile.preamble.id)
    members, groups = profile.preamble.name, ""
    if profile.with_selector:
        members, groups = profile_names(instance)
    about = annotations_of(profile.preamble)
    yield TableSchema(
        table_name(members), number, "Action", profile.size,
        (KeyField(FieldId.ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", "Exact", U32, True),), (),
        tuple(specs.values()), unlisted=("EntryScope",), annotations=about,
    )  # fmt: skip
    if not groups:
        return
    selector = table_id(TableId.ACTION_SELECTOR, profile.preamble.id)
    yield TableSchema(
        table_name(groups), selector, "Selector", _groups(instance, profile.size),
        (KeyField(FieldId.SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", "Exact", U32, True),),
        selector_fields(profile.max_group_size), depends_on=(number,),
        unlisted=("EntryScope",), annotations=about,
    )  # fmt: skip
    yield TableSchema(
        table_name(groups) + "_get_member",
        table_id(TableId.SELECTOR_GET_MEMBER, profile.preamble.id), "SelectorGetMember", 1,
        (KeyField(FieldId.SELECTOR_GROUP, "$SELECTOR_GROUP_ID", "Exact", U64, True),
         KeyField(FieldId.HASH_VALUE, "hash_value", "Exact", U64, True)),
        (DataField(FieldId.SELECTOR_MEMBER_ID, "$ACTION_MEMBER_ID", U64),),
        depends_on=(selector,), annotations=about,
    )  # fmt: skip


def profile_names(selector: ir.ExternInstance) -> tuple[str, str]:
    """Return the names of a selector's members and groups.

    Members are those of the ActionProfile that it is made with; without one, they have the
    selector's name, and the groups' ends in _sel.
    """
    for argument in selector.args:
        if isinstance(argument, ir.ExternInstance) and argument.kind == "action_profile":
            return argument.name, selector.name
    return selector.name, f"{selector.name}_sel"


def _groups(selector: ir.ExternInstance, members: int) -> int:
    """Return how many groups a selector has: its constructor's last argument or its size."""
    first, *rest = selector.args
    if not isinstance(first, ir.ExternInstance) or not isinstance(rest[-1], int):
        return members
    return rest[-1]
