"""Traces: everything a packet met, as text and as JSON."""

from __future__ import annotations

import json

import psaprograms
from v1programs import packet, switch

PARTS = {
    "types": "header b_t { int<8> v; }",
    "headers": "b_t b;",
    "metadata": "@field_list(1) bit<8> round;",
    "parser": "pkt.extract(h.a); transition select(h.a.kind) { 1: more; default: accept; }",
    "states": "state more { pkt.extract(h.b); transition accept; }",
    "ingress_locals": "register<bit<8>>(4) seen;"
    "action forward(bit<9> port) { s.egress_spec = port; h.a.x = 1; }"
    "action drop() { mark_to_drop(s); exit; }"
    "table t { key = { h.a.y: ternary; h.a.z: exact; } actions = { forward; drop; }"
    "  default_action = drop(); }",
    "ingress": "t.apply(); seen.read(h.a.z, 2); seen.write(2, h.a.z + 1); h.b.setInvalid();"
    "clone(CloneType.I2E, 3);",
    "egress": "if (m.round == 0 && h.a.kind == 5) { m.round = 1;"
    " recirculate_preserving_field_list(1); }",
}


def lines(text: str) -> list[str]:
    """Return the lines of a trace without the places."""
    return [line.split("    [")[0] for line in text.splitlines()]


def test_a_trace_shows_the_whole_path() -> None:
    sw = switch(**PARTS)
    sw.table("t").add({"y": (0x10, 0xF0), "z": 9}, "forward", {"port": 7}, priority=2)
    sw.clone_session(3, [4])
    trace = sw.trace(0, packet(1, 0, 0x12, 9, b"\xfe!"))
    assert lines(trace.text()) == [
        "== parser",
        "  state start",
        "  extract h.a (32 bits at 0): kind 1, x 0, y 0x12, z 9",
        "  state more",
        "  extract h.b (8 bits at 32): v -2",
        "== ingress",
        "  table I.t (h.a.y 0x12, h.a.z 9): hit h.a.y 0x10 &&& 0xf0, h.a.z 0x9, priority 2; "
        "action I.forward(port 7)",
        "  s.egress_spec = 7",
        "  h.a.x = 1",
        "  I.seen.read(2) -> 0",
        "  I.seen.write(2, 1)",
        "  h.b.isValid() = false",
        "  clone(I2E, 3)",
        "== parser, for the clone to session 3",
        "  state start",
        "  extract h.a (32 bits at 0): kind 1, x 0, y 0x12, z 9",
        "  state more",
        "  extract h.b (8 bits at 32): v -2",
        "  cloned to session 3, ports 4",
        "== egress, port 4",
        "  if ((m.round == 0) && (h.a.kind == 5)): false",
        "  sent to port 4, 6 bytes: 01001209fe21",
        "== egress, port 7",
        "  if ((m.round == 0) && (h.a.kind == 5)): false",
        "  sent to port 7, 5 bytes: 0101120021",
    ]
    assert trace.outputs == [(4, bytes.fromhex("01001209fe21")), (7, bytes.fromhex("0101120021"))]


def test_a_trace_shows_how_the_program_decided() -> None:
    """The compiler's own branch, for the call on the right of &&, is none of the program's."""
    sw = switch(
        ingress_locals="action a() { } table t { key = { h.a.y: exact; } actions = { a; } }",
        ingress="if (h.a.kind == 1 && t.apply().miss) { h.a.x = 1; } else if (h.a.z > 3) { exit; }"
        " switch (h.a.z) { 9: { h.a.x = 2; } default: { } }"
        " switch (t.apply().action_run) { a: { } default: { } }",
    )
    text = lines(sw.trace(0, packet(1, 0, 0x12, 9)).text())
    applied = "  table I.t (h.a.y 0x12): miss; action NoAction()"
    assert text[text.index("== ingress") + 1 : text.index("== egress, port 0")] == [
        applied,
        "  if (tmp): true",
        "  h.a.x = 1",
        "  switch (h.a.z): 9",
        "  h.a.x = 2",
        applied,
    ]
    text = lines(sw.trace(0, packet(2, 0, 0x12, 3)).text())
    assert "  if (tmp): false" in text and "  if (h.a.z > 3): false" in text


