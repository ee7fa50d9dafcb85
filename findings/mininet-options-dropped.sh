#!/usr/bin/env bash
# addLink(h1, h2, bw=10, delay="5ms") without TCLink makes a link without limits, and says nothing.
#
# Versions:  mininet 2.3.0.dev6 from PyPI, iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root.
# Expected:  A link that cannot have a rate refuses one; an option that no link has is a TypeError.
# Seen:      Interfaces take any keyword and drop what they do not know. bw, delay and loss need
#            Mininet(link=TCLink); with it "bandwith", "dealy" and "max_queue" are dropped as quietly.
# Matters:   An experiment with losses and delays that are not there looks plausible: it is only fast.
# Source:    Mininet's introduction ("Setting performance parameters").
set -euo pipefail
command -v mnexec >/dev/null || { echo "needs Debian's package mininet (mnexec)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet mininet==2.3.0.dev6

unshare --net "$venv/bin/python" - <<'PY' | tee "$work/seen"
from mininet.link import Link, TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet

setLogLevel("warning")


def queue(link, **options):
    net = Mininet(controller=None, link=link)
    hosts = [net.addHost(name) for name in ("h1", "h2")]
    net.addLink(*hosts, **options)
    net.build()
    shown = hosts[0].cmd(f"tc qdisc show dev {hosts[0].intf()}").split()[1]
    net.stop()
    return shown


print("Link, bw and delay:", queue(Link, bw=10, delay="5ms"))
print("TCLink, bandwith and dealy:", queue(TCLink, bandwith=10, dealy="5ms"))
print("TCLink, bw:", queue(TCLink, bw=10))
PY
diff - "$work/seen" <<'TXT' && echo "as described"
Link, bw and delay: noqueue
TCLink, bandwith and dealy: noqueue
TCLink, bw: htb
TXT
