#!/usr/bin/env bash
# A capture that dpkt writes loses the last 14 bytes of each full Ethernet frame in tcpdump.
#
# Versions:  dpkt 1.9.8 and Scapy 2.8.0 from PyPI; tcpdump 4.99.3 (libpcap 1.10.3) and tshark 4.0.17
#            from Debian 12.
# Expected:  dpkt.pcap.Writer writes a frame whole, so every reader gets it whole; a file with no
#            truncated packet says a snap length that no packet exceeds.
# Seen:      The header says 1500, the MTU, for frames that are 1514 bytes. The record holds all 1514.
#            Scapy and tshark return 1514; libpcap, and so tcpdump, cuts to the header's 1500.
# Matters:   The last 14 bytes of a payload (sums, indices) are gone after one pass through tcpdump,
#            and "packet size limited during capture" is what the reader then blames. Jumbo frames
#            lose 7.5 kB. Pass snaplen=262144.
# Source:    The pcap file format: the snap length is the most that is stored of each packet.
set -euo pipefail
for tool in tcpdump tshark; do
  command -v "$tool" >/dev/null || { echo "needs Debian's package $tool"; exit 2; }
done
dpkg-query -W -f '${Package} ${Version}\n' tcpdump libpcap0.8 tshark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet dpkt==1.9.8 scapy==2.8.0

"$venv/bin/python" - "$work" <<'PY' | tee "$work/seen"
import struct
import sys

import dpkt
from scapy.all import IP, UDP, Ether, Raw, rdpcap

path = f"{sys.argv[1]}/full.pcap"
frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2")
with open(path, "wb") as file:
    dpkt.pcap.Writer(file).writepkt(bytes(frame / UDP() / Raw(bytes(1472))), ts=1)
with open(path, "rb") as file:
    print("snap length in the header:", struct.unpack("<I", file.read(20)[16:])[0])
print("scapy:", len(rdpcap(path)[0]))
PY
tcpdump -n -r "$work/full.pcap" -w "$work/again.pcap" 2>/dev/null
lengths() { tshark -r "$1" -T fields -e frame.len -e frame.cap_len 2>/dev/null | tr '\t' ' '; }
{
  echo "tshark, length and captured: $(lengths "$work/full.pcap")"
  echo "after tcpdump: $(lengths "$work/again.pcap")"
} | tee -a "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
snap length in the header: 1500
scapy: 1514
tshark, length and captured: 1514 1514
after tcpdump: 1514 1500
TXT
