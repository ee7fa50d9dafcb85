#!/usr/bin/env bash
# Scapy writes one packet's time rounded into pcap and cut into pcapng; pcapng gets no nanoseconds.
#
# Versions:  Scapy 2.8.0 from PyPI.
# Expected:  The newer format keeps at least the resolution of the older one; both writers cut a time of
#            finer resolution the same way. What `wrpcap(nano=True)` keeps, `wrpcapng` keeps.
# Seen:      Of 1700000000.999999789 s, wrpcap makes 1700000001.000000, the next second, and wrpcapng
#            1700000000.999999. wrpcapng has no option for nanoseconds; wrpcap(nano=True) keeps them.
# Matters:   Rewriting a nanosecond capture as pcapng to keep it loses what it was rewritten for, and a
#            packet stamped by wrpcap can lie after the answer that wrpcapng stamped.
# Source:    Scapy's documentation of wrpcap and wrpcapng.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet scapy==2.8.0

"$venv/bin/python" - "$work" <<'PY' | tee "$work/seen"
import inspect
import sys
from decimal import Decimal

from scapy.all import IP, UDP, Ether, rdpcap, wrpcap, wrpcapng

packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.0.2") / UDP()
packet.time = Decimal("1700000000.999999789")
one, two, three = (f"{sys.argv[1]}/{name}" for name in ("a.pcap", "b.pcap", "c.pcapng"))
wrpcap(one, packet)
wrpcap(two, packet, nano=True)
wrpcapng(three, packet)
print("wrpcap:", rdpcap(one)[0].time)
print("wrpcap(nano=True):", rdpcap(two)[0].time)
print("wrpcapng:", rdpcap(three)[0].time)
print("wrpcapng has an option nano:", "nano" in inspect.signature(wrpcapng).parameters)
PY
diff - "$work/seen" <<'TXT' && echo "as described"
wrpcap: 1700000001.000000
wrpcap(nano=True): 1700000000.999999789
wrpcapng: 1700000000.999999
wrpcapng has an option nano: False
TXT
