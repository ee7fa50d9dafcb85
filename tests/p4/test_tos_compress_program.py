"""tos_compress.p4 and tos_compress_tna.p4 against their rules as plain Python (tos_switch.py)."""

import functools
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from tos_switch import (
    BOUNDS,
    COMPRESSED,
    FABRIC,
    FAR,
    FORMATS,
    HOSTS,
    MARK,
    MAX_WORDS,
    NEAR,
    NEAR_2,
    OVERHEAD,
    PLAIN_PORT,
    Datagram,
    TosSwitch,
    expected,
    ip_checksum,
    program,
)

from gradplane import codecs
from gradplane.switch import Switch

SWITCHES = {
    "jit": ("jit", "v1model"),
    "interpreter": ("interpreter", "v1model"),
    "passes": ("jit", "bmv2"),
    "tna": ("jit", "tna"),
    "tna interpreter": ("interpreter", "tna"),
}
PROGRAMS = ("jit", "tna")
ENGINES = (*PROGRAMS, "interpreter", "tna interpreter")
HEADER = bytes(range(16))
COMPRESSING = [address for address, k in BOUNDS.items() if k in (6, 8, 10)]


@functools.cache
def edge(engine: str) -> TosSwitch:
    return TosSwitch(*SWITCHES[engine])


def check(port: int, frame: bytes, engine: str = "jit") -> bytes | None:
    """Check that the switch treats a frame by the rules; return the frames that left."""
    switch = edge(engine)
    switch.events()
    out = switch.send(port, frame)
    assert (out, switch.events()) == expected(port, frame)
    return out[1] if out else None


def back(compressed: bytes, to: str = NEAR) -> bytes:
    """Return a compressed frame as if it were on its way to a host of the switch."""
    packet = Ether(compressed)
    packet[IP].dst = to
    del packet[IP].chksum
    if packet[UDP].chksum:
        del packet[UDP].chksum
    return bytes(packet)


def gradients(n: int, seed: int = 0, scale: float = 0.05) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, n).astype(np.float32)


def packed(x: np.ndarray, little: int = 0) -> bytes:
    return x.astype("<f4" if little else ">f4").tobytes()


# -- compression is the codec's -----------------------------------------------------------------

words = st.one_of(
    st.integers(0, 2**32 - 1),
    st.builds(  # exponents around the classes' borders
        lambda sign, exponent, rest: sign << 31 | exponent << 23 | rest,
        st.integers(0, 1), st.integers(112, 130), st.integers(0, 2**23 - 1),
    ),
    st.sampled_from([0, 0x80000000, 1, 0x807FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
                     0xFFFFFFFF, 0x3F800000, 0xBF7FFFFF]),
)  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(words, min_size=1, max_size=40),
    repeat=st.sampled_from([1, 1, 1, 3, 9]),
    port=st.sampled_from([PLAIN_PORT, *FORMATS]),
    to=st.sampled_from(COMPRESSING),
    tos=st.integers(MARK, MARK + 3),
    checked=st.booleans(),
    trailer=st.sampled_from([b"", b"", b"padding"]),
)
def test_any_values(engine, values, repeat, port, to, tos, checked, trailer) -> None:
    header, little = FORMATS.get(port, (0, 0))
    body = np.array(values * repeat, dtype="<u4" if little else ">u4").tobytes()
    payload = HEADER[:header] + body
    udp_checksum = None if checked else 0
    sent = Datagram(payload, to, port, tos, udp_checksum=udp_checksum, trailer=trailer)
    out = check(HOSTS[0], sent.frame(), engine)
    assert out is not None
    if out[15] & 0xFC == COMPRESSED:
        restored = check(FABRIC[0], back(out), engine)
        assert restored is not None and len(restored) == len(sent.frame())
        assert restored[15] == tos


