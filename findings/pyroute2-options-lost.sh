#!/usr/bin/env bash
# pyroute2 drops a queue's limit without a word: a bfifo of 3000 bytes becomes one of 1,514,000.
#
# Versions:  pyroute2 0.9.7 from PyPI; iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root, makes its own
#            network namespace.
# Expected:  Options that a library does not pass on are refused, or reach the kernel as with tc.
# Seen:      pfifo has its limit; bfifo and pfifo_head_drop, of which pyroute2 knows no parameters, take any option
#            and get the kernel's defaults, without an error even for a misspelt one. A tbf loses its peak
#            rate under both of tc's names for it, also under the one that pyroute2 reads to size the queue.
# Matters:   An experiment on small buffers runs with large ones: no loss where loss was to be measured. Read
#            the setting back with tc.
# Source:    tc-bfifo's, tc-pfifo's and tc-tbf's manual pages; pyroute2's netlink/rtnl/tcmsg.
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


def shown():
    text = tc("qdisc show dev lo").partition("refcnt")[2].split(maxsplit=1)[1].strip()
    tc("qdisc del dev lo root")
    return text


tbf = {"rate": "10mbit", "burst": 1540, "latency": "50ms"}
with IPRoute() as ip:
    lo = ip.link_lookup(ifname="lo")[0]
    ip.link("set", index=lo, mtu=1500)
    for kind, options in (
        ("pfifo", {"limit": 30}),
        ("pfifo_head_drop", {"limit": 30}),
        ("bfifo", {"limit": 3000}),
        ("bfifo", {"limmit": 3000}),
        ("tbf", {**tbf, "peakrate": "20mbit", "mtu": 1540}),
        ("tbf", {**tbf, "peak": "20mbit", "mtu": 1540}),
    ):
        ip.tc("add", kind, lo, "1:", **options)
        print(f"pyroute2, {kind}:", shown())
        if "limmit" not in options:
            text = " ".join(f"{name} {value}" for name, value in options.items())
            tc(f"qdisc add dev lo root handle 1: {kind} {text}")
            print(f"tc, {kind}:", shown())
PY
diff - "$work/seen" <<'TXT' && echo "as described"
pyroute2, pfifo: limit 30p
tc, pfifo: limit 30p
pyroute2, pfifo_head_drop: limit 1000p
tc, pfifo_head_drop: limit 30p
pyroute2, bfifo: limit 1514000b
tc, bfifo: limit 3000b
pyroute2, bfifo: limit 1514000b
pyroute2, tbf: rate 10Mbit burst 1540b lat 50ms
tc, tbf: rate 10Mbit burst 1540b peakrate 20Mbit minburst 1540b lat 50ms
pyroute2, tbf: rate 10Mbit burst 1540b lat 50ms
tc, tbf: rate 10Mbit burst 1540b peakrate 20Mbit minburst 1540b lat 50ms
TXT
