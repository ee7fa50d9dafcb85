"""@refers_to: entries refer to entries that exist, and what is referred to stays."""

from __future__ import annotations

from typing import Any

import finsy
import pytest
from finsy.proto import p4r

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError
from gradplane.switch.p4runtime.write import write

TEXT = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<16> vrf; bit<32> dst; }
struct H { h_t h; }
struct M { bit<16> rif; bit<16> neighbor; bit<16> hop; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action set_hop(@refers_to(nexthops, hop) bit<16> hop) { m.hop = hop; }
    action set_neighbor(@refers_to(rifs, rif) @refers_to(neighbors, rif) bit<16> rif,
                        @refers_to(neighbors, neighbor) bit<16> neighbor) {
        m.rif = rif; m.neighbor = neighbor;
    }
    action to_group(@refers_to(builtin::multicast_group_table, multicast_group_id) bit<16> group) {
        s.mcast_grp = group;
    }
    action port(bit<9> port) { s.egress_spec = port; }
    table vrfs { key = { h.h.vrf : exact @name("vrf"); } actions = { NoAction; } }
    table routes {
        key = { h.h.vrf : exact @name("vrf") @refers_to(vrfs, vrf); h.h.dst : lpm @name("dst"); }
        actions = { set_hop; to_group; NoAction; }
    }
    table acl {
        key = { h.h.vrf : optional @name("vrf") @refers_to(vrfs, vrf); }
        actions = { NoAction; }
    }
    table nexthops { key = { m.hop : exact @name("hop"); } actions = { set_neighbor; NoAction; } }
    table neighbors {
        key = { m.rif : exact @name("rif"); m.neighbor : exact @name("neighbor"); }
        actions = { port; NoAction; }
    }
    table rifs { key = { m.rif : exact @name("rif"); } actions = { port; NoAction; } }
    action_profile(8) hops;
    table shared {
        key = { h.h.dst : exact @name("dst"); }
        actions = { set_hop; NoAction; }
        implementation = hops;
    }
    apply {
        shared.apply();
        vrfs.apply(); routes.apply(); acl.apply(); nexthops.apply(); neighbors.apply();
        rifs.apply();
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


class Client:
    """Writes entries; `+` and `-` as finsy has them. Returns the error, or an empty text."""

    def __init__(self, text: str = TEXT, restricted: bool = True) -> None:
        program = compile_program("sai.p4", text=text)
        self.device = Device(lambda source: program, Switch, restricted=restricted)
        self.device.load(program)
        assert self.device.pipeline is not None
        self.switch = self.device.pipeline.switch
        self.schema = finsy.P4Schema(self.device.pipeline.config.p4info)

    def __call__(self, how: str, table: str, action: Any = None, **match: Any) -> str:
        priority = 1 if table == "acl" else 0
        entry = finsy.P4TableEntry(
            table, match=finsy.Match(**match), action=action, priority=priority
        )
        return self.send(how, entry)

    def send(self, how: str, entity: Any) -> str:
        message = finsy.p4entity.encode_entities([entity], self.schema)[0]
        try:
            update = p4r.Update(type=getattr(p4r.Update, how), entity=message)
            write(self.device.target, [update])
        except BatchError as error:
            return str(error.errors[0])
        return ""


@pytest.fixture
def client() -> Client:
    return Client()


def nothing() -> Any:
    return finsy.P4TableAction("NoAction")


def test_an_entry_refers_to_one_that_exists(client: Client) -> None:
    assert client("INSERT", "routes", nothing(), vrf=7, dst="10.0.0.0/8") == (
        "NOT_FOUND: table I.routes: the entry refers to I.vrfs with vrf 7, and there is no such"
        " entry: insert that first"
    )
    assert client("INSERT", "vrfs", nothing(), vrf=7) == ""
    assert client("INSERT", "routes", nothing(), vrf=7, dst="10.0.0.0/8") == ""


def test_what_is_referred_to_stays(client: Client) -> None:
    assert client("INSERT", "vrfs", nothing(), vrf=7) == ""
    assert client("INSERT", "routes", nothing(), vrf=7, dst="10.0.0.0/8") == ""
    assert client("INSERT", "routes", nothing(), vrf=7, dst="11.0.0.0/8") == ""
    assert client("DELETE", "vrfs", vrf=7) == (
        "FAILED_PRECONDITION: I.vrfs with vrf 7 is referred to by 2 values of other entries:"
        " delete these first"
    )
    for prefix in ("10.0.0.0/8", "11.0.0.0/8"):
        assert client("DELETE", "routes", vrf=7, dst=prefix) == ""
    assert client("DELETE", "vrfs", vrf=7) == ""


def test_any_value_refers_to_none(client: Client) -> None:
    assert client("INSERT", "acl", nothing()) == ""
    assert client("INSERT", "acl", nothing(), vrf=3).startswith("NOT_FOUND: table I.acl: ")


def test_what_a_restriction_keeps_out_is_there_without_an_entry() -> None:
    """sonic-pins' fixed/routing.p4: the default VRF cannot be written, but is always present."""
    note = '@entry_restriction("vrf != 0;") '
    client = Client(TEXT.replace("table vrfs", f"{note} table vrfs"))
    assert client("INSERT", "vrfs", nothing(), vrf=0).startswith("INVALID_ARGUMENT: table I.vrfs")
    assert client("INSERT", "routes", nothing(), vrf=0, dst="10.0.0.0/8") == ""
    assert client("INSERT", "routes", nothing(), vrf=1, dst="10.0.0.0/8").startswith("NOT_FOUND")


def test_values_that_refer_to_one_table_refer_to_one_entry(client: Client) -> None:
    action = finsy.P4TableAction("set_neighbor", rif=1, neighbor=2)
    for rif in (1, 5):
        assert client("INSERT", "rifs", nothing(), rif=rif) == ""
    assert client("INSERT", "neighbors", nothing(), rif=1, neighbor=9) == ""
    assert client("INSERT", "neighbors", nothing(), rif=5, neighbor=2) == ""
    assert client("INSERT", "nexthops", action, hop=1) == (
        "NOT_FOUND: action I.set_neighbor refers to I.neighbors with rif 1, neighbor 2, and there"
        " is no such entry: insert that first"
    )
    assert client("INSERT", "neighbors", nothing(), rif=1, neighbor=2) == ""
    assert client("INSERT", "nexthops", action, hop=1) == ""
    assert client("DELETE", "neighbors", rif=1, neighbor=9) == ""
    assert client("DELETE", "neighbors", rif=1, neighbor=2).startswith("FAILED_PRECONDITION: ")
    assert client("DELETE", "rifs", rif=1).startswith("FAILED_PRECONDITION: I.rifs with rif 1 ")


def test_a_change_of_action_releases_what_the_old_one_referred_to(client: Client) -> None:
    assert client("INSERT", "vrfs", nothing(), vrf=1) == ""
    assert client("INSERT", "nexthops", nothing(), hop=4) == ""
    route = {"vrf": 1, "dst": "10.0.0.0/8"}
    assert client("INSERT", "routes", finsy.P4TableAction("set_hop", hop=4), **route) == ""
    wrong = finsy.P4TableAction("set_hop", hop=5)
    assert client("MODIFY", "routes", wrong, **route).startswith("NOT_FOUND: action I.set_hop ")
    assert client("DELETE", "nexthops", hop=4).startswith("FAILED_PRECONDITION: ")
    assert client("MODIFY", "routes", nothing(), **route) == ""
    assert client("DELETE", "nexthops", hop=4) == ""


def test_multicast_groups(client: Client) -> None:
    group = finsy.P4MulticastGroupEntry(6, replicas=[1, 2])
    action = finsy.P4TableAction("to_group", group=6)
    route = {"vrf": 1, "dst": "224.0.0.1/32"}
    assert client("INSERT", "vrfs", nothing(), vrf=1) == ""
    assert client("INSERT", "routes", action, **route) == (
        "NOT_FOUND: action I.to_group refers to multicast_group_table with multicast_group_id 6,"
        " and there is no such entry: insert that first"
    )
    assert client.send("INSERT", group) == ""
    assert client("INSERT", "routes", action, **route) == ""
    assert client.send("DELETE", group).startswith("FAILED_PRECONDITION: multicast_group_table")
    assert client("DELETE", "routes", **route) == ""
    assert client.send("DELETE", group) == ""


def test_entries_of_other_interfaces_count(client: Client) -> None:
    table = client.switch.table("vrfs")  # type: ignore[attr-defined]
    table.add({"vrf": 7}, "NoAction")
    assert client("INSERT", "routes", nothing(), vrf=7, dst="10.0.0.0/8") == ""
    assert client("DELETE", "vrfs", vrf=7).startswith("FAILED_PRECONDITION: ")


def test_members_and_default_entries_refer_too(client: Client) -> None:
    assert client("INSERT", "nexthops", nothing(), hop=1) == ""

    def to(hop: int) -> Any:
        return finsy.P4TableAction("set_hop", hop=hop)

    def default(action: Any) -> Any:
        return finsy.P4TableEntry("routes", action=action, is_default_action=True)

    def member(action: Any) -> Any:
        return finsy.P4ActionProfileMember("hops", member_id=1, action=action)

    for how, made in (("INSERT", member), ("MODIFY", default)):
        assert client.send(how, made(to(2))).startswith("NOT_FOUND: action I.set_hop refers to")
        assert client.send(how, made(to(1))) == ""
        assert client("DELETE", "nexthops", hop=1).startswith("FAILED_PRECONDITION: ")
        assert client.send("MODIFY", made(finsy.P4TableAction("NoAction"))) == ""
        assert client("DELETE", "nexthops", hop=1) == ""
        assert client("INSERT", "nexthops", nothing(), hop=1) == ""
    assert client.send("MODIFY", member(to(1))) == ""
    assert client.send("DELETE", member(None)) == ""
    assert client("DELETE", "nexthops", hop=1) == ""


def test_refusals_say_names() -> None:
    text = TEXT.replace("header h_t {", '@p4runtime_translation("", string) type bit<16> vrf_t;\n'
                        "header h_t {", 1).replace("bit<16> vrf;", "vrf_t vrf;", 1)  # fmt: skip
    client = Client(text)
    assert client("INSERT", "routes", nothing(), vrf="blue", dst="10.0.0.0/8") == (
        'NOT_FOUND: table I.routes: the entry refers to I.vrfs with vrf "blue", and there is no'
        " such entry: insert that first"
    )
    assert client("INSERT", "vrfs", nothing(), vrf="blue") == ""
    assert client("INSERT", "routes", nothing(), vrf="blue", dst="10.0.0.0/8") == ""
    refused = client("DELETE", "vrfs", vrf="blue")
    assert refused.startswith('FAILED_PRECONDITION: I.vrfs with vrf "blue" is referred to by 1')


def test_a_failed_batch_leaves_no_reference(client: Client) -> None:
    assert client("INSERT", "vrfs", nothing(), vrf=7) == ""
    entries = [
        finsy.P4TableEntry("routes", match=finsy.Match(vrf=vrf, dst="1.0.0.0/8"), action=nothing())
        for vrf in (7, 8)
    ]
    messages = finsy.p4entity.encode_entities(entries, client.schema)
    updates = [p4r.Update(type=p4r.Update.INSERT, entity=message) for message in messages]
    with pytest.raises(BatchError):
        write(client.device.target, updates, p4r.WriteRequest.ROLLBACK_ON_ERROR)
    assert client("DELETE", "vrfs", vrf=7) == ""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("@refers_to(vrfs, vrf)", "@refers_to(vrf, vrf)", "there is no such table"),
        ("@refers_to(vrfs, vrf)", "@refers_to(vrfs, id)", "it has no key id"),
        ("multicast_group_id", "group_id", "it has no key group_id"),
    ],
)
def test_a_reference_to_nothing_is_refused_with_the_program(
    old: str, new: str, reason: str
) -> None:
    with pytest.raises(RpcError) as error:
        Client(TEXT.replace(old, new))
    assert error.value.message.endswith(
        f"{reason}; correct it, or start the switch with --no-restrictions"
    )


def test_they_can_be_switched_off() -> None:
    client = Client(restricted=False)
    assert client("INSERT", "routes", nothing(), vrf=7, dst="10.0.0.0/8") == ""
