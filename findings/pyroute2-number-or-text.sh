#!/usr/bin/env bash
# pyroute2 reads rate=10000000 as bytes and rate="10000000" as bits, latency="50" as ms and 50 as microseconds.
#
# Versions:  pyroute2 0.9.7 from PyPI; iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root, makes its own
#            network namespace.
# Expected:  tc's units: a rate without a unit is in bits a second, a time in microseconds; a number in quotes
#            is the same number.
# Seen:      A tbf of rate=10_000_000 is one of 80 Mbit/s, with quotes 10 Mbit/s as with tc. latency="50000" waits
#            for up to 50 s where tc and the number 50000 wait for 50 ms.
# Matters:   A rate that comes from JSON or a command line as text, from another file as a number, gives links
#            that differ by a factor of 8; a queue of 50 s looks like a link that never drops. Always
#            give the unit ("10mbit", "50ms").
# Source:    tc's manual page (UNITS); pyroute2's page on qdiscs (examples with units only).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet pyroute2==0.9.7

echo "Linux $(uname -r), $(tc -V)"
unshare --net "$venv/bin/python" - <<'PY' | tee "$work/seen"
import subprocess

from pyroute2 import IPRoute


def tc(text):
    return subprocess.run(f"tc {text}", shell=True, check=True, capture_output=True, text=True).stdout


def shown(how):
    words = tc("qdisc show dev lo").split()
    print(f"{how}:", words[words.index("rate") + 1], words[words.index("lat") + 1])
    tc("qdisc del dev lo root")


with IPRoute() as ip:
    for rate, latency in ((10_000_000, 50_000), ("10000000", "50000"), ("10mbit", "50ms")):
        ip.tc("add", "tbf", ip.link_lookup(ifname="lo")[0], "1:", rate=rate, burst=10_000, latency=latency)
        shown(f"pyroute2 {rate!r} {latency!r}")
        tc(f"qdisc add dev lo root handle 1: tbf rate {rate} burst 10000 latency {latency}")
        shown(f"tc {rate} {latency}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
pyroute2 10000000 50000: 80Mbit 50ms
tc 10000000 50000: 10Mbit 50ms
pyroute2 '10000000' '50000': 10Mbit 50s
tc 10000000 50000: 10Mbit 50ms
pyroute2 '10mbit' '50ms': 10Mbit 50ms
tc 10mbit 50ms: 10Mbit 50ms
TXT