@pytest.mark.parametrize("engine", PROGRAMS)
@pytest.mark.parametrize("bound", [6, 8, 10])
def test_every_number_of_values(engine: str, bound: int) -> None:
    """Each format is tried with last bursts of every length."""
    codec = codecs.get("inceptionn", bound=bound)
    formats = [(PLAIN_PORT, (0, 0)), *((p, f) for p, f in FORMATS.items() if f[0] != 8)]
    for n in range(1, MAX_WORDS - 3):
        port, (header, little) = formats[n // 8 % len(formats)]
        x = gradients(n, seed=n)
        sent = Datagram(HEADER[:header] + packed(x, little), f"10.0.1.{bound}", port).frame()
        out = check(HOSTS[0], sent, engine)
        assert out is not None
        bursts = codec.encode(x)[0]
        if 4 + len(bursts) >= 4 * n:
            assert out[6:] == sent[6:]
            continue
        shim = struct.pack(">HBB", n, bound, little | header >> 3)
        assert out[OVERHEAD:] == shim + HEADER[:header] + bursts
        restored = check(FABRIC[0], back(out), engine)
        assert restored is not None and len(restored) == len(sent)
        assert restored[OVERHEAD:] == HEADER[:header] + packed(codec.decode(bursts, n), little)


@pytest.mark.parametrize("n", [1, 7, 127, 128, 129, 135, 200, 256, 257, 263, 364])
@pytest.mark.parametrize("scale", [0.0, 0.05, 0.5])
def test_in_passes(n: int, scale: float) -> None:
    """As on BMv2: between two passes the packet goes over a cable, with what it has grown by."""
    for port, (header, little) in ((PLAIN_PORT, (0, 0)), (9002, (16, 1)), (18257, (16, 0))):
        sent = Datagram(HEADER[:header] + packed(gradients(n, n, scale), little), port=port).frame()
        out = check(HOSTS[0], sent, "passes")
        assert out is not None
        if out[15] & 0xFC == COMPRESSED:
            check(FABRIC[0], back(out), "passes")
            check(FABRIC[0], back(out)[:-1], "passes")
            check(FABRIC[0], back(out) + b"trailer", "passes")
    assert edge("passes").most_passes <= 3


@pytest.mark.parametrize("engine", PROGRAMS)
def test_scapy_finds_lengths_and_checksums_right(engine: str) -> None:
    sent = Ether() / IP(src=NEAR, dst=FAR, tos=MARK) / UDP(sport=5, dport=7) / packed(gradients(61))
    out = check(HOSTS[0], bytes(sent), engine)
    assert out is not None
    restored = check(FABRIC[0], back(out), engine)
    assert restored is not None
    for frame, tos, length in ((out, COMPRESSED, len(out)), (restored, MARK, len(sent))):
        packet = Ether(frame)
        assert (packet[IP].tos, packet[IP].len, packet[UDP].len) == (tos, length - 14, length - 34)
        again = packet.copy()
        for layer, field in ((IP, "len"), (IP, "chksum"), (UDP, "len"), (UDP, "chksum")):
            again[layer].delfieldval(field)
        assert bytes(again) == frame


@pytest.mark.parametrize("engine", PROGRAMS)
def test_a_udp_checksum_that_would_be_zero_is_all_ones(engine: str) -> None:
    """The reverse holds too: no checksum stays none."""
    seen = set()
    x = gradients(16)
    for number in range(200000):
        x[0] = np.float32(2 + number * 2**-12)
        frame = Datagram(packed(x)).frame()
        out = edge(engine).send(HOSTS[0], frame)
        assert out is not None
        seen.add(out[1][40:42])
        if b"\xff\xff" in seen:
            break
    assert b"\xff\xff" in seen and b"\0\0" not in seen
    out = edge(engine).send(HOSTS[0], Datagram(packed(x), udp_checksum=0).frame())
    assert out is not None and out[1][40:42] == b"\0\0"


# -- what is not compressed ---------------------------------------------------------------------

FLOATS = packed(gradients(64))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (Datagram(FLOATS, NEAR_2), "local"),
        (Datagram(FLOATS, protocol=6), "not UDP"),
        (Datagram(FLOATS, options=b"\1\1\1\0"), "options"),
        (Datagram(FLOATS, flags=0x2000), "fragment"),
        (Datagram(FLOATS, flags=0x0001), "fragment"),
        (Datagram(FLOATS, udp_length=300), "bad length"),
        (Datagram(FLOATS, udp_length=200), "bad length"),
        (Datagram(FLOATS, udp_length=4, total_length=24), "bad length"),
        (Datagram(FLOATS, udp_length=65528, total_length=12), "bad length"),
        (Datagram(FLOATS, udp_length=1008, total_length=1028), "bad length"),
        (Datagram(FLOATS[:-1]), "not words"),
        (Datagram(FLOATS + b"\0\0"), "not words"),
        (Datagram(b""), "no values"),
        (Datagram(b"", trailer=bytes(18)), "no values"),
        (Datagram(HEADER, port=18257), "no values"),
        (Datagram(HEADER[:12], port=18257), "no values"),
        (Datagram(packed(gradients(MAX_WORDS + 1))), "too long"),
        (Datagram(FLOATS, ip_checksum=0x1234), "bad checksum"),
        (Datagram(FLOATS, "10.0.1.1"), "no bound"),
        (Datagram(FLOATS, "10.0.1.7"), "unknown bound"),
        (Datagram(FLOATS, port=9003), "unknown format"),
        (Datagram(packed(gradients(64, scale=100))), "not shorter"),
        (Datagram(packed(gradients(1))), "not shorter"),
        (Datagram(FLOATS, tos=0x2C), None),
        (Datagram(FLOATS, tos=0x24), None),
        (Datagram(FLOATS, tos=0), None),
    ],
)
def test_passed_as_it_is_and_counted(engine: str, sent: Datagram, reason: str | None) -> None:
    switch, frame = edge(engine), sent.frame()
    switch.events()
    out = switch.send(HOSTS[0], frame)
    assert out is not None and out[1][6:] == frame[6:]
    assert switch.events() == ({reason: 1} if reason else {})
    assert (out, {reason: 1} if reason else {}) == expected(HOSTS[0], frame)


