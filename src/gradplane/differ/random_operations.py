"""Random scripts of operations: entities of every kind are written, changed, read and deleted, now
and then wrongly, between packets and packet-outs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from gradplane._p4runtime import p4i, p4r
from gradplane.differ.operations import Operation

_AGAIN, _ODD = 0.15, 0.05  # of inserts that are repeated; of entities with a value that is too wide
_RATE = 10**6  # of meters, in which the packets of a script are green


class RandomOperations:
    """Scripts for a program, the same for the same seed.

    entities: what can be inserted, in an order in which it can. packets: ports and packets.
    """

    def __init__(
        self,
        info: p4i.P4Info,
        entities: Sequence[Any],
        packets: Iterator[tuple[int, bytes]],
        seed: int,
    ) -> None:
        self._info, self._packets, self._rng = info, packets, random.Random(seed)
        selectors = [p.preamble.id for p in info.action_profiles if p.with_selector]
        one_shots = {number for number in selectors if self._rng.random() < 0.5}
        self._entities = list(_with_one_shots(info, entities, one_shots))
        self._headers = {h.preamble.name: h for h in info.controller_packet_metadata}

    def script(self, count: int) -> Iterator[Operation]:
        """Yield the inserts of all entities, then so many operations."""
        for digest in self._info.digests:
            entry = p4r.DigestEntry(digest_id=digest.preamble.id)
            entry.config.max_list_size = 1
            yield Operation("insert", p4r.Entity(digest_entry=entry))
        for entity in self._entities:
            yield Operation("insert", entity)
            if self._rng.random() < _AGAIN:
                yield Operation("insert", entity)
        for _ in range(count):
            yield from self._some()

    def _some(self) -> Iterator[Operation]:
        kinds = [self._packet, self._packet, self._write, self._read, self._cell, self._direct]
        if "packet_out" in self._headers:
            kinds.append(self._packet_out)
        yield from self._rng.choice(kinds)()

    def _packet(self) -> Iterator[Operation]:
        for packet in self._packets:
            yield Operation("packet", packet)
            return

    def _packet_out(self) -> Iterator[Operation]:
        for _, packet in self._packets:
            message = p4r.PacketOut(payload=packet)
            for field in self._headers["packet_out"].metadata:
                if self._rng.random() < 0.9:
                    value = _bytes(self._rng.randrange(min(1 << field.bitwidth, 9)))
                    message.metadata.add(metadata_id=field.id, value=value)
            yield Operation("packet_out", message)
            return

    def _write(self) -> Iterator[Operation]:
        if self._entities:
            entity = self._changed(self._rng.choice(self._entities))
            yield Operation(self._rng.choice(("insert", "modify", "delete")), entity)

    def _changed(self, given: Any) -> Any:
        """Return an entity, or one with the action of another of its table, or a wrong value."""
        entity, rng = p4r.Entity(), self._rng
        entity.CopyFrom(given)
        if given.HasField("table_entry"):
            same = [
                e for e in self._entities if e.table_entry.table_id == given.table_entry.table_id
            ]
            entity.table_entry.action.CopyFrom(rng.choice(same).table_entry.action)
            for field in entity.table_entry.match if rng.random() < _ODD else ():
                if field.HasField("exact"):
                    field.exact.value = b"\xff" * 40
        return entity

    def _read(self) -> Iterator[Operation]:
        query = p4r.Entity()
        kind = self._rng.choice(_KINDS)
        getattr(query, kind).SetInParent()
        if kind == "packet_replication_engine_entry":
            part = self._rng.choice(("multicast_group_entry", "clone_session_entry"))
            getattr(query.packet_replication_engine_entry, part).SetInParent()
        elif kind == "table_entry" and self._info.tables:
            table = self._rng.choice(self._info.tables)
            query.table_entry.table_id = table.preamble.id
            query.table_entry.is_default_action = self._rng.random() < 0.2
        elif kind == "direct_counter_entry" and self._info.direct_counters:
            counter = self._rng.choice(self._info.direct_counters)
            query.direct_counter_entry.table_entry.table_id = counter.direct_table_id
        if kind != "direct_counter_entry" or self._info.direct_counters:
            yield Operation("read", query)

    def _direct(self) -> Iterator[Operation]:
        """Yield the change of an entry's counter or meter, and what is read after it."""
        meters = {m.direct_table_id for m in self._info.direct_meters}
        counters = {c.direct_table_id for c in self._info.direct_counters}
        owners = [e for e in self._entities if e.table_entry.table_id in meters | counters]
        if not owners:
            return
        owner, entity = self._rng.choice(owners).table_entry, p4r.Entity()
        key = p4r.TableEntry(table_id=owner.table_id, match=owner.match, priority=owner.priority)
        if owner.table_id in counters and (
            owner.table_id not in meters or self._rng.random() < 0.5
        ):
            data = p4r.CounterData(packet_count=self._rng.randrange(99))
            entity.direct_counter_entry.CopyFrom(p4r.DirectCounterEntry(table_entry=key, data=data))
        else:
            rate = _RATE * self._rng.randrange(1, 9)
            config = p4r.MeterConfig(cir=rate, cburst=rate, pir=rate, pburst=rate)
            entity.direct_meter_entry.CopyFrom(p4r.DirectMeterEntry(table_entry=key, config=config))
        yield Operation("modify", entity)
        yield Operation("read", entity)

    def _cell(self) -> Iterator[Operation]:
        """Yield the change of a counter's or meter's cell, and what is read after it."""
        arrays = [*self._info.counters, *self._info.meters]
        if not arrays:
            return
        array, entity = self._rng.choice(arrays), p4r.Entity()
        index = self._rng.randrange(array.size + 1)  # or one beyond
        if isinstance(array, p4i.Counter):
            counter = p4r.CounterEntry(counter_id=array.preamble.id, index=p4r.Index(index=index))
            counter.data.packet_count = self._rng.randrange(100)
            counter.data.byte_count = self._rng.randrange(100)
            entity.counter_entry.CopyFrom(counter)
        else:
            meter = p4r.MeterEntry(meter_id=array.preamble.id, index=p4r.Index(index=index))
            rate = _RATE * self._rng.randrange(1, 9)
            meter.config.cir = meter.config.pir = meter.config.cburst = meter.config.pburst = rate
            entity.meter_entry.CopyFrom(meter)
        yield Operation("modify", entity)
        if index < array.size:
            yield Operation("read", entity)


