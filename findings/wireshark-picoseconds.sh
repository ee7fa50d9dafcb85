#!/usr/bin/env bash
# tshark 4.0 misreads pcapng times of picosecond resolution once the fraction passes 18.4 ms.
#
# Versions:  tshark 4.0.17 from Debian 12; Scapy 2.8.0 and dpkt 1.9.8 from PyPI.
# Expected:  1000.123456789012 s with if_tsresol = 12 shows as 1000.123456789, cut to nanoseconds.
# Seen:      tshark shows 1000.012776324: the fraction times 10^9 does not fit 64 bits, and what is left
#            is divided. Fractions up to 18.446 ms are right. Scapy and dpkt are right. No warning, and
#            what editcap or mergecap writes from such a file has the wrong times for good.
# Matters:   Packets jump back and forth by up to a second, delays between them turn negative, and the
#            first packets of each second look fine. Hardware that stamps below a nanosecond, and
#            simulators that count picoseconds, write this resolution.
# Source:    The pcapng draft: if_tsresol, "the number of digits after the decimal point".
set -euo pipefail
command -v tshark >/dev/null || { echo "needs Debian's package tshark"; exit 2; }
dpkg-query -W -f '${Package} ${Version}\n' tshark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet dpkt==1.9.8 scapy==2.8.0

"$venv/bin/python" - "$work/pico.pcapng" <<'PY' | tee "$work/seen"
import struct
import sys

import dpkt
from scapy.all import IP, UDP, Ether, rdpcap


def block(kind, body):
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.0.2") / UDP())
with open(sys.argv[1], "wb") as file:
    file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    file.write(block(1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HHB3x", 9, 1, 12) + bytes(4)))
    for time in (1_000_018_446_744_073, 1_000_018_446_744_074, 1_000_123_456_789_012):
        packet = struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
        file.write(block(6, packet + frame + bytes(-len(frame) % 4)))
print("scapy:", *(packet.time for packet in rdpcap(sys.argv[1])))
with open(sys.argv[1], "rb") as file:
    print("dpkt:", *(f"{float(time):.9f}" for time, _ in dpkt.pcapng.Reader(file)))
PY
tshark -r "$work/pico.pcapng" -T fields -e frame.time_epoch 2>/dev/null | xargs echo tshark: |
  tee -a "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
scapy: 1000.018446744073 1000.018446744074 1000.123456789012
dpkt: 1000.018446744 1000.018446744 1000.123456789
tshark: 1000.018446744 1000.000000000 1000.012776324
TXT
