"""v1model's externs, called from programs."""

from __future__ import annotations

import logging
import zlib

import pytest
from v1programs import packet, source, switch

from gradplane.switch import CompileError, MeterConfig, Switch, SwitchError
from gradplane.switch.arch.registry import architectures
from gradplane.switch.runtime.control_messages import Digest, Fault, IdleNotice
from gradplane.switch.runtime.hashes import crc16, csum16, xor16

TO_1 = "s.egress_spec = 1;"


# -- checksums and hashes -----------------------------------------------------------------------

SUMMED = {
    "types": "header c_t { bit<16> sum; } header o_t { bit<8> p; bit<8> q; }",
    "headers": "o_t o; c_t c;",
    "parser": "pkt.extract(h.a); transition select(h.a.kind) { 1: other; default: rest; }",
    "states": "state other { pkt.extract(h.o); transition rest; }"
    "state rest { pkt.extract(h.c); transition accept; }",
    "ingress": TO_1 + "h.a.z = (bit<8>) s.checksum_error;",
}
DATA = "{ h.a.kind, h.a.x, h.o.p, h.o.q, h.a.y }"


def summed(kind: int, data: bytes, checksum: int, payload: bytes = b"") -> bytes:
    return packet(kind, 2, 3) + data + checksum.to_bytes(2, "big") + payload


@pytest.mark.parametrize("algorithm, function", [
    ("csum16", csum16), ("crc16", crc16), ("xor16", xor16),
    ("crc32", lambda data: zlib.crc32(data) & 0xFFFF),
])  # fmt: skip
def test_checksums_leave_out_fields_of_invalid_headers(algorithm: str, function: object) -> None:
    call = f"_checksum(h.a.x != 9, {DATA}, h.c.sum, HashAlgorithm.{algorithm});"
    check = switch(**SUMMED, verify="verify" + call)
    fill = switch(**SUMMED, compute="update" + call)
    for kind, data in ((0, b""), (1, b"\x45\x67")):
        right = function(bytes([kind, 2]) + data + bytes([3]))  # type: ignore[operator]
        for wrong in (0, 1):
            sent = summed(kind, data, right ^ wrong, b"payload")
            ((_, out),) = check.process(0, sent)
            assert out[3] == wrong
            ((_, out),) = fill.process(0, sent)
            assert out == summed(kind, data, right, b"payload")


def test_a_false_condition_checks_and_changes_nothing() -> None:
    call = f"_checksum(h.a.x == 9, {DATA}, h.c.sum, HashAlgorithm.csum16);"
    sw = switch(**SUMMED, verify="verify" + call, compute="update" + call)
    sent = summed(0, b"", 0x1234)
    assert sw.process(0, sent) == [(1, sent)]


def test_checksums_with_payload() -> None:
    call = "_checksum_with_payload(true, { h.a.kind, h.a.x }, h.c.sum, HashAlgorithm.csum16);"
    sw = switch(**SUMMED, verify="verify" + call, compute="update" + call)
    right = csum16(bytes([0, 2]) + b"odd")
    ((_, out),) = sw.process(0, summed(0, b"", right, b"odd"))
    assert out == summed(0, b"", right, b"odd")
    ((_, out),) = sw.process(0, summed(0, b"", 7, b"odd"))
    assert out[3] == 1 and out[4:6] == right.to_bytes(2, "big")


def test_checksum16() -> None:
    sw = switch(
        ingress_locals="Checksum16() ck; bit<16> v;",
        ingress=TO_1 + "v = ck.get({ h.a.kind, h.a.x }); h.a.y = v[15:8]; h.a.z = v[7:0];",
    )
    assert sw.process(0, packet(0x12, 0x34)) == [(1, bytes.fromhex("1234edcb"))]


