#!/usr/bin/env bash
# A pcapng Simple Packet Block is whole in tshark, absent in dpkt, and empty in Scapy.
#
# Versions:  Scapy 2.8.0, dpkt 1.9.8, python-pcapng 2.1.1 from PyPI; tshark 4.0.17 from Debian 12.
# Expected:  A reader of pcapng gives the frame (without a time), or says that it cannot read the block.
# Seen:      The interface's snap length is 0, which stands for "no limit". tshark and python-pcapng
#            give the 62 bytes. dpkt's reader skips the block: no packet, no word. Scapy takes the 0 as
#            a limit: it returns a packet that was made from no bytes, stamped with the present time.
# Matters:   Small devices and test generators write these blocks, since they need no clock; a count of
#            packets or bytes differs by reader, from none to all.
# Source:    The pcapng draft: Simple Packet Block, and SnapLen of the Interface Description Block
#            ("a value of zero indicates no limit").
set -euo pipefail
command -v tshark >/dev/null || { echo "needs Debian's package tshark"; exit 2; }
dpkg-query -W -f '${Package} ${Version}\n' tshark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1

"$venv/bin/python" - "$work/simple.pcapng" <<'PY' | tee "$work/seen"
import struct
import sys

import dpkt
from pcapng import FileScanner
from scapy.all import IP, UDP, Ether, Raw, rdpcap


def block(kind, body):
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


layers = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.0.2") / UDP()
frame = bytes(layers / Raw(bytes(20)))
with open(sys.argv[1], "wb") as file:
    file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
    file.write(block(1, struct.pack("<HHI", 1, 0, 0)))
    file.write(block(3, struct.pack("<I", len(frame)) + frame + bytes(-len(frame) % 4)))
with open(sys.argv[1], "rb") as file:
    print("dpkt, packets:", len(list(dpkt.pcapng.Reader(file))))
with open(sys.argv[1], "rb") as file:
    blocks = [block for block in FileScanner(file) if hasattr(block, "packet_data")]
    print("python-pcapng, bytes:", *(len(block.packet_data) for block in blocks))
packets = rdpcap(sys.argv[1])
print("scapy, packets:", len(packets), "with IP:", sum(IP in packet for packet in packets))
PY
tshark -r "$work/simple.pcapng" -T fields -e frame.len 2>/dev/null | xargs echo tshark, bytes: |
  tee -a "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
dpkt, packets: 0
python-pcapng, bytes: 62
scapy, packets: 1 with IP: 0
tshark, bytes: 62
TXT
