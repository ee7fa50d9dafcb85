"""One script of operations, of a controller and of hosts, on the embedded switch and BMv2.

A line is `insert ENTITY`, `modify ENTITY`, `delete ENTITY` or `read ENTITY`, where ENTITY is the
text form of p4.v1.Entity; `packet_out MESSAGE`, the text form of p4.v1.PacketOut; or `packet PORT
HEX`. `$NAME` stands for the id of what P4Info calls so, by name or alias. `#` begins a comment.
What differs as docs/coming-from-bmv2.md says is counted by its row (DOCUMENTED); the first other
difference ends the comparison.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from google.protobuf import text_format

from gradplane._p4runtime import U128, p4d, p4i, p4r
from gradplane.differ.bmv2_switch import Bmv2Switch, DiffError
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError

CPU_PORT = 510
_WRITES = {"insert": p4r.Update.INSERT, "modify": p4r.Update.MODIFY, "delete": p4r.Update.DELETE}
_MARKS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\#.*|\$([\w.$]+)""")
_QUIET = 0.15  # seconds without a message after which BMv2 has none to send
Answer = tuple[str, ...]
"""A code, then what was read; or what left, in an order of its own."""


@dataclass(frozen=True)
class Operation:
    """A line of a script. message: an Entity, a PacketOut, or port and packet."""

    kind: str
    message: Any

    def __str__(self) -> str:
        if self.kind == "packet":
            port, packet = self.message
            return f"packet {port} {packet.hex()}"
        return f"{self.kind} {_line(self.message)}"


def _line(message: Any) -> str:
    return str(text_format.MessageToString(message, as_one_line=True))


def parse(text: str, info: p4i.P4Info, file: str) -> list[Operation]:
    """Return a script's operations. Raises DiffError with the line."""
    ids, found = _ids(info), list[Operation]()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            if words := _MARKS.sub(lambda mark: _meant(mark, ids), line).strip():
                found.append(_operation(words))
        except (ValueError, text_format.ParseError) as error:
            raise DiffError(f"{file}:{number}: {error}") from error
    return found


def _meant(mark: re.Match[str], ids: dict[str, int]) -> str:
    """Return what stands for a quoted text (itself), a comment (nothing), or a name (its id)."""
    quoted, name = mark.groups()
    return quoted or (str(_id(name, ids)) if name else "")


def _operation(line: str) -> Operation:
    kind, _, rest = line.partition(" ")
    if kind == "packet":
        port, _, data = rest.strip().partition(" ")
        return Operation(kind, (int(port), bytes.fromhex(data)))
    if kind not in (*_WRITES, "read", "packet_out"):
        known = ", ".join((*_WRITES, "read", "packet_out", "packet"))
        raise ValueError(f'"{kind}" is no operation; expected one of {known}')
    message = p4r.PacketOut() if kind == "packet_out" else p4r.Entity()
    return Operation(kind, text_format.Parse(rest, message))


def _id(name: str, ids: dict[str, int]) -> int:
    if name not in ids:
        raise ValueError(f"P4Info has no {name}; there are: {', '.join(sorted(ids))}")
    return ids[name]


def _ids(info: p4i.P4Info) -> dict[str, int]:
    """Return the ids of everything that has a name and an alias."""
    found = dict[str, int]()
    for field, value in info.ListFields():
        for one in value if field.name not in ("pkg_info", "type_info") else ():
            found |= {name: one.preamble.id for name in (one.preamble.name, one.preamble.alias)}
    return found


# -- two switches ---------------------------------------------------------------------------------