@pytest.mark.parametrize("engine", PROGRAMS)
@pytest.mark.parametrize("port", FABRIC)
def test_marked_packets_from_elsewhere_are_forwarded(engine: str, port: int) -> None:
    frame = Datagram(FLOATS).frame()
    assert check(port, frame, engine) == bytes.fromhex("000000000003") + frame[6:]


@pytest.mark.parametrize("engine", PROGRAMS)
def test_a_core_switch_only_forwards(engine: str) -> None:
    """It forwards the compressed packet too, though it parses it."""
    core = Switch(program(SWITCHES[engine][1]))
    core.table("routes").add({"dst_addr": ("10.0.0.0", 8)}, "forward", {"mac": 3, "port": 3})
    marked = Datagram(FLOATS).frame()
    compressed = check(HOSTS[0], marked)
    assert compressed is not None
    for frame in (marked, compressed, back(compressed), compressed[:-3], compressed + b"more"):
        assert core.process(1, frame) == [(3, bytes.fromhex("000000000003") + frame[6:])]


@pytest.mark.parametrize("engine", PROGRAMS)
def test_frames_that_are_not_ipv4_go_by_address(engine: str) -> None:
    switch = Switch(program(SWITCHES[engine][1]))
    station = {"dst_addr": "02:00:00:00:00:02"}
    switch.table("stations").add(station, "switch_to", {"port": 2})
    switch.table("stations").add({"dst_addr": "ff:ff:ff:ff:ff:ff"}, "flood", {"group": 1})
    switch.multicast(1, [1, 2, 3])
    for kind in ("0806", "86dd"):
        frame = bytes.fromhex(f"020000000002 020000000001 {kind}") + bytes(range(50))
        assert switch.process(1, frame) == [(2, frame)]
        frame = bytes.fromhex(f"ffffffffffff 020000000001 {kind}") + bytes(46)
        assert sorted(switch.process(1, frame)) == [(2, frame), (3, frame)]
    assert switch.process(1, frame[:13]) == []


# -- what is no compressed packet ---------------------------------------------------------------


@functools.cache
def whole_payload() -> bytes:
    """Return shim and bursts of 61 values."""
    out = check(HOSTS[0], Datagram(packed(gradients(61))).frame())
    assert out is not None
    return out[OVERHEAD:]


