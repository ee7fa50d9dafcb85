#!/usr/bin/env bash
# NFStream's flow of packets 250 us apart has gaps of 0 and 1 ms: a steady flow looks like a bursty one.
#
# Versions:  NFStream 6.6.0 and Scapy 2.8.0 from PyPI.
# Expected:  Statistics named ..._ms are floats in milliseconds: a mean gap of 0.25, a deviation of 0.
# Seen:      Each time is cut to whole milliseconds before anything is computed, whatever the file has (also
#            nanoseconds). 41 packets in 10 ms: gaps of 0 or 1 ms with a deviation of 0.44, as large as that of a
#            process with bursts. 3 packets within 0.9 ms that cross a millisecond last 1 ms, others of the same
#            spacing that do not cross one last 0 ms, so that their rate is infinite.
# Matters:   Jitter, pacing and rates of flows in a data centre are below its resolution, and the numbers do
#            not look as if. Flow classifiers that are trained on them learn where milliseconds begin.
# Source:    NFStream's documentation of flow features ("in milliseconds").
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet scapy==2.8.0 nfstream==6.6.0 numpy==2.4.6

cat >"$work/finding.py" <<'PY'
import sys
from decimal import Decimal

from nfstream import NFStreamer
from scapy.all import IP, UDP, Ether, PcapWriter, Raw


def flow(name, first, gap, count):
    """Print what NFStream finds of packets with a gap, in ns, the first of them at a time, in ns."""
    path = f"{sys.argv[1]}/flow.pcap"
    packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2")
    packet /= UDP(sport=1000, dport=18256) / Raw(bytes(1000))
    with PcapWriter(path, nano=True) as writer:
        for index in range(count):
            packet.time = 1_700_000_000 + Decimal(first + index * gap) / 10**9
            writer.write(packet)
    (found,) = NFStreamer(source=path, statistical_analysis=True, n_dissections=0, n_meters=1)
    gaps = (found.bidirectional_min_piat_ms, found.bidirectional_mean_piat_ms, found.bidirectional_max_piat_ms)
    print(f"{name}: lasts {found.bidirectional_duration_ms} ms, gaps", *gaps, end=", ")
    print(f"deviation {found.bidirectional_stddev_piat_ms:.2f}")


if __name__ == "__main__":
    flow("41 packets, 0.25 ms apart", 0, 250_000, 41)
    flow("3 packets, 0.45 ms apart", 0, 450_000, 3)
    flow("the same 0.3 ms later", 300_000, 450_000, 3)
PY
"$venv/bin/python" -W ignore "$work/finding.py" "$work" | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
41 packets, 0.25 ms apart: lasts 10 ms, gaps 0 0.25 1, deviation 0.44
3 packets, 0.45 ms apart: lasts 0 ms, gaps 0 0.0 0, deviation 0.00
the same 0.3 ms later: lasts 1 ms, gaps 0 0.5 1, deviation 0.71
TXT