def test_a_trace_says_why_a_packet_was_dropped() -> None:
    sw = switch(**PARTS)
    text = lines(sw.trace(0, packet(1, 0, 0x12, 9)).text())
    assert text == [
        "== parser",
        "  state start",
        "  extract h.a (32 bits at 0): kind 1, x 0, y 0x12, z 9",
        "  state more",
        "  parser error PacketTooShort",
        "== ingress",
        "  table I.t (h.a.y 0x12, h.a.z 9): miss; action I.drop()",
        "  mark_to_drop(s) -> s",
        "  exit",
        "  dropped: ingress: egress_spec is 511",
    ]


def test_a_trace_follows_recirculation() -> None:
    sw = switch(**PARTS)
    sw.table("t").set_default("forward", {"port": 7})
    text = lines(sw.trace(0, packet(5)).text())
    assert "  recirculated, preserving field list 1" in text
    assert text.count("== ingress") == 2
    assert "  not cloned: there is no clone session 3" in text


def test_every_event_has_a_place_and_json() -> None:
    sw = switch(**PARTS)
    trace = sw.trace(0, packet(1, 0, 0x12, 9, b"\xfe!"))
    read = json.loads(json.dumps(trace.json()))
    kinds = [event["kind"] for event in read["events"]]
    assert kinds == ["enter", "state", "extract", "state", "extract", "enter", "table", "call",
                     "exit", "drop"]  # fmt: skip
    assert read["outputs"] == []
    places = {event["kind"]: event["span"] for event in read["events"]}
    assert places["table"].startswith("test.p4:")
    assert places["enter"].startswith("v1model/path.p4:")
    assert read["events"][6] | {"span": ""} == {
        "kind": "table", "table": "I.t", "keys": {"h.a.y": 0x12, "h.a.z": 9}, "hit": False,
        "entry": None, "action": "I.drop", "params": {}, "handle": None, "chosen": None, "span": "",
    }  # fmt: skip


def test_tracing_changes_nothing() -> None:
    plain, traced = switch(**PARTS), switch(**PARTS)
    for sw in (plain, traced):
        sw.table("t").set_default("forward", {"port": 7})
    for kind in (0, 1, 5, 1, 5):
        sent = packet(kind, payload=b"zz")
        assert plain.process(0, sent) == traced.trace(0, sent).outputs
    assert list(plain.register("seen").values) == list(traced.register("seen").values)


def test_a_trace_shows_itself_in_a_notebook() -> None:
    sw = switch(**PARTS)
    sw.table("t").add({"y": (0x10, 0xF0), "z": 9}, "forward", {"port": 7}, priority=2)
    trace = sw.trace(0, packet(1, 0, 0x12, 9, b"\xfe!"))
    shown = trace._repr_html_()
    assert shown.count("<tr>") == len(trace.events)
    assert "== ingress</th>" in shown and "0x10 &amp;&amp;&amp; 0xf0" in shown
    assert f"bytes to port {trace.outputs[0][0]}" in shown


def test_members_of_enums_and_errors_have_their_names() -> None:
    """In fields, keys, entries and action data; in JSON they are numbers."""
    sw = psaprograms.switch(
        types="enum kind_t { LOW, HIGH } enum bit<8> code_t { A = 3, B = 0x11 }",
        metadata="kind_t kind; code_t code; error err;",
        ingress_locals="action go(code_t code, bit<8> x) { send_to_port(o, (PortId_t) 1); } table t"
        " { key = { m.kind: exact; s.packet_path: exact; m.code: exact; } actions = { go; }"
        " const default_action = go(code_t.B, 0x11); const entries = {"
        " (kind_t.HIGH, PSA_PacketPath_t.NORMAL, code_t.B): go(code_t.A, 3); } }",
        ingress="m.kind = kind_t.HIGH; m.code = (code_t) h.a.kind; m.err = s.parser_error;"
        " t.apply();",
    )
    trace = sw.trace(0, packet(0x11))
    found = [line.strip() for line in lines(trace.text())]
    assert found[4:8] == [
        "m.kind = HIGH (1)",
        "m.code = B (0x11)",
        "m.err = NoError (0)",
        "table ingress.t (m.kind HIGH (1), s.packet_path NORMAL (0), m.code B (0x11)): hit"
        " m.kind HIGH (1), s.packet_path NORMAL (0), m.code B (0x11); action ingress.go(code A (3),"
        " x 3)",
    ]
    missed = sw.trace(0, packet(3)).text()
    assert "m.code A (3)): miss; action ingress.go(code B (0x11), x 0x11)" in missed
    assert "m.code = 5" in sw.trace(0, packet(5)).text()  # a number that no member has
    assert '"target": "m.kind", "value": 1' in json.dumps(trace.json())
