"""P4Info as p4c gives it: ids, aliases, shapes."""

from __future__ import annotations

import pytest
from finsy.proto import p4i
from google.protobuf import text_format
from hand_made_ir import extern, note, program, table, var

from gradplane.switch.arch.v1model import ARCHITECTURE
from gradplane.switch.control.names import P4InfoError, P4InfoKind, Symbols, field_ids
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Annotation, Bits, Bool, Field, Header, NewType, Struct
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text
from gradplane.switch.source import CompileError


@pytest.mark.p4runtime("6.3-1")
@pytest.mark.parametrize(
    ("kind", "name", "number"),
    [
        # As published in many projects' P4Info files.
        (P4InfoKind.TABLE, "MyIngress.ipv4_lpm", 37375156),
        (P4InfoKind.TABLE, "MyIngress.dmac_table", 35550025),
        (P4InfoKind.ACTION, "MyIngress.drop", 25652968),
        (P4InfoKind.ACTION, "MyIngress.ipv4_forward", 28792405),
        (P4InfoKind.ACTION, "NoAction", 21257015),
        (P4InfoKind.CONTROLLER_HEADER, "packet_in_header_t", 81826293),
        (P4InfoKind.CONTROLLER_HEADER, "packet_out_header_t", 76689799),
    ],
)
def test_ids_are_those_of_p4c(kind: P4InfoKind, name: str, number: int) -> None:
    symbols = Symbols()
    symbols.add(kind, name)
    symbols.assign()
    assert symbols.id(kind, name) == number


def test_a_taken_id_moves_on_to_the_next() -> None:
    symbols = Symbols()
    symbols.add(P4InfoKind.TABLE, "other", (note("id", 37375156),))
    symbols.add(P4InfoKind.TABLE, "MyIngress.ipv4_lpm")
    symbols.assign()
    assert symbols.id(P4InfoKind.TABLE, "MyIngress.ipv4_lpm") == 37375157


@pytest.mark.p4runtime("6.1.2-1")
def test_aliases_are_the_shortest_unique_suffixes() -> None:
    symbols = Symbols()
    for kind, name in [(1, "a.x.t"), (1, "b.x.t"), (2, "b.u"), (1, "NoAction"), (2, "t2")]:
        symbols.add(P4InfoKind(kind), name)
    symbols.assign()
    names = ["a.x.t", "b.x.t", "b.u", "NoAction", "t2"]
    assert [symbols.alias(n) for n in names] == ["a.x.t", "b.x.t", "u", "NoAction", "t2"]


@pytest.mark.p4runtime("6.3-5 6.4.1-2")
def test_field_ids_count_from_one_around_the_fixed_ones() -> None:
    assert field_ids([(), (note("id", 1),), (), (note("id", 7),), ()], "t") == [2, 1, 3, 7, 4]
    assert field_ids([(), (), ()], "t") == [1, 2, 3]


@pytest.mark.p4runtime("6.3-2 6.3-3")
@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (note("id", 0x01000005), "t: @id(0x1000005) does not fit: the upper 8 of its 32 bits"
         " must be 0x02 (or 0) for this kind of object"),
        (note("id", body="x"), "@id(x): expected one positive number"),
    ],
)  # fmt: skip
def test_a_wrong_id_annotation_is_refused(annotation: object, message: str) -> None:
    with pytest.raises(P4InfoError) as caught:
        Symbols().add(P4InfoKind.TABLE, "t", (annotation,))  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.p4runtime("6.3-4")
def test_two_objects_with_one_id_are_refused() -> None:
    symbols = Symbols()
    symbols.add(P4InfoKind.TABLE, "t", (note("id", 5),))
    with pytest.raises(P4InfoError) as caught:
        symbols.add(P4InfoKind.TABLE, "u", (note("id", 0x02000005),))
    assert str(caught.value) == "u: @id(0x02000005) is taken by another object"
    with pytest.raises(P4InfoError) as caught:
        field_ids([(note("id", 2),), (note("id", 2),)], "t")
    assert str(caught.value) == "t: @id(2) is given to two of its fields"


