"""The Portable NIC Architecture in both engines: directions, loops, mirrors, externs, P4Info."""

import contextlib
import re
from pathlib import Path

import pytest

from gradplane.switch import CompileError, Switch
from gradplane.switch.arch import pna
from gradplane.switch.p4runtime.p4info import build_p4info

ENGINES = ("interpreter", "jit")
PROGRAM = """
#include <pna.p4>
header h_t {{ bit<8> to; bit<8> x; bit<8> seen; }}
struct headers_t {{ h_t h; }}
struct meta_t {{ bit<8> m; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t m, in pna_main_parser_input_metadata_t i) {{
    state start {{
        pkt.extract(hdr.h);
        m.m = (bit<8>) (PassNumberUint_t) i.pass;
        transition accept;
    }}
}}
control Pre(in headers_t hdr, inout meta_t m, in pna_pre_input_metadata_t i,
            inout pna_pre_output_metadata_t o) {{ apply {{ m.m = m.m + 1; }} }}
control C(inout headers_t hdr, inout meta_t m, in pna_main_input_metadata_t i,
          inout pna_main_output_metadata_t o) {{
    DirectCounter<bit<32>>(PNA_CounterType_t.PACKETS) direct;
    Counter<bit<32>, bit<32>>(4, PNA_CounterType_t.PACKETS) directions;
    Register<bit<8>, bit<32>>(16) last;
    Digest<h_t>() told;
    action to(PortId_t port) {{ send_to_port(port); direct.count(); }}
    action lose() {{ drop_packet(); direct.count(); }}
    table ports {{
        key = {{ hdr.h.to : exact; }}
        actions = {{ to; lose; }}
        default_action = lose();
        pna_direct_counter = direct;
    }}
    apply {{
        bit<32> way = SelectByDirection(i.direction, 32w1, 32w2);
        directions.count(way);
        hdr.h.seen = last.read((bit<32>) hdr.h.x) + m.m + (i.loopedback ? 8w16 : 8w0);
        last.write((bit<32>) hdr.h.x, hdr.h.to);
        ports.apply();
        {main}
    }}
}}
control D(packet_out pkt, in headers_t hdr, in meta_t m, in pna_main_output_metadata_t o) {{
    apply {{ pkt.emit(hdr.h); }}
}}
PNA_NIC(P(), Pre(), C(), D()) main;
"""


def switch(engine: str, main: str = "") -> Switch:
    sw = Switch("test.p4", text=PROGRAM.format(main=main), engine=engine)
    for to, port in ((1, 7), (2, 0x100), (3, 0x101)):
        sw.table("ports").add({"to": to}, "to", {"port": port})
    return sw


def packet(to: int, x: int = 0) -> bytes:
    return bytes([to, x, 0]) + b"payload"