MALFORMED = {
    "a tag left over": lambda p: p[:1] + b"\x3c" + p[2:],
    "a burst missing": lambda p: p[:1] + b"\x41" + p[2:],
    "no values": lambda p: b"\0\0" + p[2:],
    "too many values": lambda p: struct.pack(">HBB", 369, 10, 0) + bytes(2 * 47),
    "too many with a header": lambda p: struct.pack(">HBB", 365, 10, 2) + HEADER + bytes(2 * 46),
    "unknown bound": lambda p: p[:2] + b"\x09" + p[3:],
    "unknown flag": lambda p: p[:3] + b"\x04" + p[4:],
    "a header that is not there": lambda p: p[:3] + b"\x02" + p[4:],
    "a byte too few": lambda p: p[:-1],
    "a byte too many": lambda p: p + b"\0",
    "shim only": lambda p: p[:4],
    "not even a shim": lambda p: p[:3],
    "nothing": lambda p: b"",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", MALFORMED)
def test_malformed_packets_are_dropped_and_counted(engine: str, how: str) -> None:
    payload = MALFORMED[how](whole_payload())
    frame = Datagram(payload, NEAR, tos=COMPRESSED).frame()
    switch = edge(engine)
    switch.events()
    assert switch.send(FABRIC[0], frame) is None
    assert switch.events() == {"malformed": 1}
    assert expected(FABRIC[0], frame) == (None, {"malformed": 1})


@pytest.mark.parametrize("engine", PROGRAMS)
@pytest.mark.parametrize(
    "lies", [{"udp_length": 90}, {"total_length": 100}, {"total_length": 999}, {"ip_checksum": 1}]
)
def test_lying_lengths_are_malformed(engine: str, lies: dict) -> None:
    frame = Datagram(whole_payload(), NEAR, tos=COMPRESSED, **lies).frame()
    assert check(FABRIC[0], frame, engine) is None


@pytest.mark.parametrize("engine", [*PROGRAMS, "passes"])
def test_the_most_values_and_the_least_bytes(engine: str) -> None:
    """A packet of 368 zeros grows elevenfold."""
    for header, flags in ((b"", 0), (HEADER, 3)):
        n = MAX_WORDS - len(header) // 4
        payload = struct.pack(">HBB", n, 6, flags) + header + bytes(2 * -(-n // 8))
        out = check(FABRIC[0], Datagram(payload, NEAR, tos=COMPRESSED).frame(), engine)
        assert out is not None and out[OVERHEAD:] == header + bytes(4 * n)


def test_the_longest_bursts() -> None:
    """All values whole: the switch makes no such packet, as it is not shorter, but restores it."""
    values = packed(gradients(MAX_WORDS, scale=100))
    bursts = b"".join(b"\xff\xff" + values[i : i + 32] for i in range(0, len(values), 32))
    payload = struct.pack(">HBB", MAX_WORDS, 6, 0) + bursts
    for engine in (*ENGINES, "passes"):
        out = check(FABRIC[0], Datagram(payload, NEAR, tos=COMPRESSED).frame(), engine)
        assert out is not None and out[OVERHEAD:] == values


# -- anything -----------------------------------------------------------------------------------

mutations = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 255), st.sampled_from(["set", "cut", "insert"])),
    max_size=4,
)


def mutated(frame: bytes, changes: list, fix: bool) -> bytes:
    for at, value, how in changes:
        at %= max(len(frame), 1)
        keep = {"set": frame[at + 1 :], "cut": b"", "insert": frame[at:]}[how]
        frame = frame[:at] + bytes([value]) + keep
    if fix and len(frame) >= 34:  # an IP checksum that is right again
        right = ip_checksum(frame[14:24] + b"\0\0" + frame[26:34])
        frame = frame[:24] + struct.pack(">H", right) + frame[26:]
    return frame


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=150, deadline=None)
@given(
    way=st.sampled_from(["compress", "decompress", "noise"]),
    port=st.sampled_from([*HOSTS, *FABRIC]),
    n=st.sampled_from([1, 3, 8, 9, 20]),
    udp_port=st.sampled_from([PLAIN_PORT, *FORMATS]),
    changes=mutations,
    fix=st.booleans(),
    noise=st.binary(max_size=80),
)
def test_damaged_packets(engine, way, port, n, udp_port, changes, fix, noise) -> None:
    """The switch follows the rules, whatever arrives."""
    header = FORMATS.get(udp_port, (0, 0))[0]
    frame = Datagram(HEADER[:header] + packed(gradients(n, scale=0.01)), port=udp_port).frame()
    if way == "decompress":
        out, _ = expected(HOSTS[0], frame)
        assert out is not None
        frame = back(out[1])
    elif way == "noise":
        frame = frame[:12] + noise
    check(port, mutated(frame, changes, fix), engine)


# -- between the passes of the program for Tofino ------------------------------------------------

RECIRCULATION_PORT = 6
CARRIED = ">BBHHBHHHHHI"  # carried_t
TAKE_WORDS, TAKE_BURSTS, GIVE_BURSTS, GIVE_WORDS, GIVE_BACK = range(1, 6)


def between_passes(mode: int, serial: int, left: int = 1) -> bytes:
    """Return a packet of 16 values that has been through some passes; FABRIC[0] is its port."""
    first = 1 << 6
    carried = struct.pack(CARRIED, mode << 4, first, FABRIC[0], HOSTS[0], 0, 16, left, 0, 0,
                          0, serial)  # fmt: skip
    frame = Datagram(b"").frame()
    return carried + frame + struct.pack(">HBB", 16, 10, 0) + bytes(64)


