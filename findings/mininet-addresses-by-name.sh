#!/usr/bin/env bash
# In a Mininet Topo addresses follow the sorted names, with net.addHost the order of the calls.
#
# Versions:  mininet 2.3.0.dev6 from PyPI; needs root.
# Expected:  The first host that is added is 10.0.0.1, however the network is described.
# Seen:      Hosts ps, w1, w10, w9, a: a Topo gives a 10.0.0.1, ps .2, w1 .3, w9 .4; the same calls at a
#            Mininet give ps .1, w1 .2, w10 .3. A host that is added later changes the others' addresses.
# Matters:   Table entries and scripts that count addresses up from the first host reach others when a
#            script is turned into a Topo, or a host is added. Give ip= to each.
# Source:    mininet/topo.py (hosts(sort=True)), mininet/net.py.
set -euo pipefail
command -v mnexec >/dev/null || { echo "needs Debian's package mininet (mnexec)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet mininet==2.3.0.dev6

unshare --net "$venv/bin/python" - <<'PY' | tee "$work/seen"
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.topo import Topo

setLogLevel("critical")
NAMES = ("ps", "w1", "w10", "w9", "a")


def chain(to):
    for name in NAMES:
        to.addHost(name)
    for one, next_ in zip(NAMES, NAMES[1:]):
        to.addLink(one, next_)


class Described(Topo):
    def build(self):
        chain(self)


def addresses(net):
    net.build()
    shown = " ".join(f"{name}={net.get(name).IP()}" for name in NAMES)
    net.stop()
    return shown


called = Mininet(controller=None)
chain(called)
print("calls:", addresses(called))
print("Topo:", addresses(Mininet(Described(), controller=None, build=False)))
PY
diff - "$work/seen" <<'TXT' && echo "as described"
calls: ps=10.0.0.1 w1=10.0.0.2 w10=10.0.0.3 w9=10.0.0.4 a=10.0.0.5
Topo: ps=10.0.0.2 w1=10.0.0.3 w10=10.0.0.5 w9=10.0.0.4 a=10.0.0.1
TXT
