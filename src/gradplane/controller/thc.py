"""The control-plane names of `p4/thc.p4`, `shared.p4` and their versions for Tofino, and a job as
entries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import finsy
from finsy.proto import p4i

from gradplane.controller.connection import parse_p4info, schema_of
from gradplane.controller.controller_errors import ControllerError
from gradplane.controller.plan import Capacity, Claim, JobPlan, Level

if TYPE_CHECKING:
    from gradplane.controller.connection import Entity

ROUTES = "ThcIngress.routes"
MEMBERS = "ThcIngress.members"
RECEIVERS = "ThcEgress.receivers"
PARENTS = "ThcIngress.parents"
UPLINKS = "ThcIngress.uplinks"
SERVERS = "ThcIngress.servers"
ANSWERS = "ThcIngress.answers"
"""Where jobs share slots: the ways to a job's server, and from there to its workers."""
EVENTS = "ThcIngress.events"
SHARED_EVENTS = "ThcIngress.shared_events"
COMPLETIONS = "ThcIngress.completions"
"""thc_tna.p4 counts completed sums and norms here: a packet counts once in a counter."""
EPOCHS_AT = {
    "ThcIngress.slot_state": 24,
    "ThcIngress.norm_epoch": 0,
    "ThcIngress.epochs": 0,
    "ThcIngress.cell_tag": 56,
}
"""The registers with epochs of slots, and the bit at which the epoch begins."""
_ADMIT = "ThcIngress.admit"
_ADMIT_IN_TREE = "ThcIngress.admit_in_tree"
_ADMIT_SHARED = "ThcIngress.admit_shared"
_PASS_DOWN = "ThcIngress.pass_down"
_ABOVE = 255  # the server's number among the receivers, or the first parent's; others' are below
_SLOTS = ("ThcIngress.norm_max", "ThcIngress.slot_others")
"""Registers with a cell for each slot: where jobs own slots, and where they share them."""
_LOOKUP = re.compile(r"(ThcIngress\.block\d+\.)lookup(\d)")
_KEYS = ("index", "pair")
"""The key fields that a lookup table can have: one code, or a pair of codes."""
_EVICTIONS = finsy.P4MulticastGroupEntry(0xFFFF, replicas=[(6, 1)])
"""The multicast group and port of a Tofino 2 by which a packet's copy collects a slot's content."""
UDP_PORT = 18256
"""The port of aggregation packets; in p4/include/headers.p4, too."""

EVENT_NAMES = (
    "accepted",
    "duplicate",
    "late",
    "completed sums",
    "completed norms",
    "straggler notice",
    "norm mismatch",
    "bad norm",
    "bad slot",
    "bad length",
    "spoofed pass",
    "status request",
    "unknown type",
    "round ahead",
    "other epoch",
    "passed down",
)
"""The events of counter `events`: cell job * 16 + position."""
SHARED_EVENT_NAMES = (
    "accepted",
    "duplicate",
    "slot taken",
    "completed sums",
    "evicted another",
    "sent again",
    "sent again, slot freed",
    "lost between passes",
    "bad slot",
    "bad length",
    "spoofed pass",
    "status request",
    "unknown type",
    "norm",
    "other epoch",
    "passed down",
)
"""The names of counter `shared_events`, likewise."""
EVENTS_PER_JOB = 16
_FIRST_LOOKUP = {"ThcIngress.block0.lookup0": "ThcIngress.block0.set0"}  # of a program without any


def capacity(schema: finsy.P4Schema) -> Capacity:
    """Return the loaded program's limits; raise ControllerError where it is not thc.p4."""
    shared = shares(schema)
    try:
        slots = schema.registers[_SLOTS[shared]].size
        admit = _ADMIT_SHARED if shared else _ADMIT
        bitmap = schema.actions[admit].params["worker_bit"].bitwidth
        tables = lookup_tables(schema)
        if (role := _role(schema)) == "node":
            return Capacity(slots, None, bitmap, code_bits=None, role=role)
        table, action = next(iter(tables.items()))
        lookup, key = schema.tables[table], _key(schema)
        codes = 1 + _KEYS.index(key)
        sum_bits = lookup.actions[action].params["value"].bitwidth // codes
        code_bits = lookup.match_fields[key].bitwidth // codes
    except (ValueError, StopIteration) as error:
        raise ControllerError(
            f"the program on the switch is not p4/thc.p4, which this controller needs: {error}"
        ) from error
    return Capacity(slots, sum_bits, bitmap, has_parents(schema), code_bits, shared, role)