@pytest.mark.parametrize("engine", ["tna", "tna interpreter"])
@pytest.mark.parametrize("mode", [GIVE_BURSTS, GIVE_WORDS, GIVE_BACK])
def test_a_packet_whose_row_went_to_another_is_lost(engine: str, mode: int) -> None:
    """It gets none of the other's values."""
    edge = TosSwitch(*SWITCHES[engine])
    assert edge.send(HOSTS[0], Datagram(FLOATS).frame()) is not None  # the first one: row 1
    before = edge.switch.counter("overtaken").read(0)[0]
    assert edge.send(RECIRCULATION_PORT, between_passes(mode, serial=1)) is not None
    for serial in (2, 512, 513):
        assert edge.send(RECIRCULATION_PORT, between_passes(mode, serial)) is None
    assert edge.switch.counter("overtaken").read(0)[0] - before == 3


def test_rows_are_used_again() -> None:
    edge = TosSwitch("jit", "tna")
    frames = [Datagram(packed(gradients(20, seed=n))).frame() for n in range(300)]
    for frame in frames:
        out = edge.send(HOSTS[0], frame)
        assert out == expected(HOSTS[0], frame)[0] and out is not None
        restored = back(out[1])
        assert edge.send(FABRIC[0], restored) == expected(FABRIC[0], restored)[0]
    assert edge.switch.counter("overtaken").read(0)[0] == 0


@pytest.mark.parametrize("engine", ["tna", "tna interpreter"])
def test_packets_of_all_pipes_are_compressed_in_the_first(engine: str) -> None:
    edge = TosSwitch(*SWITCHES[engine])
    sent = Datagram(FLOATS).frame()
    for pipe in (1, 2, 3):
        edge.switch.table("host_ports").add({"port": pipe << 7 | 1}, "host")
        assert edge.send(pipe << 7 | 1, sent) == expected(HOSTS[0], sent)[0]


# -- the control plane --------------------------------------------------------------------------


@pytest.mark.parametrize("engine", PROGRAMS)
def test_bound_and_format_change_while_traffic_runs(engine: str) -> None:
    edge = TosSwitch(*SWITCHES[engine])
    frame = Datagram(FLOATS, "10.0.1.10").frame()
    sizes = []
    for k in (10, 8, 6):
        match = {"dst_addr": ("10.0.1.10", 32)}
        edge.switch.table("bounds").modify(match, "set_bound", {"k": k})
        out = edge.send(HOSTS[0], frame)
        assert out is not None and out[1][OVERHEAD + 2] == k
        sizes.append(len(out[1]))
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 3
    params = {"header_bytes": 16, "little_endian": 1}
    edge.switch.table("formats").add({"dst_port": PLAIN_PORT}, "set_format", params)
    out = edge.send(HOSTS[0], frame)
    assert out is not None and out[1][OVERHEAD + 3 : OVERHEAD + 20] == b"\3" + FLOATS[:16]
    edge.switch.table("bounds").remove(match)
    assert edge.send(HOSTS[0], frame) == (3, bytes.fromhex("000000000003") + frame[6:])


@pytest.mark.parametrize("engine", PROGRAMS)
def test_the_counters_give_the_bytes_saved(engine: str) -> None:
    edge = TosSwitch(*SWITCHES[engine])
    before = after = 0
    for n in (20, 61, 256, 1):
        frame = Datagram(packed(gradients(n))).frame()
        out = edge.send(HOSTS[0], frame)
        assert out is not None
        before, after = before + len(frame), after + len(out[1])
    tags = edge.tags()
    packets, size = edge.sizes("compressed")
    assert (packets, size) == (3, before - OVERHEAD - 4)
    sent = 4 * packets + 2 * tags[4] + tags[1] + 2 * tags[2] + 4 * tags[3]
    assert before - after == 4 * sum(tags[:4]) - sent
    assert sum(tags[:4]) == 20 + 61 + 256


@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c-bm2-ss is not on PATH")
def test_p4c_compiles_it(tmp_path: Path) -> None:
    """Its copy propagation repeats expressions; ONCE in include/inceptionn.p4 holds it back."""
    out = tmp_path / "tos.json"
    words = ["p4c-bm2-ss", "--arch", "v1model", "--Wdisable", "-o", out, "p4/tos_compress.p4"]
    subprocess.run(words, check=True)
    assert out.stat().st_size < 10_000_000