class Ours:
    """The embedded switch, with a controller that is the primary."""

    def __init__(self, device: Device, units: Units) -> None:
        self._device, self._service, self._units = device, P4RuntimeService(device), units
        message = p4r.StreamMessageRequest()
        message.arbitration.device_id, message.arbitration.election_id.low = device.id, 1
        self._service.stream_message("c", message)
        self._messages = list[Any]()
        device.target.state.listener = self._messages.append

    def run(self, operation: Operation) -> Answer:
        kind, message = operation.kind, operation.message
        if kind == "packet":
            return self._left(self._device.process(*message))
        if kind == "packet_out":
            request = p4r.StreamMessageRequest(packet=message)
            return self._left(self._service.stream_message("c", request)[1])
        try:
            return ("OK", *(self._read(message) if kind == "read" else self._write(operation)))
        except BatchError as error:
            return (next((e.code for e in error.errors if e is not None), error.code),)
        except RpcError as error:
            return (error.code,)

    def batch(self) -> AbstractContextManager[object]:
        """Provide a batch of writes, which are taken back if an exception leaves it."""
        assert self._device.pipeline is not None
        return self._device.pipeline.store.batch()

    def _write(self, operation: Operation) -> Answer:
        update = p4r.Update(type=_WRITES[operation.kind], entity=operation.message)
        request = p4r.WriteRequest(
            device_id=self._device.id, election_id=U128.encode(1), updates=[update]
        )
        self._service.write(request)
        return ()

    def _read(self, query: Any) -> Iterable[str]:
        request = p4r.ReadRequest(device_id=self._device.id, entities=[query])
        found = (e for answer in self._service.read(request) for e in answer.entities)
        return _shown(found, self._units)

    def _left(self, outputs: Iterable[tuple[int, bytes]]) -> Answer:
        messages = [
            message for one in self._messages for _, message in self._service.switch_message(one, 0)
        ]
        self._messages.clear()
        return _departed(outputs, messages)


class Theirs:
    """BMv2; its controller is the one of Bmv2Switch."""

    def __init__(self, switch: Bmv2Switch, units: Units) -> None:
        self._switch, self._units = switch, units

    def run(self, operation: Operation, expected: Answer) -> Answer:
        """Return the answer. expected: the other switch's, for which it waits."""
        kind, message = operation.kind, operation.message
        if kind == "read":
            code, entities = self._switch.read(message)
            return (code, *_shown(entities, self._units))
        if kind in _WRITES:
            return (self._switch.write(_WRITES[kind], message)[0],)
        leaving = sum(line.startswith("port ") for line in expected)
        if kind == "packet":
            outputs = self._switch.process(*message)
        else:
            request = p4r.StreamMessageRequest(packet=message)
            outputs = self._switch.send_packet(request, leaving, _QUIET)
        messages = min(len(expected) - leaving, 1)  # of several digests only one comes
        return _departed(outputs, self._switch.received(_QUIET, messages))


def _departed(outputs: Iterable[tuple[int, bytes]], messages: Iterable[Any]) -> Answer:
    lines = [f"port {port}: {packet.hex()}" for port, packet in outputs]
    for message in messages:
        if message.HasField("packet"):
            lines.append(f"packet_in {_line(message.packet)}")
        elif message.HasField("digest"):
            number = message.digest.digest_id
            lines += [f"digest {number}: {' '.join(_values(d))}" for d in message.digest.data]
    return tuple(sorted(lines))


def _values(data: p4d.P4Data) -> Iterator[str]:
    """Yield a digest's values: for BMv2 all are bits in a struct, whatever the source says."""
    kind = data.WhichOneof("data")
    if kind in ("struct", "tuple"):
        for member in getattr(data, kind).members:
            yield from _values(member)
    elif kind == "header":
        yield from (value.hex() for value in data.header.bitstrings)
    elif kind == "bool":
        yield f"{int(data.bool):02x}"
    else:
        yield data.bitstring.hex() or data.enum_value.hex() or _line(data)


Units = dict[int, int]
"""The unit of each counter, by its id, or its table's where it is a direct one."""


def units(info: p4i.P4Info) -> Units:
    """Return the units of a program's counters."""
    found = {c.preamble.id: c.spec.unit for c in info.counters}
    return found | {c.direct_table_id: c.spec.unit for c in info.direct_counters}


def _shown(entities: Iterable[Any], units: Units) -> list[str]:
    """Return entities as lines, in an order of their own, without what docs say differs."""
    return sorted(_line(_plain(entity, units)) for entity in entities)


