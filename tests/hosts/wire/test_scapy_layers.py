import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from gradplane import codecs
from gradplane.hosts.scapy_layers import Aggregation, Compressed, bind, compressed, payload
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type

FRAME = Ether(src="00:00:00:00:00:01", dst="00:00:00:00:00:fe") / IP(dst="10.0.0.254")


@pytest.fixture(autouse=True)
def bound():
    bind()
    bind()


def test_importing_binds_nothing():
    code = (
        "import gradplane.hosts.scapy_layers as s; from scapy.layers.inet import UDP;"
        "assert type(UDP(bytes(UDP(dport=18256) / bytes(30))).payload).__name__ == 'Raw';"
        "s.bind();"
        "assert UDP(bytes(UDP(dport=18256) / bytes(30))).payload.name == 'Aggregation'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@given(
    st.sampled_from(Type),
    st.sampled_from([8, 16, 32]),
    st.sampled_from(codecs.CODE_WIDTHS),
    st.integers(0, 255),
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.floats(0, width=32),
)
def test_both_descriptions_of_the_format_agree(
    kind, sum_bits, code_bits, small, slot, round, bitmap, norm
):
    place, bits = (kind, small, small, slot, round, sum_bits), aggregation.norm_bits(norm)
    header = Header(*place, bits, bitmap, count=slot, code_bits=code_bits)
    numbers = np.arange(aggregation.LANES[sum_bits])
    body, values = b"", []
    if kind is Type.INDICES:
        values = (numbers % 2**code_bits).astype(np.uint8)
        body = aggregation.pack_indices(values, sum_bits, code_bits)
    elif kind in (Type.SUMS, Type.PARTIAL):
        values = numbers * 97 % 2**sum_bits
        body = aggregation.pack_sums(values, sum_bits)
    packet = Aggregation(
        type=kind.name.lower(),
        job=small,
        worker=small,
        slot=slot,
        sum_bits=sum_bits,
        code_bits=code_bits,
        round=round,
        bitmap=bitmap,
        norm=norm,
        count=slot,
        values=values,
    )
    assert payload(packet) == header.pack() + body
    again = Aggregation(header.pack() + body)
    assert again.type == kind
    assert again.values == list(values) and not again.damaged
    assert (again.slot, again.round, again.bitmap, again.norm) == (slot, round, bitmap, norm)


@pytest.mark.parametrize("ports", [{"sport": 20003}, {"sport": 18256, "dport": 20003}])
def test_udp_either_way(ports):
    frame = FRAME / UDP(**ports) / Aggregation(type="norm", slot=3, norm=1.5)
    again = Ether(bytes(frame))
    assert again[Aggregation].norm == 1.5
    assert 18256 in (again[UDP].sport, again[UDP].dport)
    assert again[UDP].len == 8 + 30


def test_show_is_short_and_readable():
    packet = Aggregation(type="sums", flags="answer", worker=4, bitmap=15, values=range(256))
    text = packet.show(dump=True)
    assert "type      = sums" in text
    assert "flags     = answer" in text
    assert "bitmap    = 0xf" in text
    assert (
        "values    = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, ... 240 more]" in text
    )
    frame = FRAME / UDP() / Aggregation(type="indices", job=1, worker=2, slot=3, round=4)
    assert frame.summary().endswith("UDP / indices job 1 worker 2 slot 3 round 4")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x13",
        bytes(24),
        bytes(30),
        b"\xff" * 100,
        Header(Type.SUMS, 0, 0, 0, 1, 16).pack() + bytes(33),
    ],
)
def test_what_is_damaged_is_dissected_as_far_as_it_goes(data):
    packet = Ether(bytes(FRAME / UDP(dport=18256) / Raw(data)))
    packet.show(dump=True)
    assert bytes(packet)[42:] == data


def test_wrong_lengths_can_be_made():
    assert len(payload(Aggregation(type="indices", values=[1, 2, 3]))) == 30 + 2
    assert len(payload(Aggregation(type="sums", sum_bits=16, values=[1]))) == 30 + 2


def test_version_1_of_old_captures_is_read():
    """Its header ends with the norm; in results the worker is the count."""
    old = bytes.fromhex("14 00 03 04 00 05 00 08 00 00 00 06 00 00 00 00 00 00 00 0f 3f c0 00 00")
    packet = Ether(bytes(FRAME / UDP(sport=18256, dport=20003) / Raw(old + bytes([7]) * 1024)))
    sums = packet[Aggregation]
    assert (sums.version, sums.worker, sums.round, sums.norm) == (1, 4, 6, 1.5)
    assert sums.values == [7] * 1024 and not sums.damaged
    assert bytes(packet)[42:] == old + bytes([7]) * 1024


def test_a_damaged_header_is_said_to_be():
    data = bytearray(payload(Aggregation(type="norm", slot=3, norm=1.5)))
    data[9] ^= 4
    assert Aggregation(bytes(data)).damaged


def test_answers():
    sums, indices = Aggregation(type="sums", slot=2), Aggregation(type="indices", slot=2)
    assert sums.answers(indices)
    assert not sums.answers(Aggregation(type="indices", slot=3))
    assert not Aggregation(type="norm_result").answers(indices)


# -- compressed on the way ----------------------------------------------------------------------

VALUES = np.array([0.5, -0.01, 1e-4, -3.0, 0.002, 0.25, 0, 7, 0.03, -1e-3], dtype=np.float32)
INCEPTIONN = codecs.get("inceptionn", bound=10)


@pytest.mark.parametrize("message", [b"", bytes(range(16))])
def test_compressed_values_are_the_codecs(message):
    layer = Compressed.of(VALUES, message=message)
    bursts, _ = INCEPTIONN.encode(VALUES)
    shim = b"\0\x0a\x0a" + (b"\2" if message else b"\0")
    assert bytes(layer) == shim + message + bursts
    frame = compressed(Ether(bytes(FRAME / UDP(dport=7000) / layer)))  # FRAME has ToS 0
    assert Compressed not in frame
    marked = Ether(bytes(Ether() / IP(tos=0x2D) / UDP(dport=7000) / layer))
    again = compressed(marked)
    assert bytes(again) == bytes(marked)
    assert (again[Compressed].values == INCEPTIONN.decode(bursts, VALUES.size)).all()
    assert again[Compressed].tags == [2, 1, 0, 3, 1, 2, 0, 3, 1, 1]
    assert again.summary().endswith("compressed 10 values, bound 2^-10, of tags 0 to 3: 2, 4, 2, 2")


def test_compressed_is_shown_by_burst():
    text = Compressed.of(VALUES, flags=1).show(dump=True)
    assert "flags     = little_endian\n" in text
    assert "tags      = [2, 1, 0, 3, 1, 2, 0, 3]\n" in text
    assert text.count("###[ Burst ]###") == 2


@pytest.mark.parametrize("cut", [0, 3, 5, 12])
def test_what_is_cut_off_is_dissected_as_far_as_it_goes(cut):
    data = bytes(Compressed.of(VALUES))[:cut]
    packet = compressed(Ether(bytes(Ether() / IP(tos=0x2C) / UDP(dport=7) / Raw(data))))
    packet.show(dump=True)
    assert bytes(packet)[42:] == data
    assert (Compressed in packet) == (cut > 3)
    if cut > 3:
        with pytest.raises(codecs.CodecError):
            _ = packet[Compressed].values
