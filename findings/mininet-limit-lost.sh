#!/usr/bin/env bash
# A rate that Mininet "ignores", or a delay that is set later, takes the link's limit away.
#
# Versions:  mininet 2.3.0.dev6 from PyPI, iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root.
# Expected:  intf.config(delay="5ms") adds a delay to a link of 10 Mbit/s. intf.config(bw=2000) says
#            "outside supported range 0..1000 - ignoring", so the link stays as it was.
# Seen:      Both delete the queue at the root first: no limit is left, the link is as fast as the
#            machine. config() without options changes nothing, so a limit cannot be reset by it.
# Matters:   Rates that change during an experiment (a link that degrades, a sweep) end up unlimited; the
#            message says the opposite. Give bw again with every call.
# Source:    mininet/link.py, TCIntf.config ("what happens if we want to reset things?").
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


def limit_after(**later):
    net = Mininet(controller=None, link=TCLink)
    hosts = [net.addHost(name) for name in ("h1", "h2")]
    link = net.addLink(*hosts, bw=10)
    net.build()
    link.intf1.config(**later)
    shown = hosts[0].cmd(f"tc class show dev {hosts[0].intf()}")
    net.stop()
    return "10Mbit" if "10Mbit" in shown else "none"


print("after config(bw=2000):", limit_after(bw=2000))
print("after config(delay='5ms'):", limit_after(delay="5ms"))
print("after config():", limit_after())
PY
diff - "$work/seen" <<'TXT' && echo "as described"
after config(bw=2000): none
after config(delay='5ms'): none
after config(): 10Mbit
TXT