@pytest.mark.p4runtime("6.4.1-1 6.4.1-8 6.4.2-1 6.4.4-1 6.4.6-1 6.4.6-2 6.4.8-1")
def test_the_whole_text() -> None:
    assert p4info_text(build_p4info(program())) == EXPECTED
    assert text_format.Parse(EXPECTED, p4i.P4Info()) == build_p4info(program())


def test_hidden_objects_are_not_listed() -> None:
    hidden = table("MyIngress.secret", [], [ir.Action("a", [], [])])
    hidden.annotations = (note("hidden"),)
    info = build_p4info(program(tables=[hidden], actions=[]))
    assert not info.tables


@pytest.mark.p4runtime("6.4.1-6 6.4.3-1 6.4.3-2")
def test_profiles_selectors_and_keys_that_only_feed_the_hash() -> None:
    profile = extern("action_profile", "I.p", 32)
    selector = extern("action_selector", "I.s", "crc16", 64, 14)
    selector.annotations = (note("max_group_size", 8),)
    key = var("x", Bits(16))
    action = ir.Action("NoAction", [], [])
    two = [
        table(
            f"I.{name}",
            [ir.Key("h", key, "selector"), ir.Key("k", key, "exact")],
            [action],
            implementation=selector,
        )
        for name in ("b", "a")
    ]
    info = build_p4info(program(tables=two, actions=[action], externs=[profile, selector]))
    p, s = info.action_profiles
    assert (p.size, p.with_selector, list(p.table_ids)) == (32, False, [])
    assert (s.size, s.with_selector, s.max_group_size) == (64, True, 8)
    assert not s.preamble.annotations
    assert s.WhichOneof("selector_size_semantics") is None  # which means the sum of weights
    assert list(s.table_ids) == [info.tables[1].preamble.id, info.tables[0].preamble.id]
    assert [(f.id, f.name) for f in info.tables[0].match_fields] == [(2, "k")]
    assert info.tables[0].implementation_id == s.preamble.id


def described_selector(*annotations: Annotation) -> p4i.ActionProfile:
    selector = extern("action_selector", "I.s", "crc16", 64, 14)
    selector.annotations = annotations
    info = build_p4info(program(tables=[], actions=[], externs=[selector]))
    return info.action_profiles[0]


@pytest.mark.p4runtime("6.4.3-2 6.4.3-3")
@pytest.mark.parametrize("word", ["sum_of_members", "SUM_OF_MEMBERS"])
def test_selector_annotations_have_fields_of_their_own(word: str) -> None:
    notes = note("selector_size_semantics", word), note("max_member_weight", 4095)
    found = described_selector(*notes, note("mine", body="x"))
    assert found.sum_of_members.max_member_weight == 4095
    assert list(found.preamble.annotations) == ["@mine(x)"]


def test_a_members_weight_is_only_for_sums_of_members() -> None:
    notes = note("selector_size_semantics", "sum_of_weights"), note("max_member_weight", 9)
    found = described_selector(*notes)
    assert found.WhichOneof("selector_size_semantics") == "sum_of_weights"
    assert not found.preamble.annotations


def test_unknown_size_semantics_are_refused() -> None:
    with pytest.raises(CompileError) as caught:
        described_selector(note("selector_size_semantics", "weights"))
    expected = 'expected "sum_of_weights" or "sum_of_members"'
    assert f'@selector_size_semantics("weights"): {expected}' in str(caught.value)