_KINDS = (
    "table_entry", "table_entry", "action_profile_member", "action_profile_group",
    "packet_replication_engine_entry", "direct_counter_entry",
)  # fmt: skip


def _bytes(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def _with_one_shots(info: p4i.P4Info, entities: Sequence[Any], profiles: set[int]) -> Iterator[Any]:
    """Yield entities in which entries of some selectors have a set of actions of their own."""
    implementation = {t.preamble.id: t.implementation_id for t in info.tables}
    members = dict[tuple[int, int], Any]()
    groups = dict[tuple[int, int], list[int]]()
    for entity in entities:
        member, group = entity.action_profile_member, entity.action_profile_group
        if member.action_profile_id in profiles:
            members[member.action_profile_id, member.member_id] = member.action
        elif group.action_profile_id in profiles:
            found = [m.member_id for m in group.members]
            groups[group.action_profile_id, group.group_id] = found
        elif (profile := implementation.get(entity.table_entry.table_id)) in profiles:
            action = entity.table_entry.action
            chosen = groups.get((profile, action.action_profile_group_id))
            made = p4r.ActionProfileActionSet()
            for number in chosen or [action.action_profile_member_id]:
                one = made.action_profile_actions.add(weight=1)
                one.action.CopyFrom(members[profile, number])
            entry = p4r.Entity()
            entry.CopyFrom(entity)
            entry.table_entry.action.action_profile_action_set.CopyFrom(made)
            yield entry
        else:
            yield entity