@pytest.mark.parametrize("engine", ENGINES)
def test_from_the_network_to_a_host_and_back(engine: str) -> None:
    sw = switch(engine)
    assert sw.process(5, packet(2)) == [(0x100, bytes([2, 0, 1]) + b"payload")]
    assert sw.process(0x100, packet(1)) == [(7, bytes([1, 0, 3]) + b"payload")]
    assert [sw.counter("C.directions").read(i)[0] for i in range(4)] == [0, 1, 1, 0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("port, to, leaves", [(0x100, 3, 0x101), (5, 1, 7)])
def test_packets_within_one_side_are_looped_back(
    engine: str, port: int, to: int, leaves: int
) -> None:
    sw = switch(engine)
    outputs, again = sw.run_once(port, packet(to, 9))
    assert outputs == [] and len(again) == 1
    assert sw.run_once(port, again[0])[0] == [(leaves, bytes([to, 9, to + 17]) + b"payload")]
    assert [sw.counter("C.directions").read(i)[0] for i in (1, 2)] == [1, 1]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_packet_that_is_not_sent_is_dropped(engine: str) -> None:
    sw = switch(engine)
    assert sw.process(5, packet(9)) == []
    assert dict(sw.state.drops) == {"main control: the packet was not sent": 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_last_mirror_of_each_slot_is_made(engine: str) -> None:
    main = """
        mirror_packet((MirrorSlotId_t) 1, (MirrorSessionId_t) 3);
        mirror_packet((MirrorSlotId_t) 3, (MirrorSessionId_t) 9);
        mirror_packet((MirrorSlotId_t) 3, (MirrorSessionId_t) 4);
        mirror_packet((MirrorSlotId_t) 4, (MirrorSessionId_t) 3);
        if (hdr.h.x == 1) { drop_packet(); }
    """
    sw = switch(engine, main)
    sw.clone_session(3, [20, 21])
    sw.clone_session(4, [22], truncate=2)
    whole = bytes([2, 1, 1]) + b"payload"
    assert sw.process(5, packet(2, 1)) == [(20, whole), (21, whole), (22, whole[:2])]
    sent = bytes([2, 0, 1]) + b"payload"
    assert sw.process(5, packet(2)) == [(20, sent), (21, sent), (22, sent[:2]), (0x100, sent)]


@pytest.mark.parametrize("engine", ENGINES)
def test_digests_and_packets_to_the_cpu(engine: str) -> None:
    sw = switch(engine, "told.pack(hdr.h); send_to_port((PortId_t) 0xfffffffd);")
    assert sw.process(5, packet(2)) == []
    kinds = [type(message).__name__ for message in sw.messages()]
    assert kinds == ["Digest", "PacketIn"]


def test_p4info_names_the_architecture() -> None:
    info = build_p4info(switch("interpreter").program)
    assert info.pkg_info.arch == "pna"
    assert [c.preamble.name for c in info.direct_counters] == ["C.direct"]
    assert [d.preamble.name for d in info.digests] == ["C.told"]


def test_the_pre_control_has_the_parsers_headers() -> None:
    text = PROGRAM.format(main="").replace(
        "control Pre(in headers_t", "struct other_t { h_t h; } control Pre(in other_t"
    )
    with pytest.raises(CompileError, match="the pre control's hdr must be a headers_t"):
        Switch("test.p4", text=text)


# -- version 0.7 ----------------------------------------------------------------------------------

NEWER = """
#include <bmv2/pna.p4>
header h_t {{ bit<8> to; bit<8> x; bit<8> seen; }}
struct headers_t {{ h_t h; }}
struct meta_t {{ bit<8> m; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t m, in pna_main_parser_input_metadata_t i) {{
    state start {{
        pkt.extract(hdr.h);
        m.m = i.recirculated ? 8w16 : 8w0;
        transition accept;
    }}
}}
control C(inout headers_t hdr, inout meta_t m, in pna_main_input_metadata_t i,
          inout pna_main_output_metadata_t o) {{
    action to(PortId_t port) {{ send_to_port(port); }}
    table ports {{ key = {{ hdr.h.to : exact; }} actions = {{ to; @defaultonly NoAction; }} }}
    apply {{
        hdr.h.seen = SelectByDirection(is_net_port(i.input_port), 8w1, 8w2) + m.m;
        if (is_host_port(i.input_port)) {{ hdr.h.x = 9; }}
        ports.apply();
        {main}
    }}
}}
control D(packet_out pkt, inout headers_t hdr, in meta_t m, in pna_main_output_metadata_t o) {{
    apply {{ pkt.emit(hdr.h); }}
}}
PNA_NIC(P(), C(), D()) main;
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "port, to, leaves, x, seen",
    [(5, 2, 0x100, 0, 1), (5, 1, 7, 0, 1), (0x100, 1, 7, 9, 2), (0x100, 3, 0x101, 9, 2)],
)
def test_version_0_7_has_no_pre_control_and_loops_nothing_back(
    engine: str, port: int, to: int, leaves: int, x: int, seen: int
) -> None:
    sw = Switch("test.p4", text=NEWER.format(main=""), engine=engine)
    for value, out in ((1, 7), (2, 0x100), (3, 0x101)):
        sw.table("ports").add({"to": value}, "to", {"port": out})
    assert sw.process(port, packet(to)) == [(leaves, bytes([to, x, seen]) + b"payload")]
    assert sw.process(port, packet(0)) == []


def test_a_trace_of_version_0_7_enters_no_pre_control() -> None:
    sw = Switch("test.p4", text=NEWER.format(main="send_to_port((PortId_t) 1);"))
    assert "pre control" not in str(sw.trace(5, packet(2)))
    assert "pre control" in str(switch("interpreter").trace(5, packet(2)))


def test_versions_are_told_apart_by_what_they_declare() -> None:
    older = PROGRAM.format(main="").replace("<pna.p4>", "<bmv2/pna.p4>")
    with pytest.raises(CompileError, match="pna_pre_input_metadata_t"):
        Switch("test.p4", text=older)
    newer = NEWER.format(main="").replace("<bmv2/pna.p4>", "<pna.p4>")
    with pytest.raises(CompileError, match="recirculated"):
        Switch("test.p4", text=newer)


OF_P4C = """
extern void send_to_port(PortId_t dest_port);
extern DirectCounter<W> {
    DirectCounter(PNA_CounterType_t type);
    void count(@optional in bit<32> increment);
}
extern DirectMeter {
    DirectMeter(PNA_MeterType_t type);
    PNA_MeterColor_t execute(in PNA_MeterColor_t color, @optional in bit<32> pkt_len);
    PNA_MeterColor_t execute(@optional in bit<32> pkt_len);
    PNA_MeterColor_t dpdk_execute(in PNA_MeterColor_t color, in bit<32> pkt_len);
}
"""


def with_declarations_of_p4c(folder: Path, counts: str, program: str = PROGRAM) -> Switch:
    """Load a program with a pna.p4 of its own, whose declarations are some of p4c's pna.p4."""
    ours = Path(pna.__file__).parent / "include/pna.p4"
    text = ours.read_text().replace("extern void send_to_port(in PortId_t dest_port);", "")
    for name in ("DirectCounter<W>", "DirectMeter"):
        text = re.sub(f"extern {name} {{.*?^}}", "", text, flags=re.DOTALL | re.MULTILINE)
    (folder / "pna.p4").write_text(text.replace("// -- blocks", OF_P4C + "// -- blocks"))
    text = program.format(main="").replace("direct.count()", counts)
    return Switch("test.p4", text=text, include_dirs=[folder])


def test_declarations_of_p4c_are_taken(tmp_path: Path) -> None:
    sw = with_declarations_of_p4c(tmp_path, "direct.count()")
    sw.table("ports").add({"to": 2}, "to", {"port": 0x100})
    assert sw.process(5, packet(2)) == [(0x100, bytes([2, 0, 1]) + b"payload")]


def test_an_optional_length_of_p4cs_counters_is_taken(tmp_path: Path) -> None:
    sw = with_declarations_of_p4c(tmp_path, "direct.count(32w5)")
    sw.table("ports").add({"to": 2}, "to", {"port": 0x100})
    sw.process(5, packet(2))
    (counted,) = sw.state.tables["C.ports"].entries()
    assert (counted.counter.packets, counted.counter.bytes) == (1, 5)


@pytest.mark.parametrize("engine", ENGINES)
def test_counters_count_the_bytes_that_they_are_given(engine: str) -> None:
    text = PROGRAM.format(main="directions.count(3, (bit<32>) hdr.h.x << 8);")
    sw = Switch("test.p4", text=text, engine=engine)
    sw.process(5, packet(9, x=200))
    cell = sw.state.counters["C.directions"]
    assert (cell.packets[3], cell.bytes[3]) == (1, 200 << 8)
    assert cell.bytes[1] == len(packet(9))


def test_the_file_for_linuxs_traffic_control_is_version_0_7() -> None:
    text = NEWER.format(main="").replace("<bmv2/pna.p4>", "<tc/pna.p4>")
    assert Switch("test.p4", text=text).process(5, packet(9)) == []
    called = NEWER.format(main="hdr.h.x = (bit<8>) skb_get_mark();")
    with pytest.raises(CompileError, match="skb_get_mark"):
        Switch("test.p4", text=called.replace("<bmv2/pna.p4>", "<tc/pna.p4>"))


@pytest.mark.parametrize(
    "call, found",
    [
        ("execute()", ""),
        ("execute(PNA_MeterColor_t.RED)", ""),
        ("execute(32w64)", "DirectMeter.execute is given a length"),
        ("execute(PNA_MeterColor_t.RED, 32w64)", "DirectMeter.execute is given a length"),
        ("dpdk_execute(PNA_MeterColor_t.RED, 32w64)", "dpdk_execute is not implemented by pna"),
    ],
)
def test_meters_of_p4cs_declarations(tmp_path: Path, call: str, found: str) -> None:
    counts = f"hdr.h.x = direct.{call} == PNA_MeterColor_t.RED ? 8w1 : 8w2"
    changed = PROGRAM.replace(
        "DirectCounter<bit<32>>(PNA_CounterType_t.PACKETS)", "DirectMeter(PNA_MeterType_t.BYTES)"
    )
    changed = changed.replace("pna_direct_counter", "pna_direct_meter")
    expected = pytest.raises(CompileError, match=found) if found else contextlib.nullcontext()
    with expected:
        with_declarations_of_p4c(tmp_path, counts, changed)
