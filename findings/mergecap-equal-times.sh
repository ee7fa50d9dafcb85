#!/usr/bin/env bash
# mergecap puts packets of equal time in the reverse order of the files on its command line.
#
# Versions:  mergecap 4.0.17 from Debian 12 (wireshark-common); Scapy 2.8.0 from PyPI.
# Expected:  A merge is stable: of packets with the same time, those of the file named first come first
#            (the order in which frames are given to the merge), as `sort -m` and others do.
# Seen:      The last file's packets come first: `mergecap in.pcap switch.pcap out.pcap` gives out,
#            switch, in. Within a file the order stays.
# Matters:   Where time is virtual, or coarse, a packet has one time at every hop it passes at once; the
#            merged capture shows the effect before its cause. Name the files in reverse, or use -a.
# Source:    mergecap's manual page: "merged chronologically based on each frame's timestamp"; it says
#            nothing of equal times.
set -euo pipefail
command -v mergecap >/dev/null || { echo "needs Debian's packages wireshark-common, tshark"; exit 2; }
dpkg-query -W -f '${Package} ${Version}\n' wireshark-common
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet scapy==2.8.0

"$venv/bin/python" - "$work" <<'PY'
import sys

from scapy.all import IP, UDP, Ether, wrpcap

for port, name in enumerate(("in", "switch", "out"), 1):
    base = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.0.2")
    packets = [base / UDP(sport=10 * port + copy, dport=5000) for copy in (0, 1)]
    for packet in packets:
        packet.time = 5
    wrpcap(f"{sys.argv[1]}/{name}.pcap", packets)
PY
cd "$work"
merged() {
  mergecap -w merged.pcapng "$@"
  echo "$*: $(tshark -r merged.pcapng -T fields -e udp.srcport 2>/dev/null | xargs)"
}
{
  merged in.pcap switch.pcap
  merged in.pcap switch.pcap out.pcap
  merged out.pcap switch.pcap in.pcap
} | tee seen
diff - seen <<'TXT' && echo "as described"
in.pcap switch.pcap: 20 21 10 11
in.pcap switch.pcap out.pcap: 30 31 20 21 10 11
out.pcap switch.pcap in.pcap: 10 11 20 21 30 31
TXT
