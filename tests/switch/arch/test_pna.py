"""The Portable NIC Architecture in both engines: directions, loops, mirrors, externs, P4Info."""

import pytest

from gradplane.switch import CompileError, Switch
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
