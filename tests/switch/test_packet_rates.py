"""`packet_rates`: what it measures and by what it divides; not how fast this machine is."""

from collections.abc import Iterator

import pytest

from gradplane.switch import Switch, packet_rates
from gradplane.switch.packet_rates import measure

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header link_t { bit<8> kind; bit<8> times; }
header net_t { bit<8> to; }
struct headers_t { link_t link; net_t net; }
struct metadata_t { @field_list(1) bit<8> again; }
parser Take(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.link);
        transition select(h.link.kind) { 1: net; default: accept; }
    }
    state net { p.extract(h.net); transition accept; }
}
control Verify(inout headers_t h, inout metadata_t m) { apply { } }
control In(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    counter(4, CounterType.packets) seen;
    action to(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    table ways { key = { h.net.to: exact; } actions = { to; drop; } default_action = drop; }
    apply {
        if (h.net.isValid()) {
            ways.apply();
        } else {
            seen.count(1);
            s.egress_spec = 3;
        }
    }
}
control Out(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        if (h.link.times > m.again) { m.again = m.again + 1; recirculate_preserving_field_list(1); }
    }
}
control Compute(inout headers_t h, inout metadata_t m) { apply { } }
control Give(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(Take(), Verify(), In(), Out(), Compute(), Give()) main;
"""
ROUTED, LOST, COUNTED, THRICE = bytes([1, 0, 5]), bytes([1, 0, 6]), b"\0\0", b"\0\2"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(packet_rates, "SECONDS", 0)
    monkeypatch.setattr(packet_rates, "BATCH", 16)
    yield


def made() -> Switch:
    switch = Switch("rates.p4", text=PROGRAM)
    switch.table("ways").add({"h.net.to": 5}, "to", {"port": 2})
    return switch


def test_packets_are_told_apart_by_what_happens_to_them() -> None:
    found = measure(made, [(1, ROUTED), (1, LOST), (1, COUNTED), (1, ROUTED), (1, THRICE)])
    ways = {(way.headers, way.steps.partition(",")[0]): way for way in found.ways}
    routed, lost = ways["link net", "ways: to"], ways["link net", "ways: drop"]
    assert (routed.packets, routed.passes, routed.lookups, routed.calls) == (2, 1, 1, 0)
    assert (lost.packets, lost.lookups) == (1, 1)
    counted = ways["link", ""]
    assert (counted.packets, counted.lookups, counted.calls) == (1, 0, 1)
    (thrice,) = (way for way in found.ways if way.passes == 3)
    assert "recirculate" in thrice.steps and thrice.packets == 1
    assert (found.packets, found.size, found.leaving) == (5, (3 + 3 + 2 + 3 + 2) / 5, 4)
    assert min(found.batch, found.single, found.traced, *(way.ns for way in found.ways)) > 0
    costs = [way.packets * way.ns for way in found.ways]
    assert costs == sorted(costs, reverse=True)