def _plain(given: Any, units: Units) -> Any:
    """Return an entity without is_const and what its counter does not count, with its replicas and
    members in an order of their own."""
    entity = p4r.Entity()
    entity.CopyFrom(given)
    if given.HasField("table_entry"):
        entity.table_entry.is_const = False
        _sort(entity.table_entry.match)
    elif given.packet_replication_engine_entry.HasField("multicast_group_entry"):
        _sort(entity.packet_replication_engine_entry.multicast_group_entry.replicas)
    elif given.HasField("action_profile_group"):
        _sort(entity.action_profile_group.members)
    for counter, owner in (
        (entity.counter_entry, given.counter_entry.counter_id),
        (entity.direct_counter_entry, given.direct_counter_entry.table_entry.table_id),
    ):
        if units.get(owner) == p4i.CounterSpec.PACKETS:
            counter.data.ClearField("byte_count")
        elif units.get(owner) == p4i.CounterSpec.BYTES:
            counter.data.ClearField("packet_count")
    return entity


def _sort(messages: Any) -> None:
    messages.sort(key=lambda message: message.SerializeToString(deterministic=True))


# -- comparing ------------------------------------------------------------------------------------

_WIDE = "a value that is too wide, or of no bytes"
_REPLICATION = "an instance of 70000, a replica's port of 600"
_UNSUPPORTED = "registers, value sets; a one-shot without actions"
_GIVEN = "entries that the source gives to a table without `const`"
_GIVEN_CODES = {
    ("OK", "UNKNOWN"),
    ("OK", "NOT_FOUND"),
    ("OK", "INVALID_ARGUMENT"),  # of a direct counter or meter
    ("ALREADY_EXISTS", "UNKNOWN"),
}
_TRANSLATED = "a key of a type with `@p4runtime_translation`"
_TRANSLATED_CODES = {("OK", "UNKNOWN"), ("OK", "INVALID_ARGUMENT")}


def _any(_: Operation) -> bool:
    return True


def _replicates(operation: Operation) -> bool:
    return bool(operation.message.HasField("packet_replication_engine_entry"))


def _reads_replication(operation: Operation) -> bool:
    return operation.kind == "read" and _replicates(operation)


def _has_actions(operation: Operation) -> bool:
    """Return whether an entry has a one-shot's actions."""
    return bool(operation.message.table_entry.action.HasField("action_profile_action_set"))


def _keeps_its_action(operation: Operation) -> bool:
    entry = operation.message.table_entry
    return operation.kind == "modify" and bool(entry.match) and not entry.HasField("action")


def _cuts(operation: Operation) -> bool:
    part = operation.message.packet_replication_engine_entry
    return bool(part.clone_session_entry.packet_length_bytes)


def _has_a_range(operation: Operation) -> bool:
    return any(m.HasField("range") for m in operation.message.table_entry.match)


def _crosses(operation: Operation) -> bool:
    return _crosses_zero(operation.message)


def _reads_profiles(operation: Operation) -> bool:
    return operation.kind == "read" and _reads_all_profiles(operation.message)


DOCUMENTED = [  # our code, BMv2's, of which operations, and the row of docs/coming-from-bmv2.md
    ("OUT_OF_RANGE", "OK", _replicates, _REPLICATION),
    ("INVALID_ARGUMENT", "OK", _replicates, _REPLICATION),
    ("OUT_OF_RANGE", "INVALID_ARGUMENT", _any, _WIDE),
    ("OUT_OF_RANGE", "OK", _any, _WIDE),
    ("OUT_OF_RANGE", "UNKNOWN", _any, "a counter's or meter's index beyond its size"),
    ("RESOURCE_EXHAUSTED", "UNKNOWN", _any, "an entry for a full table"),
    ("RESOURCE_EXHAUSTED", "OK", _has_actions, "one-shots beyond the profile's size"),
    ("PERMISSION_DENIED", "UNKNOWN", _any, "a change of const entries"),
    ("PERMISSION_DENIED", "NOT_FOUND", _any, "a change of const entries"),
    ("NOT_FOUND", "INVALID_ARGUMENT", _any, "a member, group or entry that does not exist"),
    ("FAILED_PRECONDITION", "UNKNOWN", _any, "the deletion of a member or group that is in use"),
    ("OK", "UNIMPLEMENTED", _any, _UNSUPPORTED),
    ("OK", "INTERNAL", _any, _GIVEN),
    ("OK", "NOT_FOUND", _reads_replication, "a read of a multicast group or clone session"),
    ("OK", "OUT_OF_RANGE", _replicates, "multicast group ids above 0x7FFF"),
    ("OK", "UNKNOWN", _cuts, "`packet_length_bytes` of a clone session"),
    ("OK", "INVALID_ARGUMENT", _replicates, "port 0 of a replica"),
    ("OK", "INVALID_ARGUMENT", _reads_profiles, "a read of the members or groups of all profiles"),
    ("OK", "INVALID_ARGUMENT", _keeps_its_action, "MODIFY without an action"),
    ("OK", "INVALID_ARGUMENT", _crosses, "a range of a signed key that crosses 0"),
    ("INVALID_ARGUMENT", "UNKNOWN", _has_actions, "a one-shot for an action profile"),
    ("INVALID_ARGUMENT", "UNKNOWN", _any, "a negative priority"),
    ("INVALID_ARGUMENT", "OK", _has_a_range, "a range of all values"),
    ("INVALID_ARGUMENT", "OK", _any, "member 0 of a profile"),
]
_DIGESTS = "several digests of one packet"
_SIGNED = "a range of a signed key that crosses 0"
_GROUP = "a group that is refused"
_WEIGHTS = "a read of a member that has a weight in a group"
_DEFAULT = "the default entry of a table with an action profile"


