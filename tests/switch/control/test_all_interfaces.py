"""Random changes, each through a random interface, and read back through all of them.

Everything is also done inside batches that fail, after which all is as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import tnaprograms
import v1programs
from finsy.proto import p4r
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from interfaces import (
    DELETE,
    INSERT,
    MODIFY,
    Interfaces,
    group_entry,
    replica,
    session_entry,
)

from gradplane.switch import Switch
from gradplane.switch.control.records import dump
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.meters import MeterConfig

VIA = st.sampled_from(["python", "commands", "p4rt", "bfrt"])
KEYS, VALUES, CELLS, PORTS = st.integers(0, 3), st.integers(0, 255), st.integers(0, 3), (1, 2, 3, 4)
RID = 6

TABLE = """
    action mark(bit<8> v) { h.a.z = v; }
    table t { key = { h.a.x: exact; } actions = { mark; NoAction; } size = 8; }"""
V1MODEL = v1programs.source(
    parser_locals='@name("known") value_set<bit<8>>(4) known;',
    parser="pkt.extract(h.a); transition select(h.a.x) { known: more; default: accept; }",
    states="state more { transition accept; }",
    ingress_locals=f"""register<bit<8>>(4) cells; counter(4, CounterType.packets) seen;
        meter(4, MeterType.packets) rate; {TABLE}
        table picked {{
            key = {{ h.a.y: exact; h.a.x: selector; }} actions = {{ mark; NoAction; }}
            implementation = action_selector(HashAlgorithm.identity, 8, 8);
        }}""",
    ingress="""bit<8> n; bit<8> colour; bit<16> crc;
        cells.read(n, 0); seen.count(1); rate.execute_meter((bit<32>) 3, colour);
        hash(crc, HashAlgorithm.crc16_custom, (bit<16>) 0, { h.a.x }, (bit<32>) 65536);
        digest<bit<8>>(1, h.a.z); t.apply(); picked.apply(); s.egress_spec = 1;""",
)
TNA = tnaprograms.source(
    ingress_locals=f"""Register<bit<8>, bit<8>>(4) cells;
        Counter<bit<64>, bit<8>>(4, CounterType_t.PACKETS) seen;
        RegisterAction<bit<8>, bit<8>, bit<8>>(cells) get = {{
            void apply(inout bit<8> value, out bit<8> found) {{ found = value; }}
        }};
        Meter<bit<8>>(4, MeterType_t.PACKETS) rate; Hash<bit<16>>(HashAlgorithm_t.CRC16) digest;
        {TABLE}
        ActionProfile(8) held; Hash<bit<16>>(HashAlgorithm_t.CRC16) chosen;
        ActionSelector(held, chosen, SelectorMode_t.FAIR, 8, 4) dealt;
        table picked {{
            key = {{ h.a.y: exact; h.a.x: selector; }} actions = {{ mark; NoAction; }}
            implementation = dealt;
        }}""",
    parser_locals="value_set<bit<8>>(4) known;",
    parser="pkt.extract(h.a); transition select(h.a.x) { known: more; default: accept; }",
    states="state more { transition accept; }",
    ingress="""bit<16> crc = digest.get({ h.a.x }); h.a.y = get.execute(0); seen.count(1);
        bit<8> colour = rate.execute(3); t.apply(); picked.apply(); tm.ucast_egress_port = 1;""",
)


class Undone(Exception):
    """Ends a batch."""


class Machine(RuleBasedStateMachine):
    """A switch, and what should be in it."""

    text: ClassVar[str]

    @initialize()
    def start(self) -> None:
        if not hasattr(type(self), "shared"):
            type(self).shared = Interfaces(Switch("x.p4", text=self.text, engine="interpreter"))
        self.all: Interfaces = type(self).shared
        self.sw = self.all.sw
        self.sw.reset()
        self.entries: dict[int, int] = {}
        self.cells = [0] * 4
        self.counts = [0] * 4
        self.groups: dict[int, list[int]] = {}
        self.sessions: dict[int, int] = {}
        self.rates: dict[int, int] = {}
        self.known: set[int] = set()
        self.initial, self.digest = 0, None
        self.depths: dict[int, int] = {}
        self.down: frozenset[int] = frozenset()
        for port in self.sw.state.links.down:
            self.sw.set_link(port, True)
        self.sw.state.digests.clear()
        self.members: dict[int, int] = {}
        self.group: list[int] | None = None
        profiles = self.sw.state.profiles.items()
        (self.profile,) = (name for name, one in profiles if one.has_groups)
        (self.profile_id,) = self.all.pipeline.catalog.profiles
        table = next(i for i in self.all.pipeline.catalog.tables.values() if i.name.endswith(".t"))
        self.table_id, self.table_name = table.id, table.name
        kinds = {t.schema.kind: n for n, t in self.all.tables.items()}
        self.member_table, self.group_table = kinds["Action"], kinds["Selector"]
        fields = {f.name: f for f in self.all.table(self.group_table).schema.data}
        self.most = fields["$MAX_GROUP_SIZE"].type.default
        (shape,) = self.all.pipeline.catalog.p4info.action_profiles
        self.p4rt_most = shape.max_group_size
        actions = table.actions.by_id.values()
        self.mark = next(c.info for c in actions if c.info.name.endswith("mark"))

    # -- table entries --------------------------------------------------------------------------

    @rule(via=VIA, key=KEYS, value=VALUES, fails=st.booleans())
    def set_entry(self, via: str, key: int, value: int, fails: bool) -> None:
        there = key in self.entries

        def change() -> None:
            if via == "python":
                write = self.sw.table("t").modify if there else self.sw.table("t").add
                write({"h.a.x": key}, "mark", {"v": value})
            elif via == "commands" and there:
                handle = self._entry(key).handle
                self.all.cli(f"table_modify t mark {handle} {value}")
            elif via == "commands":
                self.all.cli(f"table_add t mark {key} => {value}")
            elif via == "p4rt":
                self.all.p4rt(MODIFY if there else INSERT, table_entry=self._message(key, value))
            else:
                what = "modify" if there else "add"
                self.all.bfrt(what, "t", self._bf_key(key), self.mark.name, v=value)

        if self._done(change, fails):
            self.entries[key] = value

    @rule(via=VIA, key=KEYS)
    def add_what_is_there(self, via: str, key: int) -> None:
        if key not in self.entries:
            return
        with pytest.raises((SwitchError, RpcError)):
            if via == "python":
                self.sw.table("t").add({"h.a.x": key}, "mark", {"v": 0})
            elif via == "commands":
                self.all.cli(f"table_add t mark {key} => 0")
            elif via == "p4rt":
                self.all.p4rt(INSERT, table_entry=self._message(key, 0))
            else:
                self.all.bfrt("add", "t", self._bf_key(key), self.mark.name, v=0)

    @rule(via=VIA, key=KEYS, fails=st.booleans())
    def remove_entry(self, via: str, key: int, fails: bool) -> None:
        if key not in self.entries:
            return

        def change() -> None:
            if via == "python":
                self.sw.table("t").remove({"h.a.x": key})
            elif via == "commands":
                self.all.cli(f"table_delete t {self._entry(key).handle}")
            elif via == "p4rt":
                self.all.p4rt(DELETE, table_entry=self._message(key, None))
            else:
                self.all.bfrt("delete", "t", self._bf_key(key))

        if self._done(change, fails):
            del self.entries[key]

    def _entry(self, key: int) -> Any:
        found = self.sw.table("t").state.find(((key,),))
        assert found is not None
        return found

    def _message(self, key: int, value: int | None) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=self.table_id)
        entry.match.add(field_id=1).exact.value = bytes([key])
        if value is not None:
            entry.action.action.action_id = self.mark.id
            entry.action.action.params.add(param_id=1, value=bytes([value]))
        return entry

    def _bf_key(self, key: int) -> dict[str, int]:
        return {self.all.table("t").schema.keys[0].name: key}

    @invariant()
    def entries_are_the_same(self) -> None:
        if not hasattr(self, "entries"):
            return
        python = {e.matches[0][0]: e.action.args[0] for e in self.sw.table("t").entries()}
        assert python == self.entries
        query = p4r.TableEntry(table_id=self.table_id)
        p4rt = {
            f.table_entry.match[0].exact.value[-1]: f.table_entry.action.action.params[0].value[-1]
            for f in self.all.p4rt_read(table_entry=query)
        }
        assert p4rt == self.entries
        bfrt = {
            next(iter(key.values()))[0]: data.values["v"]
            for key, data in self.all.table("t").entries(self.all.scope)
        }
        assert bfrt == self.entries
        dump = self.all.cli("table_dump t")
        assert dump.count("Dumping entry") == len(self.entries)

    # -- cells ----------------------------------------------------------------------------------

    @rule(via=VIA, cell=CELLS, value=VALUES, fails=st.booleans())
    def set_cell(self, via: str, cell: int, value: int, fails: bool) -> None:
        register = self.sw.register("cells")

        def change() -> None:
            if via == "python":
                register.write(cell, value)
            elif via == "commands":
                self.all.cli(f"register_write cells {cell} {value}")
            elif via == "p4rt":
                number = self._id(self.all.pipeline.catalog.registers, "cells")
                entry = p4r.RegisterEntry(register_id=number, index=p4r.Index(index=cell))
                entry.data.bitstring = bytes([value])
                self.all.p4rt(MODIFY, register_entry=entry)
            else:
                table = self.all.table("cells")
                name = table.schema.data[0].name
                self.all.bfrt("modify", "cells", {"$REGISTER_INDEX": cell}, **{name: [value]})

        if self._done(change, fails):
            self.cells[cell] = value

    @rule(via=VIA, cell=CELLS, value=VALUES, fails=st.booleans())
    def set_count(self, via: str, cell: int, value: int, fails: bool) -> None:
        def change() -> None:
            if via == "python":
                self.sw.counter("seen").write(cell, value, 0)
            elif via == "commands":
                self.all.cli(f"counter_write seen {cell} {value} 0")
            elif via == "p4rt":
                number = self._id(self.all.pipeline.catalog.counters, "seen")
                data = p4r.CounterData(packet_count=value)
                entry = p4r.CounterEntry(counter_id=number, index=p4r.Index(index=cell), data=data)
                self.all.p4rt(MODIFY, counter_entry=entry)
            else:
                self.all.bfrt("modify", "seen", {"$COUNTER_INDEX": cell}, COUNTER_SPEC_PKTS=value)

        if self._done(change, fails):
            self.counts[cell] = value

    @rule()
    def send_a_packet(self) -> None:
        self.sw.process(0, v1programs.packet(x=9))
        self.counts[1] += 1

    @staticmethod
    def _id(known: dict[int, Any], name: str) -> int:
        return next(i for i, extern in known.items() if extern.name.endswith(name))

    @invariant()
    def cells_are_the_same(self) -> None:
        if not hasattr(self, "cells"):
            return
        assert list(self.sw.register("cells").cells)[:4] == self.cells
        shown = ", ".join(map(str, self.cells))
        assert self.all.cli("register_read cells") == f"cells= {shown}"
        number = self._id(self.all.pipeline.catalog.counters, "seen")
        found = self.all.p4rt_read(counter_entry=p4r.CounterEntry(counter_id=number))
        assert [f.counter_entry.data.packet_count for f in found] == self.counts
        for cell, count in enumerate(self.counts):
            found_there = self.all.bfrt_read("seen", {"$COUNTER_INDEX": cell})
            assert found_there["$COUNTER_SPEC_PKTS"] == count

    # -- meters, value sets, hashes, queues, links ----------------------------------------------

    @rule(via=VIA, cell=CELLS, rate=st.integers(0, 5), fails=st.booleans())
    def set_rate(self, via: str, cell: int, rate: int, fails: bool) -> None:
        def change() -> None:
            if via == "python":
                self.sw.meter("rate").write(cell, MeterConfig(rate, 9, rate, 9))
            elif via == "commands":
                self.all.cli(f"meter_set_rates rate {cell} {rate / 10**6:f}:9 {rate / 10**6:f}:9")
            elif via == "p4rt":
                number = self._id(self.all.pipeline.catalog.meters, "rate")
                config = p4r.MeterConfig(cir=rate, pir=rate, cburst=9, pburst=9)
                index = p4r.Index(index=cell)
                entry = p4r.MeterEntry(meter_id=number, index=index, config=config)
                self.all.p4rt(MODIFY, meter_entry=entry)
            else:
                self.all.bfrt("modify", "rate", {"$METER_INDEX": cell}, METER_SPEC_CIR_PPS=rate,
                              METER_SPEC_PIR_PPS=rate, METER_SPEC_CBS_PKTS=9,
                              METER_SPEC_PBS_PKTS=9)  # fmt: skip

        if self._done(change, fails):
            self.rates[cell] = rate

    @rule(via=VIA, member=KEYS, fails=st.booleans())
    def change_value_set(self, via: str, member: int, fails: bool) -> None:
        there = member in self.known
        wanted = sorted(self.known ^ {member})

        def change() -> None:
            if via == "python":
                self.sw.value_set("known").replace([(self._known(one),) for one in wanted])
            elif via == "commands":
                self.all.cli(f"pvs_{'remove' if there else 'add'} known {member}")
            elif via == "p4rt":
                number = next(iter(self.all.pipeline.catalog.value_sets))
                entry = p4r.ValueSetEntry(value_set_id=number)
                for one in wanted:
                    entry.members.add().match.add(field_id=1).exact.value = bytes([one])
                self.all.p4rt(MODIFY, value_set_entry=entry)
            else:
                name = self.all.table("known").schema.keys[0].name
                self.all.bfrt("delete" if there else "add", "known", {name: (member, 0xFF)})

        if self._done(change, fails):
            self.known ^= {member}

    def _known(self, value: int) -> tuple[int, ...]:
        """Return a match of the value set: TNA's have masks."""
        exact = self.sw.value_set("known").fields[0].kind == "exact"
        return (value,) if exact else (value, 0xFF)

    @rule(via=VIA, initial=VALUES, fails=st.booleans())
    def set_algorithm(self, via: str, initial: int, fails: bool) -> None:
        """Give a hash another CRC: by commands on v1model, over BFRuntime on TNA."""

        def change() -> None:
            if self.sw.state.crcs:
                self.all.cli(f"set_crc16_parameters calc 0x1021 {initial} 0 true true")
            else:
                self.all.bfrt_default("digest.algorithm", "user_defined", polynomial=0x1021,
                                      init=initial, hash_bit_width=16)  # fmt: skip

        if self._done(change, fails):
            self.initial = initial

    @rule(port=st.sampled_from(PORTS), depth=st.integers(1, 9), fails=st.booleans())
    def set_depth(self, port: int, depth: int, fails: bool) -> None:
        if self._done(lambda: self.all.cli(f"set_queue_depth {depth} {port}"), fails):
            self.depths[port] = depth

    @rule(port=st.sampled_from(PORTS), up=st.booleans(), fails=st.booleans())
    def set_link(self, port: int, up: bool, fails: bool) -> None:
        if self._done(lambda: self.sw.set_link(port, up), fails):
            self.down = self.down - {port} if up else self.down | {port}

    @invariant()
    def settings_are_the_same(self) -> None:
        if not hasattr(self, "rates"):
            return
        number = self._id(self.all.pipeline.catalog.meters, "rate")
        shown = self.all.p4rt_read(meter_entry=p4r.MeterEntry(meter_id=number))
        for cell, rate in self.rates.items():
            config = self.sw.meter("rate").read(cell)
            assert config is not None
            assert config.cir // config.period == rate
            assert shown[cell].meter_entry.config.cir == rate
            found = self.all.bfrt_read("rate", {"$METER_INDEX": cell})
            assert found["$METER_SPEC_CIR_PPS"] == config.cir
            assert "info rate" in self.all.cli(f"meter_get_rates rate {cell}")
        members = {member[0][0] for member in self.sw.value_set("known").members}
        assert members == self.known
        assert {int(line, 16) for line in self.all.cli("pvs_get known").split()} == self.known
        assert set(self.all.bfrt_keys("known")) == self.known
        (entry,) = self.all.p4rt_read(value_set_entry=p4r.ValueSetEntry())
        assert len(entry.value_set_entry.members) == len(self.known)
        crcs = self.sw.state.crcs.values()
        found_there = [crc.parameters.initial for crc in crcs] or [
            self.all.table("digest.algorithm").default(self.all.scope).values.get("init", 0)
        ]  # fmt: skip
        assert found_there == [self.initial]
        for port, depth in self.depths.items():
            assert self.sw.queues.queue(port, 0).depth == depth
        assert self.sw.state.links.down == self.down

    # -- digests --------------------------------------------------------------------------------

    @rule(size=st.integers(1, 9), fails=st.booleans())
    def change_digest(self, size: int, fails: bool) -> None:
        """Enable a digest, change how it is gathered, or disable it (by another size)."""
        numbers = list(self.all.pipeline.catalog.digests)
        if not numbers:
            return
        kind = INSERT if self.digest is None else MODIFY if size > 3 else DELETE
        config = p4r.DigestEntry.Config(max_list_size=size)
        entry = p4r.DigestEntry(digest_id=numbers[0], config=config)
        if self._done(lambda: self.all.p4rt(kind, digest_entry=entry), fails):
            self.digest = None if kind == DELETE else size
        shown = self.all.p4rt_read(digest_entry=p4r.DigestEntry())
        sizes = [one.digest_entry.config.max_list_size for one in shown]
        assert sizes == ([] if self.digest is None else [self.digest])

    # -- members and groups of a selector -------------------------------------------------------

    @rule(via=VIA, member=KEYS, value=VALUES, fails=st.booleans())
    def set_member(self, via: str, member: int, value: int, fails: bool) -> None:
        there, number = member in self.members, member + 1
        if via == "commands" and not there:
            return  # it chooses the number

        def change() -> None:
            profile = self.sw.profile(self.profile)
            if via == "python":
                write = profile.modify_member if there else profile.add_member
                write(number, "mark", {"v": value})
            elif via == "commands":
                self.all.cli(f"act_prof_modify_member {self.profile} mark {number} {value}")
            elif via == "p4rt":
                entry = p4r.ActionProfileMember(action_profile_id=self.profile_id, member_id=number)
                entry.action.action_id = self.mark.id
                entry.action.params.add(param_id=1, value=bytes([value]))
                self.all.p4rt(MODIFY if there else INSERT, action_profile_member=entry)
            else:
                self.all.bfrt("modify" if there else "add", self.member_table,
                              {"$ACTION_MEMBER_ID": number}, self.mark.name, v=value)  # fmt: skip

        if self._done(change, fails):
            self.members[member] = value

    @rule(via=VIA, size=st.integers(0, 3), fails=st.booleans())
    def set_members_of_a_group(self, via: str, size: int, fails: bool) -> None:
        wanted = [member + 1 for member in self.members][:size]
        there = self.group is not None

        def change() -> None:
            profile = self.sw.profile(self.profile)
            if via in ("python", "commands"):
                if there:
                    profile.remove_group(1)
                profile.add_group(1, wanted)
            elif via == "p4rt":
                kind = MODIFY if there else INSERT
                there_now = self.sw.state.profiles[self.profile].groups.get(1)
                limit = 4 if there_now is None else there_now.max_size or self.p4rt_most
                entry = p4r.ActionProfileGroup(
                    action_profile_id=self.profile_id, group_id=1, max_size=limit
                )
                for number in wanted:
                    entry.members.add(member_id=number, weight=1)
                self.all.p4rt(kind, action_profile_group=entry)
            else:
                self.all.bfrt("modify" if there else "add", self.group_table,
                              {"$SELECTOR_GROUP_ID": 1}, ACTION_MEMBER_ID=wanted,
                              ACTION_MEMBER_STATUS=[True] * len(wanted))  # fmt: skip

        if self._done(change, fails):
            self.group = wanted

    @invariant()
    def members_and_groups_are_the_same(self) -> None:
        if not hasattr(self, "members"):
            return
        state = self.sw.profile(self.profile).state
        assert {n - 1: action.args[0] for n, action in state.members.items()} == self.members
        shown = self.all.p4rt_read(action_profile_member=p4r.ActionProfileMember())
        found = {e.action_profile_member.member_id - 1:
                 e.action_profile_member.action.params[0].value[-1] for e in shown}  # fmt: skip
        assert found == self.members
        there = self.all.table(self.member_table).entries(self.all.scope)
        assert {key["$ACTION_MEMBER_ID"][0] - 1: data.values["v"] for key, data in there
                } == self.members  # fmt: skip
        dump = self.all.cli(f"act_prof_dump {self.profile}")
        assert dump.count("Dumping member") == len(self.members)
        if self.group is None:
            assert state.groups == {}
            return
        assert [w.member for w in state.groups[1].members] == self.group
        (one,) = self.all.p4rt_read(action_profile_group=p4r.ActionProfileGroup())
        assert [m.member_id for m in one.action_profile_group.members] == self.group
        data = self.all.bfrt_read(self.group_table, {"$SELECTOR_GROUP_ID": 1})
        assert data["$ACTION_MEMBER_ID"] == self.group
        own = state.groups[1].max_size
        assert one.action_profile_group.max_size == (own or self.p4rt_most)
        assert data["$MAX_GROUP_SIZE"] == (own or self.most)
        assert state.use.members == state.use.weights == len(self.group)

    # -- groups and sessions --------------------------------------------------------------------

    @rule(via=VIA, group=st.integers(1, 3), ports=st.sets(st.sampled_from(PORTS), min_size=1),
          fails=st.booleans())  # fmt: skip
    def set_group(self, via: str, group: int, ports: set[int], fails: bool) -> None:
        wanted = sorted(ports)

        def change() -> None:
            if via == "python":
                self.sw.multicast(group, [(port, RID) for port in wanted])
            elif via == "p4rt":
                entry = p4r.MulticastGroupEntry(
                    multicast_group_id=group, replicas=[replica(port, RID) for port in wanted]
                )
                kind = MODIFY if group in self.groups else INSERT
                self.all.p4rt(kind, packet_replication_engine_entry=group_entry(entry))
            elif via == "commands":
                if group in self.groups:
                    self.all.cli(f"mc_mgrp_destroy {group}")
                said = self.all.cli(f"mc_node_create {RID} {' '.join(map(str, wanted))}")
                handle = said.rpartition(" ")[2]
                self.all.cli(f"mc_mgrp_create {group}\nmc_node_associate {group} {handle}")
            else:
                node = self.sw.store.replication.nodes.free()
                self.all.bfrt("add", "$pre.node", {"$MULTICAST_NODE_ID": node},
                              MULTICAST_RID=RID, MULTICAST_LAG_ID=[], DEV_PORT=wanted)  # fmt: skip
                what = "modify" if group in self.groups else "add"
                self.all.bfrt(what, "$pre.mgid", {"$MGID": group}, MULTICAST_NODE_ID=[node])

        if self._done(change, fails):
            self.groups[group] = wanted

    @rule(via=VIA, group=st.integers(1, 3), fails=st.booleans())
    def delete_group(self, via: str, group: int, fails: bool) -> None:
        if group not in self.groups:
            return

        def change() -> None:
            if via == "python":
                self.sw.multicast(group, [])
            elif via == "commands":
                self.all.cli(f"mc_mgrp_destroy {group}")
            elif via == "p4rt":
                entry = group_entry(p4r.MulticastGroupEntry(multicast_group_id=group))
                self.all.p4rt(DELETE, packet_replication_engine_entry=entry)
            else:
                self.all.bfrt("delete", "$pre.mgid", {"$MGID": group})

        if self._done(change, fails):
            del self.groups[group]

    @rule(via=VIA, session=st.integers(1, 3), port=st.sampled_from(PORTS), fails=st.booleans())
    def set_session(self, via: str, session: int, port: int, fails: bool) -> None:
        there = session in self.sessions

        def change() -> None:
            if via == "python":
                self.sw.clone_session(session, [port])
            elif via == "commands":
                self.all.cli(f"mirroring_add {session} {port}")
            elif via == "p4rt":
                entry = p4r.CloneSessionEntry(session_id=session, replicas=[replica(port)])
                entry = session_entry(entry)
                self.all.p4rt(MODIFY if there else INSERT, packet_replication_engine_entry=entry)
            else:
                self.all.bfrt("modify" if there else "add", "$mirror.cfg", {"$sid": session},
                              "$normal", session_enable=True, ucast_egress_port=port,
                              ucast_egress_port_valid=True, max_pkt_len=0xFFFF)  # fmt: skip

        if self._done(change, fails):
            self.sessions[session] = port

    @invariant()
    def groups_and_sessions_are_the_same(self) -> None:
        if not hasattr(self, "groups"):
            return
        there = {g: [r.port for r in found] for g, found in self.sw.state.multicast.items()}
        assert there == self.groups
        for group, ports in self.groups.items():
            assert self.all.p4rt_group(group) == [(port, RID) for port in ports]
            found = self.all.bfrt_read("$pre.mgid", {"$MGID": group})["$MULTICAST_NODE_ID"]
            nodes = [self.all.bfrt_read("$pre.node", {"$MULTICAST_NODE_ID": n}) for n in found]
            assert [port for node in nodes for port in node["$DEV_PORT"]] == ports
            assert {node["$MULTICAST_RID"] for node in nodes} == {RID}
            assert f"mgrp({group})" in self.all.cli("mc_dump")
        assert sorted(self.all.bfrt_keys("$pre.mgid")) == sorted(self.groups)
        for session, port in self.sessions.items():
            assert self.all.p4rt_session(session) == ([port], 0, 0)
            assert (
                self.all.bfrt_read("$mirror.cfg", {"$sid": session})["$ucast_egress_port"] == port
            )
            shown = f"MirroringSessionConfig(mgid=None, port={port})"
            assert self.all.cli(f"mirroring_get {session}") == shown

    # -- batches --------------------------------------------------------------------------------

    def _done(self, change: Callable[[], None], fails: bool) -> bool:
        """Make a change, alone or in a batch that fails; return whether it holds."""
        if not fails:
            change()
            return True
        before = dump(self.sw.store)
        with pytest.raises(Undone), self.sw.lock, self.sw.store.batch():
            change()
            raise Undone
        assert dump(self.sw.store) == before
        return False


def machine(program: str) -> type[Machine]:
    return type("Machine", (Machine,), {"text": program})


FEW = settings(max_examples=25, stateful_step_count=30)
TestV1model = machine(V1MODEL).TestCase
TestV1model.settings = FEW
TestTna = machine(TNA).TestCase
TestTna.settings = FEW