def test_hash_is_base_plus_hash_modulo_max() -> None:
    sw = switch(
        types="header r_t { bit<32> v; }",
        headers="r_t r;",
        ingress=TO_1 + "h.r.setValid();"
        "hash(h.r.v, HashAlgorithm.crc32, 16w10, { h.a.x, h.a.y, 4w5 }, (bit<16>) h.a.kind);",
    )
    value = zlib.crc32(bytes([1, 2, 0x50]))
    for most, wanted in ((100, 10 + value % 100), (1, 10), (0, 10)):
        ((_, out),) = sw.process(0, packet(most, 1, 2))
        assert int.from_bytes(out[4:8], "big") == wanted


def test_identity_hash_keeps_the_bits() -> None:
    sw = switch(ingress=TO_1 + "hash(h.a.z, HashAlgorithm.identity, 8w0, {h.a.x}, 32w0x1000000);")
    assert sw.process(0, packet(0, 77)) == [(1, packet(0, 77, 0, 77))]


def test_random_repeats_with_the_seed() -> None:
    part = {"ingress": TO_1 + "random(h.a.x, 8w5, h.a.kind);"}

    def run(seed: int) -> list[int]:
        sw = switch(seed=seed, **part)
        return [sw.process(0, packet(9))[0][1][1] for _ in range(200)]

    assert set(run(1)) == set(range(5, 10))
    assert run(1) == run(1) != run(2)
    assert switch(**part).process(0, packet(3)) == [(1, packet(3, 5))]  # hi below lo


# -- arrays -------------------------------------------------------------------------------------


def test_registers() -> None:
    sw = switch(
        ingress_locals="register<bit<8>>(4) acc; register<bit<100>>(2) wide;register<int<8>>(2) n;",
        ingress=TO_1 + "bit<8> v; acc.read(v, (bit<32>) h.a.kind); h.a.z = v;"
        "acc.write((bit<32>) h.a.kind, v + h.a.x);"
        "wide.write(1, (bit<100>) h.a.x << 90); n.write(0, -(int<8>) h.a.x);",
    )
    sent = [packet(2, 200), packet(2, 100), packet(2), packet(9, 5), packet(9)]
    assert [sw.process(0, p)[0][1][3] for p in sent] == [0, 200, 44, 0, 0]
    assert list(sw.register("acc").values) == [0, 0, 44, 0]
    sw.process(0, packet(0, 5))
    assert (sw.register("wide").read(1), sw.register("I.n").read(0)) == (5 << 90, -5)
    sw.register("acc").write(2, 9)
    assert sw.process(0, packet(2))[0][1][3] == 9


def test_counters_and_direct_counters() -> None:
    sw = switch(
        ingress_locals="counter(8, CounterType.packets_and_bytes) c;"
        "direct_counter(CounterType.bytes) d; action go(bit<9> p) { s.egress_spec = p; d.count(); }"
        "action stay() { s.egress_spec = 2; }"
        "table t { key = { h.a.x: exact; } actions = { go; stay; } default_action = stay();"
        "  counters = d; }",
        ingress="c.count((bit<32>) h.a.kind); t.apply();",
    )
    hit = sw.table("t").add({"x": 1}, "go", {"p": 3})
    for x in (1, 1, 2):
        sw.process(0, packet(5, x, payload=b"ab"))
    sw.process(0, packet(200, 7))
    assert sw.counter("c").read(5) == (3, 18)
    assert (hit.counter.packets, hit.counter.bytes) == (2, 12)
    missed = sw.table("t").state.default_counter
    assert (missed.packets, missed.bytes) == (2, 10)


