#!/usr/bin/env bash
# fnss gives Mininet links without the buffer sizes that its documentation promises, and takes Mininet's delays as texts.
#
# Versions:  fnss 0.9.1, mininet 2.3.0.dev6, networkx 3.6.1 from PyPI.
# Expected:  to_mininet passes capacities, delays and buffer sizes "in packets" on, and from_mininet's topology is
#            worth as much as one that was built with numbers.
# Seen:      set_buffer_sizes_constant(topology, 50, "packets") writes the attribute "buffer"; to_mininet looks for "buffer_size".
#            Links have bw and delay, and no max_queue_size: Mininet's queues then hold 1000 packets or more. The other way
#            "5ms" becomes the text "5": the topology cannot go back, and of two links with different units not even arrive.
# Matters:   An experiment on small buffers or incast measures buffers twenty times as large, without a message.
# Source:    fnss' documentation of to_mininet, set_buffer_sizes_constant and from_mininet (fnss/adapters/mn.py, netconfig/buffers.py).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet fnss==0.9.1 mininet==2.3.0.dev6 networkx==3.6.1 setuptools==80.9.0

"$venv/bin/python" -W ignore - 2>"$work/errors" <<'PY' | tee "$work/seen"
import fnss
from mininet.topo import Topo

topology = fnss.two_tier_topology(1, 1, 2)
fnss.set_capacities_constant(topology, 10, "Mbps")
fnss.set_delays_constant(topology, 5, "ms")
fnss.set_buffer_sizes_constant(topology, 50, "packets")
print("in fnss:", sorted(name for name in list(topology.edges(data=True))[0][2] if name != "type"))
for one, other, options in fnss.to_mininet(topology).links(withInfo=True):
    kept = {name: options.get(name) for name in ("bw", "delay", "max_queue_size")}
    print(f"in Mininet, {one}-{other}: {kept}")


def from_mininet(*delays):
    topo = Topo()
    topo.addSwitch("s1")
    for number, delay in enumerate(delays, 1):
        topo.addLink(topo.addHost(f"h{number}"), "s1", delay=delay)
    return fnss.from_mininet(topo)


taken = from_mininet("5ms")
print("from Mininet:", [repr(options["delay"]) for *_, options in taken.edges(data=True)], taken.graph["delay_unit"])
for what, attempt in (("back", lambda: fnss.to_mininet(taken)), ("two units", lambda: from_mininet("5ms", "700us"))):
    try:
        attempt()
    except TypeError as error:
        print(f"{what}: {error}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
in fnss: ['buffer', 'capacity', 'delay']
in Mininet, s1-s2: {'bw': 10.0, 'delay': '5000.0us', 'max_queue_size': None}
in Mininet, s2-h1: {'bw': 10.0, 'delay': '5000.0us', 'max_queue_size': None}
in Mininet, s2-h2: {'bw': 10.0, 'delay': '5000.0us', 'max_queue_size': None}
from Mininet: ["'5'"] ms
back: can't multiply sequence by non-int of type 'float'
two units: can't multiply sequence by non-int of type 'float'
TXT
