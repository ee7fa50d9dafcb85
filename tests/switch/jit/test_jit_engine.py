"""The JIT engine's own: cache, buffers, changes between packets, traces, refusals."""

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

from gradplane import _user_folders
from gradplane._user_folders import cache_folder
from gradplane.switch import Switch, SwitchError, disk_cache
from gradplane.switch.compiler import compile_program
from gradplane.switch.jit import native_code
from gradplane.switch.runtime.control_messages import Digest, Fault, PacketIn
from gradplane.switch.runtime.packet_buffers import pack
from gradplane.switch.switch import BATCH

FRAME = """
#include <core.p4>
#include <v1model.p4>
header byte_t { bit<8> v; }
struct headers_t { byte_t b; }
struct meta_t { @field_list(1) bit<8> rounds; }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.b); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { %s }
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { %s }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { %s } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
EMIT = "packet.emit(h.b);"
ECHO = "apply { s.egress_spec = s.ingress_port; }"


def switch(ingress: str, egress: str = "apply { }", emit: str = EMIT, **options: object) -> Switch:
    text = FRAME % (ingress, egress, emit)
    return Switch("test.p4", text=text, engine="jit", **options)  # type: ignore[arg-type]


def test_first_use_writes_the_cache_and_later_ones_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    switch(ECHO)
    kept = sorted(cache_folder("jit").glob("*.o"))
    assert kept
    monkeypatch.setattr(native_code, "_compiled", lambda *_: pytest.fail("compiled again"))
    assert switch(ECHO).process(5, b"a") == [(5, b"a")]
    assert sorted(cache_folder("jit").iterdir()) == kept, "nothing but whole objects is left"


def test_quick_code_is_kept_by_itself_and_better_code_is_preferred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = "apply { s.egress_spec = s.ingress_port + 1; }"
    assert switch(other, quick=True).process(5, b"a") == [(6, b"a")]
    monkeypatch.setattr(native_code, "_made_quickly", lambda *_: pytest.fail("compiled again"))
    assert switch(other, quick=True).process(5, b"a") == [(6, b"a")]
    switch(ECHO)
    monkeypatch.setattr(native_code, "_compiled", lambda *_: pytest.fail("compiled again"))
    assert switch(ECHO, quick=True).process(5, b"a") == [(5, b"a")]
    with pytest.raises(pytest.fail.Exception):
        switch(other)


def test_a_cache_that_cannot_be_written_is_done_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(_user_folders, "TEMPORARY", tmp_path / "file")
    assert switch(ECHO).process(5, b"a") == [(5, b"a")]


def test_the_cache_keeps_the_newest_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "KEPT", 2)
    monkeypatch.setattr(disk_cache, "PRUNED_EVERY", 1)
    for port in range(4):
        switch(f"apply {{ s.egress_spec = {port}; }}")
    kept = set(cache_folder("jit").glob("*.o"))
    assert len(kept) == 2
    monkeypatch.setattr(native_code, "_compiled", lambda *_: pytest.fail("compiled again"))
    assert switch("apply { s.egress_spec = 3; }").process(5, b"a") == [(3, b"a")]


def test_a_damaged_object_is_compiled_again() -> None:
    switch(ECHO)
    for path in cache_folder("jit").glob("*.o"):
        path.write_bytes(path.read_bytes()[:100])
    assert switch(ECHO).process(5, b"a") == [(5, b"a")]


def test_buffers_longer_than_a_batch() -> None:
    echo = switch(ECHO)
    count = BATCH + 10
    packets = [bytes([i % 256]) * (i % 7 + 1) for i in range(count)]
    ports = [i % 500 for i in range(count)]
    out, data, offsets, causes = echo.process_buffer(*pack(ports, packets))
    assert out.tolist() == ports
    assert data.tobytes() == b"".join(packets)
    assert offsets.tolist() == [0, *np.cumsum([len(p) for p in packets])]
    assert causes.tolist() == list(range(count))


def test_an_empty_buffer() -> None:
    none = np.zeros(0, dtype=np.int64)
    out, data, offsets, causes = switch(ECHO).process_buffer(
        none, np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    )
    assert [len(a) for a in (out, data, offsets, causes)] == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0, 1], "2 ports need 3 offsets, not 2"),
        ([0, 1, 4], "the offsets do not rise from 0 or more to at most 3, the data's size"),
        ([0, 2, 1], "the offsets do not rise from 0 or more to at most 3, the data's size"),
        ([-1, 1, 2], "the offsets do not rise from 0 or more to at most 3, the data's size"),
    ],
)
def test_offsets_outside_the_data_are_refused(offsets: list[int], message: str) -> None:
    with pytest.raises(SwitchError) as refused:
        switch(ECHO).process_buffer(
            np.array([1, 2]), np.zeros(3, dtype=np.uint8), np.array(offsets)
        )
    assert str(refused.value) == message


TABLE = """
    action go(bit<9> port) { s.egress_spec = port; }
    action stop() { mark_to_drop(s); }
    table t { key = { h.b.v : %s; } actions = { go; stop; } default_action = stop(); size = 2000; }
    apply { t.apply(); }
