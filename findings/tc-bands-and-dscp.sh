#!/usr/bin/env bash
# pfifo_fast sends EF with everything else, AF11 and AF41 after everything else, and IPv6 in order.
#
# Versions:  iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root, makes its own network namespaces.
# Expected:  A packet that is marked for expedited forwarding (DSCP EF, ToS 0xb8) or network control (CS6) goes before
#            best effort, and assured forwarding is not worse than no marking; IPv6's traffic class means the same.
# Seen:      On a queue that builds up, best effort, CS1 (scavenger), EF, CS6 and CS7 leave in the order they came, AF11 and
#            AF41 last of all. The bits of the old ToS decide, which are DSCP's lower ones (0x08 in AF11 and AF41 was
#            "maximize throughput"). Of IPv6 nothing decides: all leave in order. (prio has the same map as default.)
# Matters:   Gradients marked AF41 to be preferred wait behind all else, acknowledgements marked EF gain nothing, and a
#            comparison of IPv4 and IPv6 measures this. Set SO_PRIORITY, or classify with filters.
# Source:    tc-prio's manual page (priomap); RFC 4594 and RFC 8622 for the meaning of the code points.
set -euo pipefail
[[ ${1:-} == inside ]] || {
  echo "Linux $(uname -r), $(tc -V)"
  exec unshare --net "$0" inside
}
work=$(mktemp -d)
unshare --net sleep 300 &
peer=$!
trap 'rm -rf "$work"; kill $peer' EXIT
until [[ $(readlink /proc/$peer/ns/net) != "$(readlink /proc/self/ns/net)" ]]; do sleep 0.1; done
ip link add v0 type veth peer name v1 netns $peer
far() { nsenter --net="/proc/$peer/ns/net" "$@"; }
ip addr add 10.0.0.1/24 dev v0
ip addr add fd00::1/64 dev v0 nodad
ip link set v0 up
far ip addr add 10.0.0.2/24 dev v1
far ip addr add fd00::2/64 dev v1 nodad
far ip link set v1 up
tc qdisc add dev v0 root handle 1: htb default 1
tc class add dev v0 parent 1: classid 1:1 htb rate 1mbit burst 2000
tc qdisc add dev v0 parent 1:1 handle 2: pfifo_fast

cat >"$work/send.py" <<'PY'
import socket
import sys

MARKS = {"none": 0, "CS1": 0x20, "AF11": 0x28, "AF41": 0x88, "EF": 0xB8, "CS6": 0xC0, "CS7": 0xE0}
family, address, level, option = {
    "4": (socket.AF_INET, "10.0.0.2", socket.IPPROTO_IP, socket.IP_TOS),
    "6": (socket.AF_INET6, "fd00::2", socket.IPPROTO_IPV6, socket.IPV6_TCLASS),
}[sys.argv[1]]
with socket.socket(family, socket.SOCK_DGRAM) as sender:
    for name, mark in [("before", 0)] * 8 + list(MARKS.items()):
        sender.setsockopt(level, option, mark)
        sender.sendto(name.encode().ljust(1000), (address, 9000))
PY
cat >"$work/receive.py" <<'PY'
import socket
import sys

with socket.socket(socket.AF_INET if sys.argv[1] == "4" else socket.AF_INET6, socket.SOCK_DGRAM) as receiver:
    receiver.bind(("", 9000))
    receiver.settimeout(10)
    print("ready", flush=True)
    names = [receiver.recv(2000).decode().strip() for _ in range(15)]
print(f"IPv{sys.argv[1]}:", *(name for name in names if name != "before"))
PY
for version in 4 6; do
  far python3 "$work/receive.py" $version >"$work/received$version" &
  receiver=$!
  until [[ -s $work/received$version ]]; do sleep 0.1; done
  python3 "$work/send.py" $version
  wait $receiver
  grep IPv "$work/received$version"
done | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
IPv4: none CS1 EF CS6 CS7 AF11 AF41
IPv6: none CS1 AF11 AF41 EF CS6 CS7
TXT
