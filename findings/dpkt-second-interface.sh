#!/usr/bin/env bash
# dpkt reads the times of a pcapng file's second interface with the first interface's resolution.
#
# Versions:  dpkt 1.9.8, Scapy 2.8.0, python-pcapng 2.1.1 from PyPI; mergecap, tshark 4.0.17, Debian 12.
# Expected:  Each interface has its own if_tsresol; two captures of the same second that mergecap has
#            put into one file are a second's worth of packets in every reader.
# Seen:      Merging a microsecond and a nanosecond capture gives two interfaces. dpkt reports the
#            nanosecond one 1000 times too late: for 2023, in the year 55840. tshark, Scapy and
#            python-pcapng are right. The order of the files decides which of them is wrong.
# Matters:   Captures of both ends of a link are merged to measure delay; one end's times are nonsense.
# Source:    The pcapng draft: if_tsresol is an option of each Interface Description Block.
set -euo pipefail
command -v mergecap >/dev/null || { echo "needs Debian's package wireshark-common, tshark"; exit 2; }
dpkg-query -W -f '${Package} ${Version}\n' wireshark-common tshark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet dpkt==1.9.8 scapy==2.8.0 python-pcapng==2.1.1

"$venv/bin/python" - "$work" <<'PY'
import sys
from decimal import Decimal

from scapy.all import IP, UDP, Ether, wrpcap

for name, nano in (("us", False), ("ns", True)):
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.0.2") / UDP()
    frame.time = Decimal("1700000000.25" if nano else "1700000000")
    wrpcap(f"{sys.argv[1]}/{name}.pcap", frame, nano=nano)
PY
mergecap -w "$work/both.pcapng" "$work/us.pcap" "$work/ns.pcap"
"$venv/bin/python" - "$work/both.pcapng" <<'PY' | tee "$work/seen"
import sys

import dpkt
from pcapng import FileScanner
from scapy.all import rdpcap

with open(sys.argv[1], "rb") as file:
    print("dpkt:", *(f"{float(time):.3f}" for time, _ in dpkt.pcapng.Reader(file)))
with open(sys.argv[1], "rb") as file:
    blocks = [block for block in FileScanner(file) if hasattr(block, "packet_data")]
    print("python-pcapng:", *(f"{float(block.timestamp):.6f}" for block in blocks))
print("scapy:", *(f"{float(packet.time):.6f}" for packet in rdpcap(sys.argv[1])))
PY
tshark -r "$work/both.pcapng" -T fields -e frame.time_epoch 2>/dev/null | xargs echo tshark: |
  tee -a "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
dpkt: 1700000000.000 1700000000250.000
python-pcapng: 1700000000.000000 1700000000.250000
scapy: 1700000000.000000 1700000000.250000
tshark: 1700000000.000000000 1700000000.250000000
TXT