def capacity_of(p4info: p4i.P4Info | bytes) -> Capacity:
    """Return the limits from P4Info, a message or protobuf text, before there is a switch."""
    return capacity(schema_of(parse_p4info(p4info)))


def lookup_tables(schema: finsy.P4Schema) -> dict[str, str]:
    """Return each lookup table's name, and the name of the action that sets its value."""
    matches = (_LOOKUP.fullmatch(table.name) for table in schema.tables)
    return {match[0]: f"{match[1]}set{match[2]}" for match in matches if match}


def has_parents(schema: finsy.P4Schema) -> bool:
    """Return True if the program can pass partials to a parent."""
    return _has(schema, PARENTS)


def _role(schema: finsy.P4Schema) -> str:
    """Return the part in a tree that the program is compiled for, "" for either."""
    if not has_parents(schema) or _taken(schema, _ADMIT_IN_TREE, {"adds": 0}):
        return ""
    return "leaf" if lookup_tables(schema) else "node"


def shares(schema: finsy.P4Schema) -> bool:
    """Return True if the program's jobs share its slots, and have servers."""
    return _has(schema, SERVERS)


def aggregates(schema: finsy.P4Schema) -> bool:
    """Return True if the loaded program is one of these, by its names."""
    return _has(schema, MEMBERS)


def _has(schema: finsy.P4Schema, name: str) -> bool:
    return any(table.name == name for table in schema.tables)


def local(ip: str, schema: finsy.P4Schema) -> Iterator[Entity]:
    """Yield what sends packets for `ip` to the switch itself, and all that no job has alone."""
    match = finsy.Match({"hdr.ipv4.dst_addr": f"{ip}/32"})
    yield finsy.P4TableEntry(ROUTES, match=match, action=finsy.Action("ThcIngress.aggregate"))
    if shares(schema) and schema.arch == "tna":
        yield _EVICTIONS


def job_entries(
    plan: JobPlan, schema: finsy.P4Schema, local_ip: str, local_mac: str
) -> Iterator[finsy.P4TableEntry | finsy.P4MulticastGroupEntry]:
    """Yield a job's entries, members last: packets are admitted when all is installed."""
    tables, key = {} if plan.adds else lookup_tables(schema) or _FIRST_LOOKUP, _key(schema)
    values = plan.table if key == "index" else _pairs(plan)
    for table, action in tables.items():
        for index, value in enumerate(values):
            match = finsy.Match({"job": plan.number, key: index})
            yield finsy.P4TableEntry(table, match=match, action=finsy.Action(action, value=value))
    yield from _receivers(plan, local_ip, local_mac)
    yield group(plan)
    yield from _parents(plan, schema)
    yield from _uplinks(plan, schema)
    yield from _of_server(plan)
    yield from _members(plan, schema)


def group(plan: JobPlan) -> finsy.P4MulticastGroupEntry:
    """Return a group with a replica for each worker, through its port.

    The instance is worker + 1.
    """
    replicas = [(member.port, member.worker + 1) for member in plan.workers]
    return finsy.P4MulticastGroupEntry(plan.group, replicas=replicas)


def _key(schema: finsy.P4Schema) -> str:
    """Return what the lookup tables' entries are found by, one of _KEYS."""
    first = next(iter(lookup_tables(schema)), None)
    fields = schema.tables[first].match_fields if first is not None else ()
    return _KEYS[any(field.alias == _KEYS[1] for field in fields)]


def _pairs(plan: JobPlan) -> list[int]:
    """Return the values of all pairs of codes, the first code's in the high bits; one that the
    table does not have counts 0."""
    values = [*plan.table, *[0] * ((1 << plan.code_bits) - len(plan.table))]
    return [first << plan.sum_bits | second for first in values for second in values]


