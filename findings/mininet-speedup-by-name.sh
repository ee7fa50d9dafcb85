#!/usr/bin/env bash
# A host that is called "server" is a switch to Mininet's option speedup: its side of the link is faster.
#
# Versions:  mininet 2.3.0.dev6 from PyPI, iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root.
# Expected:  speedup, the "switch-side bw option", gives the rate of a link's end at a switch.
# Seen:      It is for every node whose name begins with s. With bw=10, speedup=1000 a host "server" sends
#            at 1 Gbit/s, "h2" at 10 Mbit/s; a switch called "tor1" would send at 10.
# Matters:   Servers, sinks, sources and spines of other names are common; only their direction is wrong.
# Source:    mininet/link.py, TCIntf.bwCmds.
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
net = Mininet(controller=None, link=TCLink)
hosts = [net.addHost(name) for name in ("server", "h2")]
net.addLink(*hosts, bw=10, speedup=1000)
net.build()
for host in hosts:
    shown = host.cmd(f"tc class show dev {host.intf()}")
    print(host.name, shown.split("rate ")[1].split()[0])
net.stop()
PY
diff - "$work/seen" <<'TXT' && echo "as described"
server 1Gbit
h2 10Mbit
TXT