@dataclass(frozen=True)
class Special:
    """The ids of what BMv2 writes nothing to: tables with entries in the source, tables with
    translated keys, and actions with parameters that are translated to strings."""

    given: frozenset[int] = frozenset()
    translated: frozenset[int] = frozenset()
    with_strings: frozenset[int] = frozenset()

    def row(self, entity: Any, codes: tuple[str, str]) -> str:
        """Return the row of the document that explains two codes, "" if none does."""
        if codes in _GIVEN_CODES and self.given & set(_owners(entity)):
            return _GIVEN
        parts = self.translated & set(_owners(entity)) or self.with_strings & set(_actions(entity))
        return _TRANSLATED if codes in _TRANSLATED_CODES and parts else ""


def special(info: p4i.P4Info) -> Special:
    """Return what BMv2 does not write of a program."""
    types = {name: t.translated_type for name, t in info.type_info.new_types.items()}
    translated = {name for name, t in types.items() if t.uri}
    strings = {name for name, t in types.items() if t.HasField("sdn_string")}

    def typed(parts: Iterable[Any], names: set[str]) -> bool:
        return any(part.type_name.name in names for part in parts)

    tables = [t for t in info.tables if t.has_initial_entries and not t.is_const_table]
    return Special(
        frozenset(t.preamble.id for t in tables),
        frozenset(t.preamble.id for t in info.tables if typed(t.match_fields, translated)),
        frozenset(a.preamble.id for a in info.actions if typed(a.params, strings)),
    )


def _owners(entity: Any) -> Iterator[int]:
    """Yield the id of the table whose entry is meant, 0 for none."""
    yield entity.table_entry.table_id
    yield entity.direct_counter_entry.table_entry.table_id
    yield entity.direct_meter_entry.table_entry.table_id


def _actions(entity: Any) -> Iterator[int]:
    """Yield the ids of the actions that an entry or a member has, 0 for none."""
    action = entity.table_entry.action
    yield action.action.action_id
    yield entity.action_profile_member.action.action_id
    for one in action.action_profile_action_set.action_profile_actions:
        yield one.action.action_id


@dataclass(frozen=True)
class Comparison:
    """The outcome of a script. documented: how often each row of the document was met."""

    operations: int
    documented: Counter[str]
    difference: str = ""

    def text(self) -> str:
        """Return the result in words."""
        lines = [self.difference] if self.difference else []
        how = "equal" if not self.difference else "different, after"
        lines.append(f"{how}: {self.operations} operations")
        lines += [f"{n} differ as documented: {row}" for row, n in self.documented.most_common()]
        return "\n".join(lines)


class _Refused(Exception):
    """BMv2 has refused a write."""


