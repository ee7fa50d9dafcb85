#!/usr/bin/env bash
# Of a datagram in six fragments, capture filters and NFStream take the first, display filters the last.
#
# Versions:  Scapy 2.8.0 and NFStream 6.6.0 from PyPI; tshark 4.0.17, tcpdump 4.99.3 (libpcap 1.10.3) from Debian 12.
# Expected:  8212 bytes that cross the wire for one UDP datagram of 8000 are 8212 in each tool's statistics of the
#            flow, as its addresses, protocol and identification are in each fragment.
# Seen:      "udp port 18256" is the first fragment in tcpdump (1514 bytes), and "udp.port == 18256" the last one in
#            tshark (642 bytes), in one and the same file. tshark's statistics of UDP conversations have one frame of
#            642 bytes, those of IP all six. NFStream has one flow of one packet of 1514 bytes; the other five are in
#            no flow.
# Matters:   Packets above the MTU (a codec's block of 8 kB, MTU 1500) are counted at a fifth or a tenth
#            of their bytes, and the loss of a middle fragment, which costs the whole datagram, is seen by none of them.
#            Count by address ("host 10.0.0.1"), or send no fragments.
# Source:    pcap-filter's manual page; Wireshark's user guide, "Packet Reassembly"; NFStream's documentation.
set -euo pipefail
for tool in tcpdump tshark; do
  command -v "$tool" >/dev/null || { echo "needs Debian's package $tool"; exit 2; }
done
dpkg-query -W -f '${Package} ${Version}\n' tcpdump libpcap0.8 tshark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet scapy==2.8.0 nfstream==6.6.0 numpy==2.4.6

cat >"$work/finding.py" <<'PY'
import sys

from nfstream import NFStreamer
from scapy.all import IP, UDP, Ether, Raw, fragment, wrpcap

if __name__ == "__main__":
    path = f"{sys.argv[1]}/fragments.pcap"
    datagram = IP(src="10.0.0.1", dst="10.0.0.2", id=7) / UDP(sport=1000, dport=18256) / Raw(bytes(8000))
    ethernet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    frames = [ethernet / piece for piece in fragment(datagram, fragsize=1480)]
    for index, frame in enumerate(frames):
        frame.time = 1_700_000_000 + index / 1000
    wrpcap(path, frames)
    print("written:", len(frames), "frames,", sum(map(len, frames)), "bytes")
    for flow in NFStreamer(source=path, n_dissections=0, n_meters=1):
        print("NFStream:", flow.bidirectional_packets, "packets,", flow.bidirectional_bytes, "bytes")
PY
"$venv/bin/python" -W ignore "$work/finding.py" "$work" | tee "$work/seen"
sizes() { tshark -r "$work/$1" -Y "$2" -T fields -e frame.number -e frame.len 2>/dev/null | tr '\t\n' ' ;'; }
conversations() { tshark -r "$work/fragments.pcap" -q -z "conv,$1" 2>/dev/null | awk '/<->/ { print $(NF-4) " packets, " $(NF-3) " bytes" }'; }
tcpdump -r "$work/fragments.pcap" -w "$work/filtered.pcap" udp port 18256 2>/dev/null
{
  echo "tcpdump: $(sizes filtered.pcap frame)"
  echo "tshark: $(sizes fragments.pcap 'udp.port == 18256')"
  echo "conversations of UDP: $(conversations udp)"
  echo "conversations of IP: $(conversations ip)"
} | tee -a "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
written: 6 frames, 8212 bytes
NFStream: 1 packets, 1514 bytes
tcpdump: 1 1514;
tshark: 6 642;
conversations of UDP: 1 packets, 642 bytes
conversations of IP: 6 packets, 8212 bytes
TXT