def _receivers(plan: JobPlan, local_ip: str, local_mac: str) -> Iterator[finsy.P4TableEntry]:
    receivers = [(each.worker, each.mac, each.ip, each.udp_port) for each in plan.workers]
    for number, above in enumerate(plan.level.above if plan.level is not None else ()):
        receivers.append((_ABOVE - number, above.mac, above.ip, UDP_PORT))
    if (server := plan.server) is not None:
        receivers.append((_ABOVE, server.mac, server.ip, server.udp_port))
    for number, mac, ip, port in receivers:
        action = finsy.Action(
            "ThcEgress.deliver", src_mac=local_mac, mac=mac, src_ip=local_ip, ip=ip, port=port
        )
        match = finsy.Match(job=plan.number, worker=number)
        yield finsy.P4TableEntry(RECEIVERS, match=match, action=action)


def _parents(plan: JobPlan, schema: finsy.P4Schema) -> Iterator[finsy.P4TableEntry]:
    """Yield what packets from a parent are passed on by: to all children, or to one."""
    above = plan.level.above if plan.level is not None else ()
    for parent, (hop, port) in product(above, _hops(plan)):
        place = {"adds": int(plan.adds), "quorum": plan.quorum, "receiver": max(hop - 1, 0)}
        action = finsy.Action(
            _PASS_DOWN,
            **_taken(schema, _PASS_DOWN, place),
            slot_base=plan.slot_base,
            slots=plan.slots,
            group=plan.group,
            port=port,
            epoch=plan.epoch,
        )
        match = finsy.Match(job=plan.number, port=parent.port, hop=hop)
        yield finsy.P4TableEntry(PARENTS, match=match, action=action)


def _uplinks(plan: JobPlan, schema: finsy.P4Schema) -> Iterator[finsy.P4TableEntry]:
    """Yield the parent of each slot, where a switch has several or its members do not name one."""
    above = plan.level.above if plan.level is not None else ()
    if plan.level is None or (len(above) < 2 and _taken(schema, _ADMIT_IN_TREE, {"parent": 0})):
        return
    for slot in range(plan.slots):
        if (parent := plan.level.parent_of(slot)) is not None:
            action = finsy.Action(
                "ThcIngress.go_up",
                parent=parent.port,
                number=parent.number,
                receiver=_ABOVE - above.index(parent),
            )
            match = finsy.Match(job=plan.number, slot=slot)
            yield finsy.P4TableEntry(UPLINKS, match=match, action=action)


def _hops(plan: JobPlan) -> list[tuple[int, int]]:
    """Return what answers from above have in the place of a child's number, and its port: 0 for
    all, who are a group, or the number plus 1."""
    return [(0, 0), *((each.worker + 1, each.port) for each in plan.workers)]


def _of_server(plan: JobPlan) -> Iterator[finsy.P4TableEntry]:
    """Yield what packets go on to the job's server by, and its answers to workers."""
    if (server := plan.server) is None:
        return
    action = finsy.Action("ThcIngress.to_server", port=server.port)
    yield finsy.P4TableEntry(SERVERS, match=finsy.Match(job=plan.number), action=action)
    for hop, port in _hops(plan):
        action = finsy.Action("ThcIngress.pass_answer", group=plan.group, port=port)
        match = finsy.Match(job=plan.number, port=server.port, hop=hop)
        yield finsy.P4TableEntry(ANSWERS, match=match, action=action)


