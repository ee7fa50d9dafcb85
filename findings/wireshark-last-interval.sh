#!/usr/bin/env bash
# tshark's statistics by interval lose a capture's last packet when its time is a whole number of intervals.
#
# Versions:  tshark and editcap (wireshark-common) 4.0.17 from Debian 12; Scapy 2.8.0 from PyPI (writes the capture).
# Expected:  The intervals of -z io,stat hold each packet once: their frames add up to the capture's.
# Seen:      Of eleven packets, 100 ms apart from 0 to 1 s, the intervals of 0.1, 0.2, 0.5 and 1 s hold ten. With 0.3
#            or 2 s, or with one interval for all (0), there are eleven. The last interval ends at the last
#            packet's time and leaves out its own end, as the others do, but nothing comes after it.
#            editcap -i draws the line on the other side: a packet on a boundary goes to the file before it.
# Matters:   Simulated and paced traffic has such times. Rates and losses counted from the table are one packet
#            short, and all of a burst that arrives in the last instant is missing, so one direction of a
#            link seems to lose what the other does not.
# Source:    tshark's manual page (-z io,stat), editcap's (-i).
set -euo pipefail
for tool in tshark editcap; do
  command -v $tool >/dev/null || { echo "needs Debian's packages tshark, wireshark-common"; exit 2; }
done
dpkg-query -W -f '${Package} ${Version}\n' tshark wireshark-common
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet scapy==2.8.0

"$venv/bin/python" - "$work/paced.pcap" <<'PY'
import sys
from decimal import Decimal

from scapy.all import IP, UDP, Ether, wrpcap

packets = []
for number in range(11):
    link = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    packets.append(link / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=9000, dport=9000) / bytes(58))
    packets[-1].time = 1_700_000_000 + Decimal(number) / 10
wrpcap(sys.argv[1], packets)
PY
{
  for interval in 0 0.1 0.2 0.3 0.5 1 2; do
    frames=$(tshark -r "$work/paced.pcap" -q -z "io,stat,$interval" 2>/dev/null |
      awk -F '|' '/<>/ { sum += $3; all = all " " $3 + 0 } END { print sum " =" all }')
    echo "io,stat,$interval: $frames"
  done
  editcap -i 0.5 "$work/paced.pcap" "$work/part.pcap"
  for part in "$work"/part_*.pcap; do
    echo "editcap -i 0.5: $(tshark -r "$part" 2>/dev/null | wc -l)"
  done
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
io,stat,0: 11 = 11
io,stat,0.1: 10 = 1 1 1 1 1 1 1 1 1 1
io,stat,0.2: 10 = 2 2 2 2 2
io,stat,0.3: 11 = 3 3 3 2
io,stat,0.5: 10 = 5 5
io,stat,1: 10 = 10
io,stat,2: 11 = 11
editcap -i 0.5: 6
editcap -i 0.5: 5
TXT