def test_meters_and_direct_meters() -> None:
    now = 0
    sw = switch(
        clock=lambda: now,
        ingress_locals="meter(4, MeterType.packets) m1; direct_meter<bit<8>>(MeterType.bytes) m2;"
        "action go() { m2.read(h.a.z); } action other() {}"
        "table t { key = { h.a.x: exact; } actions = { go; other; } default_action = other();"
        "  meters = m2; }",
        ingress=TO_1 + "m1.execute_meter((bit<32>) h.a.kind, h.a.y); t.apply();",
    )
    sw.meter("m1").write(2, MeterConfig(cir=1, cburst=1, pir=2, pburst=2), now)
    entry = sw.table("t").add({"x": 5}, "go")
    entry.meter.configure(MeterConfig(cir=10, cburst=4, pir=10, pburst=4), now)
    colours = [sw.process(0, packet(2, 5))[0][1][2:4] for _ in range(3)]
    assert colours == [bytes([0, 0]), bytes([1, 2]), bytes([2, 2])]
    now = 10**9
    assert sw.process(0, packet(2, 5))[0][1][2:4] == bytes([0, 0])
    assert sw.process(0, packet(1, 6, 9, 9, payload=b"more"))[0][1][2:4] == bytes([0, 9])
    # Packets and bytes that were green, yellow and red, by meters without rates too.
    assert sw.meter("m1").counts(2) == ((2, 8), (1, 4), (1, 4))
    assert sw.meter("m1").counts(1) == ((1, 8), (0, 0), (0, 0))
    assert entry.meter.counts == ((2, 8), (0, 0), (2, 8))
    assert sw.table("t").state.default_meter.counts == ((1, 8), (0, 0), (0, 0))


def test_action_selectors_choose_by_hash() -> None:
    sw = switch(
        ingress_locals="action_selector(HashAlgorithm.crc16, 16, 10) sel;"
        "action go(bit<9> p) { s.egress_spec = p; } action drop() { mark_to_drop(s); }"
        "table t { key = { h.a.kind: exact; h.a.x: selector; h.a.y: selector; }"
        "  actions = { go; drop; } implementation = sel; default_action = drop(); }",
        ingress="t.apply();",
    )
    profile = sw.profile("sel")
    for member in range(3):
        profile.add_member(member, "go", {"p": 10 + member})
    profile.add_group(1, [0, 1, 2])
    sw.table("t").add({"kind": 0}, group=1)
    sw.table("t").add({"kind": 1}, member=2)
    for x in range(20):
        ((port, _),) = sw.process(0, packet(0, x, 7))
        assert port == 10 + (crc16(bytes([x, 7])) & 0x3FF) % 3
    assert [port for port, _ in sw.process(0, packet(1))] == [12]
    assert sw.process(0, packet(2)) == []


@pytest.mark.p4runtime("9.2.2-7")
@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_members_that_watch_a_port_that_is_down_are_left_out(engine: str) -> None:
    text = source(
        ingress_locals="action_selector(HashAlgorithm.identity, 16, 8) sel;"
        "action go(bit<9> p) { s.egress_spec = p; }"
        "table t { key = { h.a.kind: exact; h.a.x: selector; } actions = { go; NoAction; }"
        "  implementation = sel; }",
        ingress="s.egress_spec = 1; t.apply();",
    )
    sw = Switch("test.p4", text=text, engine=engine)
    profile = sw.profile("sel")
    for member in (2, 3):
        profile.add_member(member, "go", {"p": member})
    profile.add_group(1, [(2, 1, 7), (3, 2, 8)])
    sw.table("t").add({"kind": 0}, group=1)

    def ports() -> list[int]:
        return [sw.process(0, packet(0, x))[0][0] for x in range(6)]

    assert ports() == [2, 3, 3] * 2
    sw.set_link(8, up=False)
    assert ports() == [2] * 6
    sw.set_link(7, up=False)
    assert ports() == [1] * 6  # as from an empty group: the default action
    sw.set_link(8, up=True)
    assert ports() == [3] * 6


# -- messages -----------------------------------------------------------------------------------


def test_digests_have_the_values_of_the_call() -> None:
    sw = switch(
        types="struct seen_t { bit<8> kind; bit<16> both; }",
        ingress="digest<seen_t>(1, { h.a.kind, h.a.x ++ h.a.y }); h.a.kind = 0;",
    )
    sw.process(0, packet(3, 1, 2))
    (digest,) = sw.messages()
    assert isinstance(digest, Digest)
    assert (digest.name, digest.data) == ("seen_t", [3, 0x0102])


