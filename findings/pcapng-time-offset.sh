#!/usr/bin/env bash
# An interface's if_tsoffset is added by tshark and dpkt, and ignored by Scapy and python-pcapng.
#
# Versions:  Scapy 2.8.0, dpkt 1.9.8, python-pcapng 2.1.1 from PyPI; tshark 4.0.17 from Debian 12.
# Expected:  Four readers of one pcapng file report one time.
# Seen:      With an offset of 3600 s, two report an hour more than the other two. dpkt adds it, and
#            rounds the sum to a float: 123456789 ns come out as 123456717 ns. None warns.
# Matters:   A capture card or emulator whose clock starts at 0 writes small times and puts the start of
#            the capture into the offset; half of the readers see packets of 1970.
# Source:    The pcapng draft, option 14 of the Interface Description Block: seconds to be added to each
#            packet's time.
set -euo pipefail
command -v tshark >/dev/null || { echo "needs Debian's package tshark"; exit 2; }
dpkg-query -W -f '${Package} ${Version}\n' tshark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1

"$venv/bin/python" - "$work/offset.pcapng" <<'PY' | tee "$work/seen"
import struct
import sys

import dpkt
from pcapng import FileScanner
from scapy.all import IP, UDP, Ether, rdpcap


def block(kind, body):
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.0.2") / UDP())
nanoseconds = struct.pack("<HHB3x", 9, 1, 9)
offset = struct.pack("<HHq", 14, 8, 3600)
time = 1_700_000_000_123_456_789
packet = struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
with open(sys.argv[1], "wb") as file:
    file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    file.write(block(1, struct.pack("<HHI", 1, 0, 0) + nanoseconds + offset + bytes(4)))
    file.write(block(6, packet + frame + bytes(-len(frame) % 4)))
print("scapy:", rdpcap(sys.argv[1])[0].time)
with open(sys.argv[1], "rb") as file:
    blocks = [block for block in FileScanner(file) if hasattr(block, "packet_data")]
    print(f"python-pcapng: {float(blocks[0].timestamp):.6f}")
with open(sys.argv[1], "rb") as file:
    print("dpkt:", *(f"{float(time):.9f}" for time, _ in dpkt.pcapng.Reader(file)))
PY
tshark -r "$work/offset.pcapng" -T fields -e frame.time_epoch 2>/dev/null | xargs echo tshark: |
  tee -a "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
scapy: 1700000000.123456789
python-pcapng: 1700000000.123457
dpkt: 1700003600.123456717
tshark: 1700003600.123456789
TXT