def test_annotations_of_a_new_type_are_passed_on() -> None:
    notes = note("p4runtime_translation", "", body='"", string'), note("mappings", body="{ 1 }")
    types = {"vrf_t": ir.TypeInfo("vrf_t", 10, "", None, notes)}
    key = ir.Key("vrf", var("vrf", Bits(10), type_name="vrf_t"), "exact", type_name="vrf_t")
    action = ir.Action("NoAction", [], [])
    found = program(tables=[table("I.t", [key], [action])], actions=[action])
    found.types = types
    described = build_p4info(found).type_info.new_types["vrf_t"]
    assert list(described.annotations) == ["@mappings({ 1 })"]
    assert described.translated_type.HasField("sdn_string")


@pytest.mark.p4runtime("6.4.9-1")
def test_digests_are_named_by_their_data() -> None:
    learn = Struct("learn_t", (Field("mac", Bits(48)), Field("port", Bits(9))))
    call = ir.CallExtern(None, "digest", [], ["in", "in"], None, [learn])
    action = ir.Action("I.learn", [], [ir.If(ir.Const(Bool(), True), [call, call], [])])
    info = build_p4info(program(actions=[action], tables=[]))
    (digest,) = info.digests
    assert (digest.preamble.name, digest.type_spec.struct.name) == ("learn_t", "learn_t")
    members = info.type_info.structs["learn_t"].members
    assert [(m.name, m.type_spec.bitstring.bit.bitwidth) for m in members] == [
        ("mac", 48),
        ("port", 9),
    ]


def test_digests_of_tuples_are_numbered() -> None:
    pair = Struct("tuple<bit<8>, bool>", (Field("f0", Bits(8)), Field("f1", Bool())))
    call = ir.CallExtern(None, "digest", [], ["in", "in"], None, [pair])
    info = build_p4info(program(actions=[ir.Action("I.a", [], [call])], tables=[]))
    assert [d.preamble.name for d in info.digests] == ["digest_0"]
    members = info.digests[0].type_spec.tuple.members
    assert [m.WhichOneof("type_spec") for m in members] == ["bitstring", "bool"]


@pytest.mark.p4runtime("6.4.6-2 8.4.7-1")
def test_a_controller_header_may_have_translated_fields() -> None:
    header = Header(
        "in_t",
        (Field("port", NewType("PortId_t", Bits(9))), Field("rest", Bits(7))),
        (note("controller_header", "packet_in"),),
    )
    info = build_p4info(program(controller_headers=[header]))
    field = info.controller_packet_metadata[0].metadata[0]
    assert (field.bitwidth, field.type_name.name) == (32, "PortId_t")


@pytest.mark.p4runtime("6.2-1 6.2.1-1")
def test_the_package_annotations() -> None:
    package = ir.Package(
        "V1Switch",
        {},
        (
            Annotation("pkginfo", pairs=(("name", "router"), ("version", "2"))),
            Annotation("pkginfo", pairs=(("contact", "me"),)),
            note("description", "long"),
            note("mine", body="a b"),
        ),
        parameters=ARCHITECTURE.parameters,
    )
    info = build_p4info(program(package=package)).pkg_info
    assert (info.name, info.version, info.arch) == ("router", "2", "v1model")
    assert info.contact == "me"
    assert info.doc.description == "long"
    assert list(info.annotations) == ["@mine(a b)"]