def _members(plan: JobPlan, schema: finsy.P4Schema) -> Iterator[finsy.P4TableEntry]:
    for member in plan.workers:
        if plan.server is not None:
            action = finsy.Action(
                _ADMIT_SHARED,
                everyone=(1 << len(plan.workers)) - 1,
                worker_bit=1 << member.worker,
                slots=plan.slots,
                epoch=plan.epoch,
                patience=plan.server.patience,
                group=plan.group,
            )
        else:
            action = finsy.Action(
                _ADMIT if plan.level is None else _ADMIT_IN_TREE,
                **_taken(schema, _ADMIT_IN_TREE, _place(plan.level)),
                workers=len(plan.workers),
                quorum=plan.quorum,
                slot_base=plan.slot_base,
                slots=plan.slots,
                group=plan.group,
                worker_bit=1 << member.worker,
                epoch=plan.epoch,
                next_only=int(plan.next_only),
            )
        match = finsy.Match(job=plan.number, worker=member.worker, port=member.port)
        yield finsy.P4TableEntry(MEMBERS, match=match, action=action)


def _place(level: Level | None) -> dict[str, int]:
    """Return the parameters that say where in the job's tree a switch is."""
    if level is None:
        return {}
    own = next(((1, up.port, up.number) for up in level.above), (0, 0, 0))
    names = "adds", "asks", "count", "has_parent", "parent", "number"
    values = int(level.adds), int(level.asks), level.summed, *own
    return dict(zip(names, values, strict=True))


def _taken(schema: finsy.P4Schema, action: str, place: dict[str, int]) -> dict[str, int]:
    """Return what the program's action takes of a switch's place: a chip's has one role in a tree,
    and each slot's parent in a table of its own."""
    for each in schema.actions:
        if each.name == action:
            names = {param.name for param in each.params}
            return {name: value for name, value in place.items() if name in names}
    return place


def gates(schema: finsy.P4Schema) -> list[str]:
    """Return the tables whose entries let a job's packets in; they have its epoch."""
    return [MEMBERS, PARENTS] if has_parents(schema) else [MEMBERS]


def shut(member: finsy.P4TableEntry) -> finsy.P4TableEntry:
    """Return this entry of `members` so that it lets nothing in, and a packet between two passes
    through the rest of them: cut there, it would be in some of its sums and not in others."""
    assert isinstance(member.action, finsy.Action)
    args = {**member.action.args, "slots": 0}
    return finsy.P4TableEntry(
        MEMBERS, match=member.match, action=finsy.Action(member.action.name, **args)
    )


def job_tables(schema: finsy.P4Schema) -> list[str]:
    """Return the tables with entries of jobs, gates first: a removed job is shut out at once."""
    ways = [name for name in (UPLINKS, SERVERS, ANSWERS) if _has(schema, name)]
    return [*gates(schema), *ways, RECEIVERS, *lookup_tables(schema)]


def claim(member: finsy.P4TableEntry) -> Claim:
    """Return the resources of the job of this entry of `members`."""
    assert member.match is not None and isinstance(member.action, finsy.Action)
    args = member.action.args
    slots = range(0)
    if "slot_base" in args:
        slots = range(args["slot_base"], args["slot_base"] + args["slots"])
    return Claim(member.match["job"], slots, args["group"])


def epoch(member: finsy.P4TableEntry) -> int:
    """Return the epoch of the job of this entry of `members`."""
    assert isinstance(member.action, finsy.Action)
    return int(member.action.args["epoch"])


def held_epoch(register: str, data: Any) -> int:
    """Return the epoch in a cell of one of EPOCHS_AT; on a Tofino, a tag has two parts."""
    if not isinstance(data, int):
        data = data["chunk"] << 32 | data["round"]
    return int(data) >> EPOCHS_AT[register] & 0xFF


def events(counters: Mapping[str, Mapping[int, Mapping[str, int]]]) -> dict[int, dict[str, int]]:
    """Return each job's events by name, from `Controller.counters()`, without those that are 0."""
    found: dict[int, dict[str, int]] = {}
    names = {EVENTS: EVENT_NAMES, COMPLETIONS: EVENT_NAMES, SHARED_EVENTS: SHARED_EVENT_NAMES}
    for counter, known in names.items():
        for index, data in counters.get(counter, {}).items():
            job, event = divmod(index, EVENTS_PER_JOB)
            found.setdefault(job, {})[known[event]] = data["packets"]
    return found


def key(entry: finsy.P4TableEntry) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Return the identity of an entry, whatever its action."""
    return entry.table_id, tuple(sorted((entry.match or {}).items()))
