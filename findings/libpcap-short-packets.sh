#!/usr/bin/env bash
# A capture filter that reads past a packet's end refuses it, even under "not" and before "or".
#
# Versions:  tcpdump 4.99.3 with libpcap 1.10.3, Debian 12; Scapy 2.8.0 from PyPI (writes the capture).
# Expected:  "not F" selects what F does not, and "F or G" the same as "G or F"; a test of a byte that is not
#            there is false.
# Seen:      Datagrams of 3, 1 and 0 bytes to port 9000 and an ARP request: "udp[9] = 1" selects the first,
#            "not udp[9] = 1" only the ARP request. "udp[9] = 1 or udp port 9000" selects one datagram, in the
#            other order all three; "ether[100] = 1 or arp" nothing, in the other order the request. A load
#            past the end ends the whole filter with "no".
# Matters:   "All but my protocol" loses short packets of others, and a filter's count and its opposite's do not
#            add up. Snapped captures lose more: what was cut off counts as missing. Test the length
#            first ("udp[4:2] < 10 or not udp[9] = 1").
# Source:    McCanne and Jacobson, The BSD Packet Filter (1993); pcap-filter's manual page does not say it.
set -euo pipefail
command -v tcpdump >/dev/null || { echo "needs Debian's package tcpdump"; exit 2; }
dpkg-query -W -f '${Package} ${Version}\n' tcpdump libpcap0.8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet scapy==2.8.0

"$venv/bin/python" - "$work/all.pcap" <<'PY'
import sys

from scapy.all import ARP, IP, UDP, Ether, wrpcap

link = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
sizes = [bytes([7, 1, 2]), bytes([7]), b""]
datagrams = [link / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=9000, dport=9000) / data for data in sizes]
wrpcap(sys.argv[1], [*datagrams, link / ARP(psrc="10.0.0.1", pdst="10.0.0.2")])
PY
while read -r filter; do
  lengths=$(tcpdump -n -r "$work/all.pcap" "$filter" 2>/dev/null | sed 's/.*UDP, length //; s/.*ARP.*/ARP/')
  echo "$filter:" $lengths
done <<'TXT' | tee "$work/seen"
udp[9] = 1
not udp[9] = 1
udp[4:2] < 10 or not udp[9] = 1
udp[9] = 1 or udp port 9000
udp port 9000 or udp[9] = 1
ether[100] = 1 or arp
arp or ether[100] = 1
TXT
diff - "$work/seen" <<'TXT' && echo "as described"
udp[9] = 1: 3
not udp[9] = 1: ARP
udp[4:2] < 10 or not udp[9] = 1: 1 0 ARP
udp[9] = 1 or udp port 9000: 3
udp port 9000 or udp[9] = 1: 3 1 0
ether[100] = 1 or arp:
arp or ether[100] = 1: ARP
TXT