"""


@pytest.mark.parametrize("kind", ["exact", "lpm", "ternary", "range", "optional"])
def test_entries_change_between_packets(kind: str) -> None:
    sw = switch(TABLE % kind)
    table = sw.table("t")
    for v in range(256):
        table.add({"v": v}, "go", {"port": v})
    assert [sw.process(1, bytes([v]))[0][0] for v in range(256)] == list(range(256))
    for v in range(0, 256, 3):
        table.remove({"v": v})
    for v in range(1, 256, 3):
        table.modify({"v": v}, "go", {"port": 300})
    table.set_default("go", {"port": 400})
    expected = [(400, 300, v)[v % 3] for v in range(256)]
    assert [sw.process(1, bytes([v]))[0][0] for v in range(256)] == expected
    table.clear()
    assert {sw.process(1, bytes([v]))[0][0] for v in range(256)} == {400}


def test_entries_come_while_packets_run() -> None:
    sw = switch(TABLE % "exact")
    packets = pack([1] * 256, [bytes([v]) for v in range(256)])
    table = sw.table("t")

    def insert() -> None:
        for v in range(256):
            table.add({"v": v}, "go", {"port": v})

    writer = threading.Thread(target=insert)
    writer.start()
    seen = []
    while len(seen) < 256:
        out, data, _, _ = sw.process_buffer(*packets)
        assert out.tolist() == list(data), "a packet found half an entry"
        assert set(seen) <= set(out.tolist())
        seen = out.tolist()
    writer.join()


def test_hash_tables_grow() -> None:
    key = 'h.b.v ++ m.rounds ++ h.b.v : exact @name("k")'
    sw = switch((TABLE % "exact").replace("h.b.v : exact", key))
    for i in range(2000):
        sw.table("t").add({"k": i << 8 | i % 256 if i < 256 else i | 1 << 23}, "go", {"port": 7})
    assert sw.process(1, b"\0") == [(7, b"\0")]
    assert sw.process(1, b"\1") == []


def test_state_is_shared_with_traces() -> None:
    ingress = """
        register<bit<32>>(4) seen;
        counter(4, CounterType.packets) count;
        apply {
            bit<32> n;
            seen.read(n, 1); seen.write(1, n + 1); count.count(2);
            s.egress_spec = n[8:0];
        }"""
    sw = switch(ingress)
    assert sw.process(1, b"a") == [(0, b"a")]
    assert sw.trace(1, b"a").outputs == [(1, b"a")]
    assert sw.process(1, b"a") == [(2, b"a")]
    sw.register("seen").write(1, 9)
    assert sw.process(1, b"a") == [(9, b"a")]
    assert sw.counter("count").read(2)[0] == 4


def test_one_pass_at_a_time_keeps_the_field_list() -> None:
    egress = """apply {
        m.rounds = m.rounds + 1;
        h.b.v = m.rounds;
        if (m.rounds < 3) { recirculate_preserving_field_list(1); }
    }"""
    sw = switch("apply { s.egress_spec = 4; }", egress)
    outputs, again = sw.run_once(1, b"\0rest")
    assert (outputs, [a.packet for a in again]) == ([], [b"\1rest"])
    outputs, again = sw.run_once(0, again[0])
    assert (outputs, [a.packet for a in again]) == ([], [b"\2rest"])
    assert sw.run_once(0, again[0]) == ([(4, b"\3rest")], [])


def test_messages_come_packet_by_packet() -> None:
    ingress = """apply {
        digest(1, h.b.v);
        assert(h.b.v != 2);
        s.egress_spec = h.b.v == 3 ? 9w1 : 64;
    }"""
    sw = switch(ingress, cpu_port=64)
    assert sw.process_batch([1] * 3, [b"\1", b"\2", b"\3"]) == [(2, 1, b"\3")]
    one, packet_in, fault, three = sw.messages()
    assert isinstance(one, Digest) and one.data == 1
    assert packet_in == PacketIn(b"\1")
    assert isinstance(fault, Fault) and fault.text.endswith("assert failed")
    assert isinstance(three, Digest) and three.data == 3


def test_packets_that_never_end_are_stopped() -> None:
    sw = switch("apply { s.egress_spec = 1; }", "apply { recirculate_preserving_field_list(0); }")
    assert sw.process(1, b"a") == []
    assert sw.messages() == [
        Fault("packet dropped: a packet was resubmitted or recirculated 1000 times")
    ]


def test_a_loop_without_end_is_stopped() -> None:
    loop = "apply { for (bit<8> i = 0; i < 8; i = i) { h.b.v = h.b.v + 1; } }"
    sw = switch(loop)
    assert sw.process(1, b"a") == []
    (fault,) = sw.messages()
    assert isinstance(fault, Fault) and fault.text.endswith("a loop ran more than 1048576 times")


def test_unknown_engines_are_refused() -> None:
    with pytest.raises(SwitchError) as refused:
        Switch("test.p4", engine="llvm", text=FRAME % (ECHO, "apply { }", EMIT))
    assert str(refused.value) == "there is no engine 'llvm'; engines: interpreter, jit"


def test_many_switches_of_one_program_keep_apart() -> None:
    program = compile_program("test.p4", text=FRAME % (TABLE % "exact", "apply { }", EMIT))
    switches = [Switch(program, engine="jit") for _ in range(5)]
    for i, sw in enumerate(switches):
        sw.table("t").add({"v": 1}, "go", {"port": i})
    assert [sw.process(1, b"\1") for sw in switches] == [[(i, b"\1")] for i in range(5)]
    del switches, sw
    gc.collect()
