"""Action and TableAction messages, and the targets of the runtime's entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from google.protobuf.unknown_fields import UnknownFieldSet

from gradplane._p4runtime import ACTION_SCOPES, p4i, p4r
from gradplane.switch.p4runtime.bit_strings import to_bytes
from gradplane.switch.p4runtime.catalog import ListedActions, TableAction, TableInfo, find
from gradplane.switch.p4runtime.pipeline import Pipeline
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.entries import ActionData, EntryAction, GroupRef, MemberRef, OneShot

_GROUP_ACTION = 5  # a field of P4Runtime 1.6's ActionProfileActionSet; finsy 0.30 has none


class Weighed(Protocol):
    """An owner of members that may have weights: P4Info's ActionProfile, or a table."""

    @property
    def weights_disallowed(self) -> bool: ...


_FORMS = {
    "action": "an action",
    "action_profile_member_id": "a member of an action profile",
    "action_profile_group_id": "a group of an action selector",
    "action_profile_action_set": "a set of actions (one shot)",
}


def read_action(listed: ListedActions, message: p4r.Action, default: bool = False) -> ActionData:
    """Decode one of the actions with all its parameters; `default`: for the default entry."""
    choice = find(listed.by_id, message.action_id, "action", listed.owner)
    _check_scope(listed, choice, default)
    where = f"{listed.owner}: action {choice.info}"
    return ActionData(choice.index, _read_params(choice, message, where))


def show_action(listed: ListedActions, data: ActionData) -> p4r.Action:
    """Return an action with its parameters; without an id if it is @hidden."""
    choice = next((c for c in listed.by_id.values() if c.index == data.index), None)
    if choice is None:
        return p4r.Action()
    message = p4r.Action(action_id=choice.info.id)
    for param, value in zip(choice.info.params, data.args, strict=True):
        bits = value & ((1 << param.width) - 1)  # int<W> is kept as a negative number
        message.params.add(param_id=param.id, value=param.show(bits))
    return message


def read_target(p: Pipeline, table: TableInfo, message: p4r.TableAction) -> EntryAction:
    """Decode the target of an entry, in one of the forms that the table's implementation allows."""
    form = message.WhichOneof("type")
    allowed = _allowed_forms(table)
    if form not in allowed:
        given = _FORMS.get(form or "", "nothing")
        choices = " or ".join(_FORMS[f] for f in allowed)
        raise invalid(f"table {table.name}: an entry takes {choices}, not {given}")
    match form:
        case "action":
            return read_action(table.actions, message.action)
        case "action_profile_member_id":
            return MemberRef(message.action_profile_member_id)
        case "action_profile_group_id":
            return GroupRef(message.action_profile_group_id)
    return _read_one_shot(p, table, message.action_profile_action_set)


def show_target(p: Pipeline, table: TableInfo, target: EntryAction) -> p4r.TableAction:
    match target:
        case ActionData():
            return p4r.TableAction(action=show_action(table.actions, target))
        case MemberRef(id=number):
            return p4r.TableAction(action_profile_member_id=number)
        case GroupRef(id=number):
            return p4r.TableAction(action_profile_group_id=number)
        case OneShot(actions=actions, mode=mode, semantics=semantics):
            message = p4r.TableAction()
            message.action_profile_action_set.SetInParent()
            shown = message.action_profile_action_set
            shown.action_selection_mode, shown.size_semantics = mode, semantics  # type: ignore[assignment]
            for data, weight, port in actions:
                one = shown.action_profile_actions.add(
                    action=show_action(table.actions, data), weight=shown_weight(table, weight)
                )
                if port:
                    one.watch_port = show_watch_port(p, port)
            return message


def _allowed_forms(table: TableInfo) -> Sequence[str]:
    implementation = table.table.implementation
    if implementation is None:
        return ("action",)
    if implementation.type in ("action_selector", "ActionSelector"):
        return tuple(_FORMS)[1:]
    return ("action_profile_member_id",)


def _check_scope(listed: ListedActions, choice: TableAction, default: bool) -> None:
    wrong = p4i.ActionRef.TABLE_ONLY if default else p4i.ActionRef.DEFAULT_ONLY
    if choice.scope == ACTION_SCOPES["groupaction"]:
        raise RpcError(
            "PERMISSION_DENIED",
            f"{listed.owner}: action {choice.info} may only be a set's group_action",
        )
    if choice.scope == wrong:
        place = "an entry" if default else "the default action"
        raise RpcError(
            "PERMISSION_DENIED", f"{listed.owner}: action {choice.info} may only be {place}"
        )


