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

VIA = st.sampled_from(["python", "commands", "p4rt", "bfrt"])
KEYS, VALUES, CELLS, PORTS = st.integers(0, 3), st.integers(0, 255), st.integers(0, 3), (1, 2, 3, 4)
RID = 6

TABLE = """
    action mark(bit<8> v) { h.a.z = v; }
    table t { key = { h.a.x: exact; } actions = { mark; NoAction; } size = 8; }"""
V1MODEL = v1programs.source(
    ingress_locals=f"register<bit<8>>(4) cells; counter(4, CounterType.packets) seen;{TABLE}",
    ingress="bit<8> n; cells.read(n, 0); seen.count(1); t.apply(); s.egress_spec = 1;",
)
TNA = tnaprograms.source(
    ingress_locals=f"""Register<bit<8>, bit<8>>(4) cells;
        Counter<bit<64>, bit<8>>(4, CounterType_t.PACKETS) seen;
        RegisterAction<bit<8>, bit<8>, bit<8>>(cells) get = {{
            void apply(inout bit<8> value, out bit<8> found) {{ found = value; }}
        }};{TABLE}""",
    ingress="h.a.y = get.execute(0); seen.count(1); t.apply(); tm.ucast_egress_port = 1;",
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
        table = next(i for i in self.all.pipeline.catalog.tables.values() if i.name.endswith(".t"))
        self.table_id, self.table_name = table.id, table.name
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