def compare(
    script: Sequence[Operation], ours: Ours, theirs: Theirs, known: Special = Special()
) -> Comparison:
    """Run a script on both switches, up to the first difference that is not documented."""
    documented = Counter[str]()
    for number, operation in enumerate(script):
        try:
            here, there = _both(operation, ours, theirs)
        except _Failure as error:
            return Comparison(number, documented, _first(operation, error.here, str(error)))
        if here == there and not _leaves_a_group(operation, there):
            continue
        row = _row(operation, here, there, known)
        if not row:
            text = "\n".join(_listed("bmv2", there))
            return Comparison(number, documented, _first(operation, here, text))
        documented[row] += 1
        _delete_what_bmv2_has(operation, here, there, ours, theirs)
    return Comparison(len(script), documented)


class _Failure(DiffError):
    """BMv2 gives no answer to an operation; here: ours."""

    def __init__(self, error: DiffError, here: Answer) -> None:
        super().__init__(str(error))
        self.here = here


def _both(operation: Operation, ours: Ours, theirs: Theirs) -> tuple[Answer, Answer]:
    """Return both answers; a write that BMv2 refuses is taken back here. Raises _Failure."""
    writes = operation.kind in _WRITES
    with suppress(_Refused), ours.batch() if writes else nullcontext():
        here = ours.run(operation)
        try:
            there = theirs.run(operation, here)
        except DiffError as error:
            raise _Failure(error, here) from error
        if writes and there[:1] != ("OK",):
            raise _Refused
    return here, there


def _first(operation: Operation, here: Answer, there: str) -> str:
    return "\n".join([f"first difference: {operation}", *_listed("embedded", here), there])


def _delete_what_bmv2_has(
    operation: Operation, here: Answer, there: Answer, ours: Ours, theirs: Theirs
) -> None:
    """Make the switches equal again after a write that BMv2 has done, or half done, alone."""
    undo = Operation("delete", operation.message)
    if _leaves_a_group(operation, there):
        theirs.run(undo, ())
    elif there[:1] == ("OK",) and here[0] != "OK":
        changed = operation.kind == "modify" and operation.message.table_entry.match
        if changed:
            ours.run(undo)
        if changed or operation.kind == "insert":
            theirs.run(undo, ())


def _listed(name: str, answer: Answer) -> Iterator[str]:
    yield f"{name}:"
    yield from (f"  {line}" for line in answer or ("nothing",))


def _row(operation: Operation, here: Answer, there: Answer, known: Special) -> str:
    """Return the row of the document that explains two answers, "" if none does."""
    if _leaves_a_group(operation, there):
        return _GROUP
    if operation.kind in ("packet", "packet_out"):
        missing = Counter(here) - Counter(there)
        more = Counter(there) - Counter(here)
        return _DIGESTS if not more and all(m.startswith("digest ") for m in missing) else ""
    if here[0] == there[0]:
        return _row_of_read(operation.message, here, there)
    codes = here[0], there[0]
    rows = (row for *pair, fits, row in DOCUMENTED if (*pair,) == codes and fits(operation))
    return known.row(operation.message, codes) or next(rows, "")


def _leaves_a_group(operation: Operation, there: Answer) -> bool:
    """Return whether BMv2 has a group that it has refused."""
    group = operation.kind == "insert" and operation.message.HasField("action_profile_group")
    return group and there[0] not in ("OK", "ALREADY_EXISTS")


def _row_of_read(query: Any, here: Answer, there: Answer) -> str:
    """Return the row that explains other entities in a read."""
    if query.table_entry.is_default_action and "action {" not in "".join(there):
        return _DEFAULT
    if query.HasField("action_profile_member") and set(here) == set(there):
        return _WEIGHTS
    entities = (text_format.Parse(line, p4r.Entity()) for line in here[1:])
    return _SIGNED if any(map(_crosses_zero, entities)) else ""


def _crosses_zero(entity: Any) -> bool:
    """Return whether an entry has a range whose low end is above its high one without signs."""
    ranges = (m.range for m in entity.table_entry.match if m.HasField("range"))
    return any(int.from_bytes(r.low, "big") > int.from_bytes(r.high, "big") for r in ranges)


def _reads_all_profiles(entity: Any) -> bool:
    """Return whether members or groups of every profile are asked for."""
    asked = entity.HasField("action_profile_member") or entity.HasField("action_profile_group")
    part = entity.action_profile_member, entity.action_profile_group
    return bool(asked) and not any(one.action_profile_id for one in part)
