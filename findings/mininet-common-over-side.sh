#!/usr/bin/env bash
# TCLink(bw=10, params1={"bw": 20}) makes both sides 10 Mbit/s: what is common overrides a side's own.
#
# Versions:  mininet 2.3.0.dev6 from PyPI, iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root.
# Expected:  params1 and params2 are for one interface each ("additional interface parameters"), so they
#            change what both have in common, as keyword arguments do elsewhere.
# Seen:      Both classes show 10 Mbit/s; without the common bw, 20 and 5. mininet/link.py updates a
#            side's parameters with the common ones, and not the other way round. No message.
# Matters:   A slow uplink or a straggler that is written as an exception to the common rate is not there.
# Source:    Mininet's docstring of Link.__init__.
set -euo pipefail
command -v mnexec >/dev/null || { echo "needs Debian's package mininet (mnexec)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet mininet==2.3.0.dev6

unshare --net "$venv/bin/python" - <<'PY' | tee "$work/seen"
from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet

setLogLevel("critical")


def rates(**options):
    net = Mininet(controller=None, link=TCLink)
    hosts = [net.addHost(name) for name in ("h1", "h2")]
    net.addLink(*hosts, **options)
    net.build()
    shown = [h.cmd(f"tc class show dev {h.intf()}").split("rate ")[1].split()[0] for h in hosts]
    net.stop()
    return shown


print("bw=10, params1 20:", *rates(bw=10, params1={"bw": 20}))
print("params1 20, params2 5:", *rates(params1={"bw": 20}, params2={"bw": 5}))
PY
diff - "$work/seen" <<'TXT' && echo "as described"
bw=10, params1 20: 10Mbit 10Mbit
params1 20, params2 5: 20Mbit 5Mbit
TXT