def _read_params(choice: TableAction, message: p4r.Action, where: str) -> tuple[int, ...]:
    params = {p.id: p for p in choice.info.params}
    values: dict[int, int] = {}
    for given in message.params:
        param = params.get(given.param_id)
        if param is None:
            there = ", ".join(f"{p.name} ({p.id})" for p in params.values()) or "none"
            raise invalid(f"{where}: no parameter has id {given.param_id}; there are: {there}")
        if param.id in values:
            raise invalid(f"{where}: parameter {param.name} is given twice")
        bits = param.read(given.value, f"{where}: parameter {param.name}")
        negative = param.signed and bits >> (param.width - 1)
        values[param.id] = bits - (1 << param.width) if negative else bits
    missing = [p.name for p in params.values() if p.id not in values]
    if missing:
        raise invalid(f"{where}: parameters missing: {', '.join(missing)}")
    return tuple(values[number] for number in params)


def _read_one_shot(p: Pipeline, table: TableInfo, message: p4r.ActionProfileActionSet) -> OneShot:
    _check_set(table, message)
    actions = []
    for one in message.action_profile_actions:
        wrong = f"weight {one.weight} of an action is not above 0"
        weight = read_weight(table, one.weight, f"table {table.name}", wrong)
        watched = read_watch_port(p, one, f"table {table.name}")
        actions.append((read_action(table.actions, one.action), weight, watched))
    return OneShot(tuple(actions), message.action_selection_mode, message.size_semantics)


def _check_set(table: TableInfo, message: p4r.ActionProfileActionSet) -> None:
    """Refuse what a set may ask for of its own (P4Runtime 1.5) and the switch does not do."""
    where, kind = f"table {table.name}: the set's", p4r.ActionProfileActionSet
    mode, semantics = message.action_selection_mode, message.size_semantics
    if mode not in kind.ActionSelectionMode.values():
        raise invalid(f"{where} action_selection_mode {mode} is unknown")
    if semantics not in kind.SizeSemantics.values():
        raise invalid(f"{where} size_semantics {semantics} is unknown")
    if mode == kind.RANDOM:
        text = "action_selection_mode RANDOM is not offered: the selector's hash chooses"
        raise RpcError("UNIMPLEMENTED", f"{where} {text}")
    own = kind.SUM_OF_MEMBERS if table.counts_members else kind.SUM_OF_WEIGHTS
    if semantics not in (kind.DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR, own):
        text = f"size_semantics is not the selector's, {kind.SizeSemantics.Name(own)}"
        raise RpcError("UNIMPLEMENTED", f"{where} {text}")
    if any(unknown.field_number == _GROUP_ACTION for unknown in UnknownFieldSet(message)):
        raise RpcError("UNIMPLEMENTED", f"{where} group_action is not offered")


def read_weight(profile: Weighed, weight: int, where: str, wrong: str) -> int:
    """Return a member's weight, 1 where the switch has all weights.

    Raises RpcError, which says `wrong` of a weight below 1."""
    if profile.weights_disallowed and weight:
        text = f"weight {weight} of a member: @weights_disallowed leaves only 0"
        raise invalid(f"{where}: {text}")
    if not profile.weights_disallowed and weight <= 0:
        raise invalid(f"{where}: {wrong}")
    return weight or 1


def shown_weight(profile: Weighed, weight: int) -> int:
    """Return what `read_weight` was given."""
    return 0 if profile.weights_disallowed else weight


def read_watch_port(
    p: Pipeline, message: p4r.ActionProfileAction | p4r.ActionProfileGroup.Member, where: str
) -> bytes:
    """Return the number of the watched port, big-endian, b"" for none; `watch` is its older form.

    Raises RpcError for a port that does not exist, as far as the ports are known.
    """
    if message.watch <= 0 and not message.watch_port:
        return b""
    number, there = message.watch, p.state.links.ports
    if number <= 0:
        try:
            number = p.read_port(message.watch_port, f"{where}: watch_port")
        except RpcError as error:
            raise invalid(error.message) from error
    if there is not None and number not in (*there, p.switch.cpu_port):
        known = f"there are: {', '.join(map(str, sorted(there)))}"
    elif number >> p.port_bits:
        known = f"a port has {p.port_bits} bits"
    else:
        return to_bytes(number, p.port_bits)
    raise invalid(f"{where}: watch_port {number} is no port of the switch; {known}")


def show_watch_port(p: Pipeline, port: bytes) -> bytes:
    """Return the message's form of a watched port."""
    return p.show_port(int.from_bytes(port, "big")) if port else port