EXPECTED = r"""# proto-file: p4/config/v1/p4info.proto
# proto-message: p4.config.v1.P4Info

pkg_info {
  arch: "v1model"
}
tables {
  preamble {
    id: 37375156
    name: "MyIngress.ipv4_lpm"
    alias: "ipv4_lpm"
  }
  match_fields {
    id: 1
    name: "hdr.ipv4.dst"
    bitwidth: 32
    match_type: LPM
  }
  action_refs {
    id: 28792405
  }
  action_refs {
    id: 25652968
  }
  action_refs {
    id: 21257015
  }
  initial_default_action {
    action_id: 21257015
  }
  direct_resource_ids: 329343244
  size: 1024
}
tables {
  preamble {
    id: 33554551
    name: "MyIngress.acl"
    alias: "acl"
    doc {
      brief: "who may pass"
    }
  }
  match_fields {
    id: 1
    name: "hdr.ipv4.src"
    bitwidth: 32
    match_type: TERNARY
  }
  match_fields {
    id: 2
    name: "hdr.ipv4.dport"
    bitwidth: 16
    match_type: RANGE
  }
  match_fields {
    id: 9
    name: "hdr.ipv4.kind"
    bitwidth: 8
    match_type: OPTIONAL
  }
  match_fields {
    id: 3
    name: "flag"
    bitwidth: 1
    match_type: EXACT
  }
  action_refs {
    id: 27927631
  }
  action_refs {
    id: 25652968
  }
  action_refs {
    id: 21257015
  }
  initial_default_action {
    action_id: 21257015
  }
  size: 4
}
tables {
  preamble {
    id: 33896458
    name: "MyEgress.fixed"
    alias: "fixed"
  }
  match_fields {
    id: 1
    name: "hdr.ipv4.kind"
    bitwidth: 8
    match_type: EXACT
  }
  action_refs {
    id: 27927631
  }
  action_refs {
    id: 21257015
  }
  const_default_action_id: 21257015
  initial_default_action {
    action_id: 21257015
  }
  size: 1024
  is_const_table: true
  has_initial_entries: true
}
actions {
  preamble {
    id: 21257015
    name: "NoAction"
    alias: "NoAction"
    annotations: "@noWarn(\"unused\")"
  }
}
actions {
  preamble {
    id: 25652968
    name: "MyIngress.drop"
    alias: "drop"
  }
}
actions {
  preamble {
    id: 28792405
    name: "MyIngress.ipv4_forward"
    alias: "ipv4_forward"
  }
  params {
    id: 1
    name: "dstAddr"
    bitwidth: 48
  }
  params {
    id: 2
    name: "port"
    bitwidth: 32
    type_name {
      name: "PortId_t"
    }
  }
}
actions {
  preamble {
    id: 27927631
    name: "MyIngress.mark"
    alias: "mark"
  }
  params {
    id: 1
    name: "value"
    bitwidth: 12
  }
  params {
    id: 2
    name: "on"
    bitwidth: 1
  }
}
counters {
  preamble {
    id: 316013145
    name: "MyIngress.seen"
    alias: "seen"
  }
  spec {
    unit: PACKETS
  }
  size: 8
}
direct_counters {
  preamble {
    id: 329343244
    name: "MyIngress.hits"
    alias: "hits"
  }
  spec {
    unit: BOTH
  }
  direct_table_id: 37375156
}
meters {
  preamble {
    id: 339852506
    name: "MyIngress.rate"
    alias: "rate"
  }
  spec {
    unit: BYTES
  }
  size: 4
}
controller_packet_metadata {
  preamble {
    id: 81826293
    name: "packet_in"
    alias: "packet_in"
    annotations: "@controller_header(\"packet_in\")"
  }
  metadata {
    id: 1
    name: "ingress_port"
    bitwidth: 9
  }
  metadata {
    id: 2
    name: "_pad"
    bitwidth: 7
  }
}
controller_packet_metadata {
  preamble {
    id: 76689799
    name: "packet_out"
    alias: "packet_out"
    annotations: "@controller_header(\"packet_out\")"
  }
  metadata {
    id: 1
    name: "egress_port"
    bitwidth: 9
  }
  metadata {
    id: 2
    name: "_pad"
    bitwidth: 7
  }
}
registers {
  preamble {
    id: 385815193
    name: "MyIngress.acc"
    alias: "acc"
  }
  type_spec {
    bitstring {
      bit {
        bitwidth: 32
      }
    }
  }
  size: 16
}
type_info {
  new_types {
    key: "PortId_t"
    value {
      translated_type {
        uri: "p4.org/PortId_t"
        sdn_bitwidth: 32
      }
    }
  }
}
"""
