"""PSA: what packet tests cannot say. Both engines do the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import v1programs
from psaprograms import packet, source, switch

import gradplane.switch
from gradplane.switch import CompileError, MeterConfig, Switch, SwitchError
from gradplane.switch.interp.trace_events import Copied, Dropped, Entered
from gradplane.switch.ir.types import Bits
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.control_messages import Digest, Fault, IdleNotice, PacketIn
from gradplane.switch.runtime.entries import Entry, GroupRef
from gradplane.switch.runtime.packet_passes import PASS_LIMIT, PASSES_A_PACKET
from gradplane.switch.runtime.profiles import Weighted

TO_1 = "send_to_port(o, (PortId_t) 1);"
PORT_CPU, PORT_RECIRCULATE = 0xFFFF_FFFD, 0xFFFF_FFFA

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])


# -- the architecture of a program --------------------------------------------------------------


def test_the_package_says_which_architecture_runs() -> None:
    assert Switch("x.p4", text=source()).process(0, packet()) == [(1, packet())]
    assert Switch("x.p4", text=source(), arch="psa").process(0, packet()) == [(1, packet())]
    with pytest.raises(
        SwitchError, match="v1model runs a V1Switch, but .* of type PSA_Switch; leave"
    ):
        Switch("x.p4", text=source(), arch="v1model")
    with pytest.raises(SwitchError, match="psa runs a PSA_Switch, but .* of type V1Switch"):
        Switch("x.p4", text=v1programs.source(), arch="psa")
    with pytest.raises(SwitchError, match="no architecture 'x'; architectures: .*psa, .*v1model"):
        Switch("x.p4", text=source(), arch="x")


def test_a_package_of_no_known_architecture_is_refused() -> None:
    other = "control C(); package Other(C c); control c() { apply { } } Other(c()) main;"
    known = (
        r"main is of type Other; supported packages: .*PSA_Switch \(psa\), .*V1Switch \(v1model\)"
    )
    with pytest.raises(CompileError, match="x.p4:1:60: error: the program's " + known):
        Switch("x.p4", text=other)


@engines
def test_a_program_may_declare_psa_itself_with_widths_of_its_own(engine: str) -> None:
    psa = (Path(gradplane.switch.__file__).parent / "arch/psa/include/psa.p4").read_text()
    psa = psa.replace("bit<32> PortIdUint_t", "bit<10> PortIdUint_t").replace("0xfffffff", "0x3f")
    text = source(
        ingress="send_to_port(o, h.a.x == 1 ? PSA_PORT_RECIRCULATE : (PortId_t) 5);",
        egress_deparser="h.a.y = psa_recirculate(o, s) ? 8w1 : 2;"
        "h.a.z = ((PortIdUint_t) s.egress_port)[9:2];",
    ).replace("#include <psa.p4>", psa)
    sw = Switch("x.p4", text=text, engine=engine)
    assert sw.process(0, packet()) == [(5, packet(0, 0, 2, 1))]
    assert sw.process(0, packet(x=1)) == [(0x3FA, packet(0, 1, 2, 0xFE))]  # a port as any other


# -- externs in the wrong place -----------------------------------------------------------------


def refused(**parts: str) -> str:
    with pytest.raises(CompileError) as caught:
        switch(**parts)
    return str(caught.value)


def test_digests_are_of_the_ingress_deparser() -> None:
    message = refused(ingress_locals="Digest<a_t>() d;", ingress=TO_1 + "d.pack(h.a);")
    assert "Digest.pack may be called in the ingress deparser only, not in the ingress" in message


def test_questions_about_the_packet_are_for_its_deparser() -> None:
    message = refused(ingress="if (psa_normal(o)) { h.a.x = 1; }")
    assert "psa_normal may be called in the ingress deparser only" in message
    message = refused(egress="if (psa_clone_e2e(o)) { h.a.x = 1; }")
    assert "psa_clone_e2e may be called in the egress deparser only" in message


TABLE = "table t { key = { h.a.x : exact; } actions = { act; } default_action = act(); %s }"


def test_direct_counters_and_meters_are_for_their_tables_actions() -> None:
    counter = "DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) dc;"
    owned = counter + "action act() { dc.count(); }" + TABLE % "psa_direct_counter = dc;"
    message = refused(ingress_locals=owned, ingress="t.apply(); dc.count();")
    assert "DirectCounter.count may be called in an action of the table that owns" in message
    assert "psa_direct_counter = ingress.dc" in message
    message = refused(ingress_locals=counter + "action act() { dc.count(); }" + TABLE % "",
                   ingress="t.apply();")  # fmt: skip
    assert "DirectCounter.count may be called in an action" in message
    other = TABLE.replace(" t ", " u ") % "psa_direct_counter = dc;"
    message = refused(ingress_locals=owned + other, ingress="t.apply(); u.apply();")
    assert "psa_direct_counter: this direct_counter belongs to table ingress.t" in message
    meter = "DirectMeter(PSA_MeterType_t.BYTES) dm; PSA_MeterColor_t c;"
    message = refused(ingress_locals=meter, ingress="c = dm.execute();")
    assert "DirectMeter.execute may be called in an action" in message


def test_a_checksum_belongs_to_one_block() -> None:
    message = refused(types="InternetChecksum() ck;", ingress=TO_1 + "ck.clear();",
                   egress="ck.clear();")  # fmt: skip
    assert "InternetChecksum ck is used in more than one block" in message


def test_internet_checksums_are_of_16_bit_words() -> None:
    message = refused(egress_locals="InternetChecksum() ck;", egress="ck.add({ h.a.x, h.a });")
    assert "InternetChecksum.add: the data has 40 bits, which is no multiple of 16" in message


def test_v1models_externs_are_not_psas() -> None:
    message = refused(types="extern void clone(in bit<32> session);", ingress="clone(1);")
    assert "extern clone has no implementation" in message


def test_bmv2s_name_of_the_include_is_known() -> None:
    text = source().replace("<psa.p4>", "<bmv2/psa.p4>")
    assert Switch("x.p4", text=text).process(0, packet()) == [(1, packet())]


def test_the_pipelines_may_be_made_in_place() -> None:
    text = source()
    start = text.index("IngressPipeline(Ingress")
    text = text[:start] + (
        "PSA_Switch(IngressPipeline(IngressParserImpl(), ingress(), IngressDeparserImpl()),"
        "PacketReplicationEngine(),"
        "EgressPipeline(EgressParserImpl(), egress(), EgressDeparserImpl()),"
        "BufferingQueueingEngine()) main;"
    )
    assert Switch("x.p4", text=text).process(0, packet()) == [(1, packet())]


def test_registers_hold_numbers() -> None:
    message = refused(ingress_locals="Register<a_t, bit<8>>(4) r;")
    assert "Register of header a_t" in message or "a cell must be bit<W>, int<W> or bool" in message


def test_indices_bounds_and_results_are_numbers() -> None:
    message = refused(ingress_locals="Counter<bit<32>, a_t>(4, PSA_CounterType_t.BYTES) c;",
                   ingress="c.count(h.a);")  # fmt: skip
    assert "argument 1 of Counter.count must be bit<W>, int<W> or bool, not" in message
    message = refused(ingress_locals="Hash<bit<8>>(PSA_HashAlgorithm_t.CRC16) c;",
                   ingress="h.a.x = c.get_hash(h.a, h.a.y, h.a);")  # fmt: skip
    assert "argument 3 of Hash.get_hash must be bit<W>" in message
    message = refused(ingress_locals="Hash<a_t>(PSA_HashAlgorithm_t.CRC16) c;",
                   ingress="h.a = c.get_hash(h.a.y);")  # fmt: skip
    assert "Hash of a_t: it must be bit<W> or int<W>" in message


# -- messages -----------------------------------------------------------------------------------


@engines
def test_digests_go_by_their_instance(engine: str) -> None:
    sw = switch(
        engine,
        types="struct learn_t { bit<8> x; PortId_t port; }",
        metadata="PortId_t port;",
        parser="m.port = s.ingress_port; pkt.extract(h.a); transition accept;",
        ingress=TO_1 + "if (h.a.kind == 2) { ingress_drop(o); }",
        deparser_locals="Digest<learn_t>() learnt; Digest<learn_t>() other;",
        deparser="if (h.a.x == 7) { learnt.pack({ h.a.x, m.port }); } other.pack({ 1, m.port });",
    )
    sw.process(9, packet(x=7))
    first, second = sw.messages()
    assert isinstance(first, Digest) and isinstance(second, Digest)
    assert (first.name, first.data) == ("IngressDeparserImpl.learnt", [7, 9])
    assert (second.name, second.data) == ("IngressDeparserImpl.other", [1, 9])
    sw.process(9, packet(kind=2))  # of dropped packets too: their deparser runs
    assert [m.name for m in sw.messages() if isinstance(m, Digest)] == ["IngressDeparserImpl.other"]


@engines
def test_the_cpu_port_is_psas_own(engine: str) -> None:
    text = source(ingress="if (s.ingress_port == PSA_PORT_CPU) { send_to_port(o, (PortId_t) 5); }"
                          "else { send_to_port(o, PSA_PORT_CPU); }")  # fmt: skip
    sw = Switch("x.p4", text=text, engine=engine, cpu_port=510)
    assert sw.cpu_port == PORT_CPU
    assert sw.process(510, packet(1)) == []
    assert sw.messages() == [PacketIn(packet(1))]
    assert sw.process(PORT_CPU, packet(2)) == [(5, packet(2))]


@engines
def test_clone_session_0_leads_to_the_cpu(engine: str) -> None:
    sw = switch(engine, ingress=TO_1 + "o.clone = true;"
                "o.clone_session_id = PSA_CLONE_SESSION_TO_CPU; h.a.x = 9;")  # fmt: skip
    assert sw.process(3, packet(1)) == [(1, packet(1, 9))]
    assert sw.messages() == [PacketIn(packet(1))]
    sw.clone_session(0, [4])
    assert sw.process(3, packet(1)) == [(4, packet(1)), (1, packet(1, 9))]


# -- copies -------------------------------------------------------------------------------------


@engines
def test_clones_are_cut_before_egress_and_have_their_sessions_class(engine: str) -> None:
    sw = switch(
        engine,
        ingress=TO_1 + "o.clone = true; o.clone_session_id = (CloneSessionId_t) 3;"
        "o.class_of_service = (ClassOfService_t) 1;",
        egress="if (s.parser_error != error.NoError) { h.a.setValid(); h.a.kind = 0xee; }"
        "if (s.packet_path == PSA_PacketPath_t.CLONE_I2E) { h.a.z = 1; }"
        "h.a.y = (bit<8>) (ClassOfServiceUint_t) s.class_of_service;",
    )
    sw.clone_session(3, [6], truncate=5, class_of_service=200)
    clone, normal = sw.process(0, packet(payload=b"abc"))
    assert clone == (6, packet(0, 0, 200, 1, b"a"))
    assert normal == (1, packet(0, 0, 1, 0, b"abc"))
    sw.clone_session(3, [6], truncate=2, class_of_service=255)
    clone, _ = sw.process(0, packet())
    assert clone == (6, packet(0xEE, 0, 255, 1, b"\0\0"))


@engines
def test_what_never_ends_is_ended(engine: str) -> None:
    sw = switch(engine, ingress=TO_1 + "o.resubmit = true;")
    assert sw.process(0, packet()) == []
    assert sw.state.drops == {f"a packet was resubmitted or recirculated {PASS_LIMIT} times": 1}
    sw = switch(engine, egress="o.clone = true; o.clone_session_id = (CloneSessionId_t) 2;")
    sw.clone_session(2, [8])
    assert len(sw.process(0, packet())) == PASS_LIMIT
    assert sw.state.drops == {f"a packet was cloned {PASS_LIMIT} times in a row": 1}
    assert isinstance(sw.messages()[0], Fault)
    sw = switch(engine, ingress="multicast(o, (MulticastGroup_t) 1);")
    sw.multicast(1, [(PORT_RECIRCULATE, 1), (PORT_RECIRCULATE, 2)])
    assert sw.process(0, packet()) == []
    (reason,) = sw.state.drops
    assert reason == f"one packet took {PASSES_A_PACKET} passes"


@engines
def test_drops_are_counted_by_reason(engine: str) -> None:
    sw = switch(
        engine,
        ingress="if (h.a.x == 1) { send_to_port(o, (PortId_t) 1); }"
        "if (h.a.x > 1) { multicast(o, (MulticastGroup_t) (bit<32>) h.a.x); }"
        "if (h.a.x == 9) { multicast(o, (MulticastGroup_t) 65536); } assert(h.a.x != 5);",
        egress="egress_drop(o); assert(h.a.y != 5);",
    )
    for x, y in ((0, 0), (1, 0), (1, 5), (3, 0), (5, 0), (9, 0)):
        assert sw.process(0, packet(x=x, y=y)) == []
    drops = dict(sw.state.drops)
    assert drops.pop("ingress: drop is set") == 1
    assert drops.pop("egress: drop is set") == 1
    assert drops.pop("multicast group 3 has no members") == 1
    assert drops.pop("multicast group of 65536 or more") == 1
    assert [reason.endswith("assert failed") for reason in drops] == [True, True]


@engines
def test_passes_one_at_a_time(engine: str) -> None:
    """run_once hands out what comes again, with its port and what it takes along."""
    sw = switch(
        engine,
        parser="m = resubmitted; m.kept = m.kept + recirculated.kept;"
        "pkt.extract(h.a); transition accept;",
        ingress="h.a.y = m.kept; if (m.kept == 0) { send_to_port(o, PSA_PORT_RECIRCULATE); }"
        "if (m.kept == 5) { ingress_drop(o); o.drop = false; o.resubmit = true; }"
        "if (m.kept == 7) { send_to_port(o, s.ingress_port); }",
        deparser="if (psa_resubmit(o)) { resubmit.kept = 7; }",
        egress_deparser="if (psa_recirculate(o, s)) { recirculate.kept = 5; }",
    )
    outputs, (first,) = sw.run_once(3, packet())
    assert outputs == [] and first.port == PORT_RECIRCULATE
    outputs, (second,) = sw.run_once(0, first)
    assert outputs == [] and second.port == PORT_RECIRCULATE
    assert second.packet == packet()
    outputs, (third,) = sw.run_once(0, second)
    assert outputs == [] and third.packet == packet(y=7)


# -- tables -------------------------------------------------------------------------------------

METERED = {
    "ingress_locals": "Meter<bit<8>>(2, PSA_MeterType_t.PACKETS) m1;"
    "DirectMeter(PSA_MeterType_t.BYTES) dm; PSA_MeterColor_t c = PSA_MeterColor_t.GREEN;"
    "action act() { c = dm.execute(c); } " + TABLE % "psa_direct_meter = dm;",
    "ingress": TO_1 + "c = m1.execute(h.a.x); h.a.y = c == PSA_MeterColor_t.GREEN ? 8w1 :"
    "c == PSA_MeterColor_t.YELLOW ? 8w2 : 3; t.apply(); h.a.z = c == PSA_MeterColor_t.GREEN ? 8w1 :"
    "c == PSA_MeterColor_t.YELLOW ? 8w2 : 3;",
}


@engines
def test_meters_colour_and_a_colour_never_gets_better(engine: str) -> None:
    sw = switch(engine, **METERED)
    sw.meter("m1").write(1, MeterConfig(cir=0, cburst=1, pir=0, pburst=2))
    entry = sw.table("t").add({"h.a.x": 1}, "act")
    entry.meter.configure(MeterConfig(cir=0, cburst=100, pir=0, pburst=200))
    seen = [sw.process(0, packet(x=1))[0][1][2:] for _ in range(4)]
    # Green, yellow, red by the first; the second has tokens left for all, and keeps the colour.
    assert seen == [b"\1\1", b"\2\2", b"\3\3", b"\3\3"]
    assert (entry.meter.committed, entry.meter.excess) == (96, 192)
    assert sw.meter("m1").counts(1) == entry.meter.counts == ((1, 4), (1, 4), (2, 8))


@engines
def test_a_single_rate_meter_keeps_a_colour_too(engine: str) -> None:
    sw = switch(engine, **METERED)
    sw.meter("m1").write(1, MeterConfig(cir=0, cburst=1, eburst=1))
    entry = sw.table("t").add({"h.a.x": 1}, "act")
    entry.meter.configure(MeterConfig(cir=0, cburst=100, eburst=100))
    seen = [sw.process(0, packet(x=1))[0][1][2:] for _ in range(3)]
    assert seen == [b"\1\1", b"\2\2", b"\3\3"]
    assert (entry.meter.committed, entry.meter.excess) == (96, 96)


PROFILED = (
    "{kind} impl; action set(bit<8> v) {{ h.a.y = v; }} action empty() {{ h.a.y = 0xee; }}"
    "table t {{ key = {{ h.a.x : exact; {selector} }} actions = {{ set; empty; NoAction; }}"
    "psa_implementation = impl; {more} }}"
)


@engines
def test_action_profiles(engine: str) -> None:
    locals_ = PROFILED.format(kind="ActionProfile(4)", selector="", more="")
    sw = switch(engine, ingress_locals=locals_, ingress=TO_1 + "t.apply();")
    sw.profile("impl").add_member(1, "set", {"v": 7})
    sw.table("t").add({"h.a.x": 1}, member=1)
    assert sw.process(0, packet(x=1)) == [(1, packet(x=1, y=7))]
    assert sw.process(0, packet(x=2)) == [(1, packet(x=2))]


@pytest.mark.p4runtime("9.2.4-1 9.2.4-2")
@engines
def test_action_selectors_and_empty_groups(engine: str) -> None:
    kind = "ActionSelector(PSA_HashAlgorithm_t.CRC16, 8, 16)"
    more = "psa_empty_group_action = empty();"
    locals_ = PROFILED.format(kind=kind, selector="h.a.z : selector;", more=more)
    sw = switch(engine, ingress_locals=locals_,
                ingress=TO_1 + "if (t.apply().hit) { h.a.kind = 1; }")  # fmt: skip
    profile, table = sw.profile("impl"), sw.table("t")
    for member in (1, 2):
        profile.add_member(member, "set", {"v": member})
    profile.add_group(1, [1, 2])
    profile.add_group(2, [])
    table.add({"h.a.x": 1}, group=1)
    table.add({"h.a.x": 2}, group=2)
    chosen = {sw.process(0, packet(x=1, z=z))[0][1][2] for z in range(32)}
    assert chosen == {1, 2}
    assert sw.process(0, packet(x=2)) == [(1, packet(1, 2, 0xEE))]
    assert sw.process(0, packet(x=3)) == [(1, packet(0, 3))]
    profile.state.modify_group(2, profile.state.groups[1].members)
    assert sw.process(0, packet(x=2))[0][1][2] in (1, 2)
    profile.add_group(3, [(1, 1, 8)])
    table.add({"h.a.x": 4}, group=3)
    assert sw.process(0, packet(x=4)) == [(1, packet(1, 4, 1))]
    sw.set_link(8, up=False)  # all members watch ports that are down
    assert sw.process(0, packet(x=4)) == [(1, packet(1, 4, 0xEE))]


def test_an_empty_group_without_an_action_of_its_own_has_no_action() -> None:
    """This holds for any default action, where the table has NoAction (PSA, action selectors)."""
    kind = "ActionSelector(PSA_HashAlgorithm_t.CRC16, 8, 16)"
    locals_ = PROFILED.format(kind=kind, selector="", more="default_action = set(3);")
    for listed, y in (("NoAction;", 0), ("", 3)):
        sw = switch(
            ingress_locals=locals_.replace("NoAction;", listed), ingress=TO_1 + "t.apply();"
        )
        sw.profile("impl").add_group(1, [])
        sw.state.tables["ingress.t"].insert(Entry(((1,),), GroupRef(1)))
        assert sw.process(0, packet(x=1)) == [(1, packet(x=1, y=y))]
        assert sw.process(0, packet(x=2)) == [(1, packet(x=2, y=3))]


SHARED = (
    "ActionSelector(PSA_HashAlgorithm_t.CRC16, 8, 16) impl;"
    "action add(bit<8> v) {{ h.a.y = h.a.y + v; }} action mark() {{ h.a.z = 0xee; }}"
    "table t {{ key = {{ h.a.x : exact; h.a.kind : selector; }} actions = {{ add; mark; }}"
    "psa_implementation = impl; }}"
    "table u {{ key = {{ h.a.x : exact; {key}; }} actions = {{ {actions} }}"
    "psa_implementation = impl; }}"
)


@engines
def test_tables_share_a_profile_whatever_the_order_of_their_actions(engine: str) -> None:
    locals_ = SHARED.format(key="h.a.kind : selector", actions="mark; add;")
    apply = (
        TO_1 + "t.apply(); switch (u.apply().action_run) { add: { h.a.kind = 1; } default: { } }"
    )
    sw = switch(engine, ingress_locals=locals_, ingress=apply)
    sw.profile("impl").add_member(1, "add", {"v": 3})
    sw.profile("impl").add_member(2, "mark")
    for table in ("t", "u"):
        for member in (1, 2):
            sw.table(table).add({"h.a.x": member}, member=member)
    assert sw.process(0, packet(x=1)) == [(1, packet(1, 1, 6))]
    assert sw.process(0, packet(x=2)) == [(1, packet(0, 2, 0, 0xEE))]


@engines
def test_an_entry_has_members_with_actions_of_its_own_table_only(engine: str) -> None:
    """t lists add and mark, u hide and mark; members 1, 2 and 3 have add, mark and hide."""
    locals_ = "action hide() { h.a.kind = 0xdd; }"
    locals_ += SHARED.format(key="h.a.kind : selector", actions="hide; mark;")
    sw = switch(engine, ingress_locals=locals_, ingress=TO_1 + "t.apply(); u.apply();")
    profile, t, u = sw.profile("impl"), sw.table("t"), sw.table("u")
    profile.add_member(1, "add", {"v": 3})
    profile.add_member(2, "mark")
    profile.add_member(3, "hide")
    profile.add_group(8, [1, 2])
    u.add({"h.a.x": 1}, member=3)
    t.add({"h.a.x": 1}, group=8)
    with pytest.raises(TableError) as said:
        u.add({"h.a.x": 2}, group=8)
    assert said.value.code == "INVALID_ARGUMENT"
    assert str(said.value) == (
        "table ingress.u: a member of ingress.impl has action ingress.add; its actions: "
        "ingress.hide, ingress.mark"
    )
    for refused_change in (
        lambda: t.modify({"h.a.x": 1}, member=3),
        lambda: profile.modify_member(3, "add", {"v": 1}),
        lambda: profile.modify_member(2, "hide"),
        lambda: profile.state.modify_group(8, [Weighted(3)]),
    ):
        with pytest.raises(TableError):
            refused_change()
    profile.state.modify_group(8, [Weighted(2)])
    assert sw.process(0, packet(x=1)) == [(1, packet(0xDD, 1, 0, 0xEE))]
    profile.modify_member(1, "hide")
    u.modify({"h.a.x": 1}, member=1)
    profile.remove_member(3)


@pytest.mark.parametrize(
    ("key", "read"),
    [
        ("h.a.z : selector", "h.a.z"),
        ("h.a.kind : selector; h.a.z : selector", "h.a.kind, h.a.z"),
        ('h.a.z : selector @name("h.a.kind")', "h.a.z"),
        ("h.a.kind[3:0] : selector", "h.a.kind[3:0]"),
    ],
)
def test_tables_that_share_a_selector_give_its_hash_the_same_values(key: str, read: str) -> None:
    message = refused(ingress_locals=SHARED.format(key=key, actions="add; mark;"),
                   ingress=TO_1 + "t.apply(); u.apply();")  # fmt: skip
    assert "but not its keys of kind selector\n" in message
    assert f"\n    table ingress.u has {read}; table ingress.t has h.a.kind" in message


def test_tables_that_share_a_selector_may_give_its_keys_names_of_their_own() -> None:
    locals_ = SHARED.format(key='h.a.kind : selector @name("k")', actions="add; mark;")
    switch("interpreter", ingress_locals=locals_, ingress=TO_1 + "t.apply(); u.apply();")


def test_selector_keys_are_for_selectors() -> None:
    locals_ = PROFILED.format(kind="ActionProfile(4)", selector="h.a.z : selector;", more="")
    message = refused(ingress_locals=locals_)
    assert "has a key of kind selector and no action selector" in message


def test_entries_of_a_table_with_an_action_profile_are_the_control_planes() -> None:
    more = "const entries = { 1 : set(3); }"
    message = refused(
        ingress_locals=PROFILED.format(kind="ActionProfile(4)", selector="", more=more)
    )
    assert "table ingress.t has entries and the action profile ingress.impl" in message


def test_an_idle_timeout_is_of_its_enum() -> None:
    message = refused(ingress_locals="action act() { }" + TABLE % "psa_idle_timeout = true;")
    assert "property psa_idle_timeout must be a member of PSA_IdleTimeout_t" in message


def test_an_action_for_empty_groups_must_be_the_tables() -> None:
    locals_ = PROFILED.format(kind="ActionProfile(4)", selector="",
                              more="psa_empty_group_action = other();")  # fmt: skip
    message = refused(ingress_locals="action other() { }" + locals_)
    assert "action other is not in the list of table t" in message


@engines
def test_idle_entries_are_reported(engine: str) -> None:
    now = [0]
    idle = "psa_idle_timeout = PSA_IdleTimeout_t.%s;"
    for wanted, expected in (("NOTIFY_CONTROL", 1), ("NO_TIMEOUT", 0)):
        sw = switch(engine, clock=lambda: now[0], ingress=TO_1 + "t.apply();",
                    ingress_locals="action act() { }" + TABLE % (idle % wanted))  # fmt: skip
        entry = sw.table("t").add({"h.a.x": 1}, "act")
        entry.idle_timeout_ns = 1000
        now[0] += 900
        sw.process(0, packet(x=1))
        now[0] += 900
        assert sw.messages() == []
        now[0] += 900
        notices = [m for m in sw.messages() if isinstance(m, IdleNotice)]
        assert len(notices) == expected


def test_the_direct_counter_of_misses_counts_where_the_default_action_does() -> None:
    locals_ = ("DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) dc; action act() { dc.count(); }"
               + TABLE % "psa_direct_counter = dc;")  # fmt: skip
    sw = switch(ingress_locals=locals_, ingress=TO_1 + "t.apply();")
    sw.process(0, packet())
    assert sw.table("t").state.default_counter.packets == 1


def test_types_in_registers_are_the_programs() -> None:
    sw = switch(ingress_locals="Register<PortId_t, PortId_t>(4, (PortId_t) 9) ports;",
                ingress="send_to_port(o, ports.read(s.ingress_port));")  # fmt: skip
    assert sw.register("ports").type == Bits(32)
    assert sw.process(1, packet()) == [(9, packet())]


# -- traces -------------------------------------------------------------------------------------


def test_a_trace_shows_all_blocks_and_copies() -> None:
    sw = switch(
        ingress=TO_1 + "o.clone = true; o.clone_session_id = (CloneSessionId_t) (bit<16>) h.a.x;"
    )
    sw.clone_session(1, [7])
    events = sw.trace(0, packet(x=1)).events
    entered = [e.block for e in events if isinstance(e, Entered)]
    assert entered == [
        "ingress parser", "ingress", "ingress deparser",
        "egress parser, port 7", "egress", "egress deparser",
        "egress parser, port 1", "egress", "egress deparser",
    ]  # fmt: skip
    assert [e.what for e in events if isinstance(e, Copied)] == ["cloned to session 1, ports 7"]
    sw = switch(ingress="")
    (dropped,) = (e for e in sw.trace(0, packet()).events if isinstance(e, Dropped))
    assert dropped.reason == "ingress: drop is set"


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_counters_of_dpdks_file_count_the_bytes_that_they_are_given(engine: str) -> None:
    counted = "Counter<bit<32>, bit<8>>(4, PSA_CounterType_t.BYTES) bytes;"
    text = source(ingress_locals=counted, ingress="bytes.count(3, (bit<32>) h.a.x << 8);")
    with pytest.raises(CompileError, match="count"):
        Switch("test.p4", text=text)
    sw = Switch("test.p4", text=text.replace("<psa.p4>", "<dpdk/psa.p4>"), engine=engine)
    sw.process(0, packet(x=200))
    assert sw.state.counters["ingress.bytes"].bytes[3] == 200 << 8
