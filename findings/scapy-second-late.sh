#!/usr/bin/env bash
# Scapy writes a packet just before a full second one second late, or with 1,000,000 microseconds, which
# tshark shows as a tenth of a second.
#
# Versions:  Scapy 2.8.0 from PyPI, tshark 4.0.17 (Debian 12).
# Expected:  `wrpcap(nano=True)` keeps a packet's time, and wrpcap's microseconds are 0 to 999,999.
# Seen:      1700000001.999999999 s is written as 1700000002.999999999 with nano=True, and as
#            1700000002 s and 1,000,000 us without. From some 119 ns before the second on: it is taken
#            from the time as a float, which rounds up there, and the rest from the exact time. The time
#            1700000001.9999996 is 1700000001 s and 1,000,000 us, which tshark prints as
#            1700000001.1000000000.
# Matters:   Of a million packets a second one moves every eight seconds or so behind those of the next
#            second: a capture that was rewritten has gaps, and answers before their questions.
# Source:    pcap's file format (draft-ietf-opsawg-pcap), Scapy's documentation of wrpcap.
set -euo pipefail
command -v tshark >/dev/null || {
  echo "tshark is missing: apt-get install tshark"
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet scapy==2.8.0

{
  "$venv/bin/python" - "$work" <<'PY'
import struct
import sys
from decimal import Decimal

from scapy.all import IP, UDP, Ether, wrpcap

packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.0.2") / UDP()
path = f"{sys.argv[1]}/a.pcap"
for time, nano in (
    ("1700000001.999999800", True),
    ("1700000001.999999999", True),
    ("1700000001.999999999", False),
    ("1700000001.9999996", False),
):
    packet.time = Decimal(time)
    wrpcap(path, packet, nano=nano)
    with open(path, "rb") as file:
        seconds, rest = struct.unpack("<II", file.read()[24:32])
    print(time, "->", seconds, "s and", rest, "ns" if nano else "us")
PY
  echo "tshark: $(tshark -r "$work/a.pcap" -T fields -e frame.time_epoch 2>/dev/null)"
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
1700000001.999999800 -> 1700000001 s and 999999800 ns
1700000001.999999999 -> 1700000002 s and 999999999 ns
1700000001.999999999 -> 1700000002 s and 1000000 us
1700000001.9999996 -> 1700000001 s and 1000000 us
tshark: 1700000001.1000000000
TXT
