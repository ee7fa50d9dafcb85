#!/usr/bin/env bash
# tc shows a burst of 0 bytes, or 12500 for 15000, on fast links: it reads bursts in whole microseconds.
#
# Versions:  iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root, makes its own network namespace.
# Expected:  `tc qdisc show` (and -j, for programs) returns the burst that was set.
# Seen:      tbf at 400 Gbit/s with burst 20000 shows "burst 0b", at 100 Gbit/s 15000 shows 12500; htb at
#            10 Gbit/s shows 0b for the default. The kernel has the right value for tbf: frames of 8000
#            bytes pass, which a burst below the frame's size would drop. Only what is shown is wrong:
#            the burst is kept as a time, in steps of which tc knows whole microseconds.
# Matters:   A script that reads a link's setting back to check or copy it sets a burst of 0, and a person
#            looks for the cause of losses in the wrong place.
# Source:    tc-tbf's manual page.
set -euo pipefail
[[ ${1:-} == inside ]] || {
  echo "Linux $(uname -r), $(tc -V)"
  exec unshare --net "$0" inside
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ip link add v0 mtu 9000 type veth peer name v1 mtu 9000
ip addr add 10.0.0.1/24 dev v0
ip link set v0 up
ip link set v1 up
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0

shown() { tc qdisc show dev v0 | grep -o 'burst [^ ]*'; }
{
  tc qdisc add dev v0 root tbf rate 100gbit burst 15000 limit 1000000
  echo "tbf, 100 Gbit/s, 15000: $(shown)"
  tc qdisc replace dev v0 root tbf rate 400gbit burst 20000 limit 1000000
  echo "tbf, 400 Gbit/s, 20000: $(shown)"
  python3 - <<'PY'
import socket

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(10):
        sender.sendto(bytes(8000), ("10.0.0.2", 9000))
PY
  sleep 0.3
  echo "dropped: $(tc -s qdisc show dev v0 | grep -o 'dropped [0-9]*')"
  tc qdisc del dev v0 root
  tc qdisc add dev v0 root handle 1: htb
  tc class add dev v0 parent 1: classid 1:1 htb rate 10gbit 2>/dev/null
  echo "htb, 10 Gbit/s, default: $(tc class show dev v0 | grep -o '\bburst [^ ]*' | head -n 1)"
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
tbf, 100 Gbit/s, 15000: burst 12500b
tbf, 400 Gbit/s, 20000: burst 0b
dropped: dropped 0
htb, 10 Gbit/s, default: burst 0b
TXT