def test_idle_entries_are_reported_each_time_their_timeout_passes() -> None:
    now = 0
    sw = switch(
        clock=lambda: now,
        ingress_locals="action go() { s.egress_spec = 1; }"
        "table t { key = { h.a.x: exact; } actions = { go; } support_timeout = true; }",
        ingress="t.apply();",
    )
    entry = sw.table("t").add({"x": 1}, "go")
    entry.idle_timeout_ns = 100
    now = 90
    sw.process(0, packet(0, 1))
    now = 189
    assert sw.messages() == []
    now = 190
    assert sw.messages() == [IdleNotice("I.t", entry)]
    now = 289
    assert sw.messages() == []
    now = 290
    assert sw.messages() == [IdleNotice("I.t", entry)]
    assert entry.last_hit_ns == 90
    now = 300
    sw.process(0, packet(0, 1))
    now = 399
    assert sw.messages() == []
    now = 400
    assert sw.messages() == [IdleNotice("I.t", entry)]


def test_log_messages(caplog: pytest.LogCaptureFixture) -> None:
    sw = switch(ingress=TO_1 + 'log_msg("plain"); log_msg("x = {}, y = {}", { h.a.x, h.a.y });')
    with caplog.at_level(logging.INFO, "gradplane.switch"):
        sw.process(0, packet(0, 7, 200))
    assert caplog.messages == ["plain", "x = 7, y = 0xc8"]


@pytest.mark.parametrize("name", ["assert", "assume"])
def test_a_failed_assertion_drops_the_packet_and_says_where(name: str) -> None:
    sw = switch(ingress=f"\n{TO_1}\n{name}(h.a.x != 3);")
    assert len(sw.process(0, packet(0, 1))) == 1
    assert sw.process(0, packet(0, 3)) == []
    line = source(ingress=f"\n{TO_1}\n{name}(h.a.x != 3);").splitlines().index(
        f"{name}(h.a.x != 3); }}") + 1  # fmt: skip
    assert sw.messages() == [Fault(f"packet dropped: test.p4:{line}:1: {name} failed")]


# -- what is refused when a program is loaded ---------------------------------------------------


def refusal(**parts: str) -> str:
    with pytest.raises(CompileError) as caught:
        switch(**parts)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.message + (f" | {diagnostic.hint}" if diagnostic.hint else "")


def test_unknown_externs_are_refused() -> None:
    said = refusal(types="extern void launch(in bit<8> v);", ingress="launch(h.a.x);")
    assert said.startswith("extern launch has no implementation | give it: ")
    said = refusal(types="extern gadget { gadget(); void turn(); }",
                   ingress_locals="gadget() g;", ingress="g.turn();")  # fmt: skip
    assert said.startswith("extern gadget has no implementation | give it: ")


def test_externs_in_the_wrong_control_are_refused() -> None:
    assert refusal(egress="resubmit_preserving_field_list(1);") == (
        "resubmit_preserving_field_list may be called in the ingress control only, not in the "
        "egress control"
    )
    assert refusal(ingress="recirculate_preserving_field_list(1);") == (
        "recirculate_preserving_field_list may be called in the egress control only, not in the "
        "ingress control"
    )
    assert refusal(egress="digest<a_t>(1, h.a);") == (
        "digest may be called in the ingress control only, not in the egress control"
    )
    assert refusal(compute="verify_checksum(true, h.a, h.a.x, HashAlgorithm.xor16);") == (
        "verify_checksum may be called in the checksum verification only, not in the checksum "
        "computation"
    )
    assert refusal(ingress="update_checksum(true, h.a, h.a.x, HashAlgorithm.xor16);") == (
        "update_checksum may be called in the checksum computation only, not in the ingress control"
    )
    assert refusal(ingress="clone(CloneType.E2E, 1);") == (
        "clone: in the ingress control the clone type must be I2E, not E2E"
    )


