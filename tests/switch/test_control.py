"""Names, addresses and the table interface of a switch."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from gradplane.switch import Switch, SwitchError, TableError

SOURCE = """
#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip6_t { bit<128> src; bit<128> dst; }
struct H { eth_t eth; ip6_t ip6; }
struct M { bit<8> a; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) {
    state start {
        b.extract(h.eth);
        transition select(h.eth.type) { 0x86DD: six; default: accept; }
    }
    state six { b.extract(h.ip6); transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control Half(inout H h, inout standard_metadata_t s) {
    action go(bit<9> port) { s.egress_spec = port; }
    table t { key = { h.eth.dst: exact; } actions = { go; NoAction; } }
    register<bit<8>>(4) r;
    apply { t.apply(); r.write(0, 1); }
}
control I(inout H h, inout M m, inout standard_metadata_t s) {
    Half() left;
    Half() right;
    action forward(bit<48> mac, bit<9> port) { h.eth.dst = mac; s.egress_spec = port; }
    action shift(int<8> by) { s.egress_spec = s.egress_spec + (bit<9>) (bit<8>) by; }
    table routes {
        key = { h.ip6.dst: lpm; h.eth.src: ternary; h.eth.type: range; m.a: optional; }
        actions = { forward; shift; NoAction; }
        size = 16;
    }
    apply { left.apply(h, s); right.apply(h, s); routes.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture
def sw() -> Switch:
    return Switch("names.p4", text=SOURCE)


def said(error: type[Exception], function: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(error) as caught:
        function(*args, **kwargs)
    return str(caught.value)


def test_any_unambiguous_suffix_is_a_name(sw: Switch) -> None:
    assert sw.table("left.t").state is sw.table("I.left.t").state
    assert sw.register("right.r").name == "I.right.r"
    assert said(SwitchError, sw.table, "t") == "table 't' is ambiguous: I.left.t, I.right.t"
    assert said(SwitchError, sw.table, "route") == (
        "there is no table 'route'; known: I.left.t, I.right.t, I.routes"
    )
    assert said(SwitchError, sw.counter, "c") == "there is no counter 'c'; there are no counters"
    assert said(SwitchError, sw.table("left.t").add, {"src": 1}, "NoAction") == (
        "table I.left.t: there is no match field 'src'; known: h.eth.dst"
    )
    assert said(SwitchError, sw.table("left.t").add, {"dst": 1}, "forward") == (
        "table I.left.t: there is no action 'forward'; known: I.left.go, NoAction"
    )
    assert said(SwitchError, sw.table("left.t").add, {"dst": 1}, "go", {"prt": 1}) == (
        "table I.left.t: action I.left.go: there is no parameter 'prt'; known: port"
    )
    assert said(SwitchError, sw.table("left.t").add, {"dst": 1}, "go") == (
        "table I.left.t: action I.left.go: no value for port"
    )
    assert said(SwitchError, sw.table("left.t").add, {"dst": 1}) == (
        "table I.left.t: give one of action, member and group"
    )


def test_validity_is_a_field_by_both_its_names() -> None:
    keys = "h.ip6.isValid(): exact; h.eth.isValid(): exact;"
    text = SOURCE.replace("h.eth.dst: exact;", keys, 1)
    sw = Switch("p.p4", engine="interpreter", text=text)
    match = {"h.ip6.isValid()": 1, "eth.isValid()": 0}
    entry = sw.table("left.t").add(match, "NoAction")
    assert entry.matches == ((1,), (0,))
    sw.table("left.t").remove({"h.ip6.$valid$": 1, "eth.$valid$": 0})
    assert len(sw.table("left.t")) == 0


def matches(sw: Switch, **match: Any) -> tuple[Any, ...]:
    table = sw.table("routes")
    entry = table.add({f"h.{k.replace('_', '.')}": v for k, v in match.items()}, "NoAction")
    table.clear()
    return entry.matches


def test_values_may_be_numbers_bytes_and_addresses(sw: Switch) -> None:
    mac = 0x0A0B0C0D0E0F
    for text in ("0a:0b:0c:0d:0e:0f", "a-b-c-d-e-f", mac, bytes.fromhex("0a0b0c0d0e0f"),
                 hex(mac), np.uint64(mac)):  # fmt: skip
        entry = sw.table("left.t").add({"dst": text}, "go", {"port": "0x10"})
        assert entry.matches == ((mac,),) and entry.action.args == (16,)
        sw.table("left.t").remove({"dst": text})
    prefix = (0x20010DB8 << 96, 32)
    for lpm in (("2001:db8::7", 32), "2001:db8::/32", (0x20010DB8 << 96, 32)):
        assert matches(sw, ip6_dst=lpm)[0] == prefix
    assert matches(sw, ip6_dst="::1")[0] == (1, 128)
    assert matches(sw, ip6_dst=(5, 0))[0] is None
    assert matches(sw, eth_src=("ff:ff:ff:00:00:00", 0xFF0000000000))[1] == (0xFF << 40, 0xFF << 40)
    assert matches(sw, eth_src=7)[1] == (7, (1 << 48) - 1)
    assert matches(sw, eth_type=(5, 9))[2] == (5, 9)
    assert matches(sw, eth_type=5)[2] == (5, 5)
    assert matches(sw, eth_type=(0, 0xFFFF))[2] is None
    assert matches(sw) == (None, None, None, None)


def test_values_that_are_none(sw: Switch) -> None:
    add = sw.table("left.t").add
    where = "table I.left.t: field h.eth.dst"
    assert said(SwitchError, add, {"dst": "host-7"}, "NoAction") == (
        f"{where}: 'host-7' is not a number or a MAC, IPv4 or IPv6 address"
    )
    assert said(SwitchError, add, {"dst": 1.5}, "NoAction") == (
        f"{where}: 1.5 is not a number, bytes or an address"
    )
    assert said(SwitchError, add, {"dst": (1, 2)}, "NoAction") == f"{where}: (1, 2) is not a value"
    assert said(TableError, add, {"dst": 1 << 48}, "NoAction") == (
        f"{where}: value {1 << 48} does not fit 48 bits (0 to {(1 << 48) - 1})"
    )
    assert said(TableError, add, {}, "NoAction") == f"{where}: an exact match needs a value"
    assert said(TableError, add, {"dst": 1}, "go", {"port": 512}) == (
        "table I.left.t: action I.left.go: parameter port: value 512 does not fit bit<9> (0 to 511)"
    )
    assert said(TableError, sw.table("routes").add, {"h.ip6.dst": ("::1", 129)}, "NoAction") == (
        "table I.routes: field h.ip6.dst: prefix length 129 is not within 0 to 128"
    )


def test_signed_parameters_may_be_negative_or_bytes(sw: Switch) -> None:
    table = sw.table("routes")
    for by in (-2, b"\xfe"):
        assert table.add({}, "shift", {"by": by}).action.args == (-2,)
        table.clear()


def test_priorities(sw: Switch) -> None:
    table = sw.table("routes")
    assert table.add({}, "NoAction").priority == 1
    table.add({}, "NoAction", priority=5)
    table.remove({}, priority=5)
    assert [e.priority for e in table.entries()] == [1] and len(table) == 1


def test_groups_and_sessions_are_checked(sw: Switch) -> None:
    assert said(SwitchError, sw.multicast, 0, [1]) == "multicast group 0 is not within 1 to 65535"
    assert said(SwitchError, sw.clone_session, 1 << 15, [1]) == (
        "clone session 32768 is not within 0 to 32767"
    )


def test_a_switch_runs_an_ir_program_and_can_be_shared_by_threads(sw: Switch) -> None:
    twin = Switch(sw.program)
    twin.table("routes").add({}, "forward", {"mac": 1, "port": 3})
    packet = bytes(14)
    results: list[int] = []

    def work() -> None:
        for _ in range(50):
            results.extend(port for port, _ in twin.process(0, packet))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [3] * 200
    assert [port for port, _ in sw.process(0, packet)] == [0]


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("port", [512, 1 << 32, -1])
def test_ports_that_do_not_exist_are_refused(engine: str, port: int) -> None:
    sw = Switch("names.p4", text=SOURCE, engine=engine)
    message = f"port {port} is not within 0 to 511"
    data, offsets = np.zeros(64, dtype=np.uint8), np.array([0, 32, 64])
    assert said(SwitchError, sw.process, port, bytes(64)) == message
    assert said(SwitchError, sw.trace, port, bytes(64)) == message
    assert said(SwitchError, sw.run_once, port, bytes(64)) == message
    assert said(SwitchError, sw.process_batch, [1, port], [bytes(64)] * 2) == message
    assert said(SwitchError, sw.process_buffer, np.array([port, 1]), data, offsets) == message
    assert sw.register("left.r").read(0) == 0  # none of the packets was processed
    sw.process(511, bytes(64))
    assert sw.register("left.r").read(0) == 1
