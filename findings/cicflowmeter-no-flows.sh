#!/usr/bin/env bash
# cicflowmeter, as pip installs it, makes an empty file of any capture, and says nothing.
#
# Versions:  cicflowmeter 0.2.0 from PyPI with Scapy 2.8.0, which pip chooses beside it, and with Scapy 2.5.0.
# Expected:  A flow of a hundred datagrams is a line of the CSV, or an error; cicflowmeter asks for Scapy from 2.5.0 on and
#            below 3.
# Seen:      With Scapy 2.8.0 the file has 0 bytes, not even the names of the columns, and the exit status is 0: Scapy no
#            longer calls the method of sessions that collects flows. With Scapy 2.5.0 there is the flow, with 100 packets.
# Matters:   A pipeline that labels captures reports that there was no traffic. Check that the file has a first line.
# Source:    cicflowmeter's page on PyPI; Scapy's documentation on sessions.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=$work/venv # of its own: numpy is an old one
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet cicflowmeter==0.2.0 scapy==2.8.0

"$venv/bin/python" -W ignore - "$work" <<'PY'
import sys

from scapy.all import IP, UDP, Ether, Raw, wrpcap

packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2")
packets = [packet / UDP(sport=1000, dport=18256) / Raw(bytes(1000)) for _ in range(100)]
for index, packet in enumerate(packets):
    packet.time = 1_700_000_000 + index / 100
wrpcap(f"{sys.argv[1]}/flow.pcap", packets)
PY
tried() {
  "$venv/bin/python" -c 'import scapy; print("Scapy", scapy.VERSION)'
  rm -f "$work/flows.csv"
  "$venv/bin/cicflowmeter" -f "$work/flow.pcap" -c "$work/flows.csv" >"$work/said" 2>&1
  echo "  status $?, $(wc -l <"$work/flows.csv") lines"
  "$venv/bin/python" - "$work/flows.csv" <<'PY'
import csv
import sys

with open(sys.argv[1]) as file:
    for row in csv.DictReader(file):
        print("  packets:", row["tot_fwd_pkts"])
PY
}
{
  tried
  "$venv/bin/pip" install --quiet scapy==2.5.0
  tried
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
Scapy 2.8.0
  status 0, 0 lines
Scapy 2.5.0
  status 0, 2 lines
  packets: 100
TXT