def test_tables_that_cannot_be_looked_up_are_refused() -> None:
    table = "table t {{ key = {{ {} }} actions = {{ NoAction; }} }}"
    two = table.format("h.a.x: lpm; h.a.kind: lpm;")
    assert refusal(ingress_locals=two, ingress="t.apply();").startswith(
        "table I.t has more than one lpm key"
    )


def test_arrays_beyond_memory_are_refused() -> None:
    assert refusal(ingress_locals="register<bit<8>>(0xffffffff) r;", ingress="r.write(0, 1);") == (
        "I.r has 4294967295 cells: 67108864 is the most there can be"
    )


def test_old_forms_that_preserve_other_than_metadata_are_refused() -> None:
    assert refusal(egress="recirculate<tuple<bit<8>>>({ h.a.x });") == (
        "recirculate can only preserve fields of the metadata parameters | copy what is to be "
        "kept to metadata before"
    )


def test_mark_to_drop_without_argument_means_the_blocks_metadata() -> None:
    sw = switch(ingress="s.egress_spec = 1; if (h.a.kind == 1) { mark_to_drop(); }")
    assert sw.process(0, packet(kind=1)) == []
    assert len(sw.process(0, packet(kind=0))) == 1
    assert refusal(compute="mark_to_drop();") == (
        "mark_to_drop may be called in the parser and the ingress control and the egress control "
        "only, not in the checksum computation"
    )


def test_a_refusal_shows_the_line(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "bad.p4"
    path.write_text(source(ingress="\nresubmit({ h.a.x });"))
    with pytest.raises(CompileError) as caught:
        Switch(path)
    line = path.read_text().splitlines().index("resubmit({ h.a.x }); }") + 1
    assert str(caught.value) == (
        f"{path}:{line}:1: error: resubmit can only preserve fields of the metadata "
        "parameters\n"
        "    resubmit({ h.a.x }); }\n"
        "    ^^^^^^^^^^^^^^^^^^^\n"
        "    copy what is to be kept to metadata before"
    )


@pytest.mark.parametrize(("call", "position", "kind"), [
    ("hash(h.a, HashAlgorithm.crc16, 8w0, { h.a.x }, 8w4);", 1, "a_t"),
    ("hash(h.a.x, HashAlgorithm.crc16, m, { h.a.x }, 8w4);", 3, "metadata_t"),
    ("hash(h.a.x, HashAlgorithm.crc16, 8w0, { h.a.x }, h.s);", 5, "a_t[2]"),
    ("random(h.a, h.a, h.a);", 1, "a_t"),
])  # fmt: skip
def test_numbers_that_are_none_are_refused(call: str, position: int, kind: str) -> None:
    name = call.partition("(")[0]
    with pytest.raises(CompileError) as caught:
        switch(headers="a_t[2] s;", ingress=f"{TO_1}\n{call}")
    found = caught.value.diagnostics[0]
    assert found.message == (
        f"argument {position} of {name} must be bit<W>, int<W> or bool, not {kind}"
    )
    line = source(headers="a_t[2] s;", ingress=f"{TO_1}\n{call}").splitlines().index(f"{call} }}")
    assert (found.span.file, found.span.line) == ("test.p4", line + 1)


def test_engine_and_architecture_are_named_in_their_refusals() -> None:
    with pytest.raises(SwitchError) as caught:
        Switch("test.p4", text=source(), engine="quick")
    assert str(caught.value) == "there is no engine 'quick'; engines: interpreter, jit"
    with pytest.raises(SwitchError) as caught:
        Switch("test.p4", text=source(), arch="x")
    known = ", ".join(architectures())
    assert str(caught.value) == f"there is no architecture 'x'; architectures: {known}"
