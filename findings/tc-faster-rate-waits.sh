#!/usr/bin/env bash
# A queue whose rate is raised keeps its packets until the time that the old rate had for them.
#
# Versions:  Linux 6.18.44, iproute2 6.1.0 (Debian 12); needs root, makes its own network namespace.
# Expected:  After `tc qdisc change` (or replace) of a tbf to a higher rate, and `tc class change` of an
#            htb, what waits leaves at the new rate.
# Seen:      Packets that wait at 8 bit/s (17 minutes each) do not leave a queue of 80 Mbit/s: the timer
#            for the next packet is not set anew. With tbf the next packet that is sent takes all of
#            them along; with htb it waits behind them.
# Matters:   A link that is emulated as slow for a while, then as fast, is dead in the first seconds of
#            the fast phase: the old rate's, not the new one's, and by the size of one packet.
# Source:    tc-tbf's and tc-htb's manual pages.
set -euo pipefail
[[ ${1:-} == inside ]] || {
  echo "Linux $(uname -r), $(tc -V)"
  exec unshare --net "$0" inside
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ip link add v0 type veth peer name v1
ip link set v0 addrgenmode none up
ip link set v1 addrgenmode none up

sent() { # frames of 1000 bytes
  python3 -c 'import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("v0", 0))
for _ in range(int(sys.argv[1])):
    s.send(b"\xff" * 6 + bytes(6) + b"\x12\x34" + bytes(986))' "$1"
}
waiting() { tc -s qdisc show dev v0 | sed -n 's/.*backlog [^ ]* \([0-9]*\)p.*/\1/p'; }
told() { echo "$1: $(sleep 0.5 && waiting) wait"; }
{
  tc qdisc add dev v0 root tbf rate 8bit burst 1514 limit 100000
  sent 6
  told "tbf, 8 bit/s, 6 sent"
  tc qdisc change dev v0 root tbf rate 80mbit burst 1514 limit 100000
  told "tbf, 80 Mbit/s"
  sent 1
  told "tbf, 80 Mbit/s, 1 more sent"
  tc qdisc del dev v0 root
  tc qdisc add dev v0 root handle 1: htb default 1
  tc class add dev v0 parent 1: classid 1:1 htb rate 8bit burst 1600
  sent 6
  told "htb, 8 bit/s, 6 sent"
  tc class change dev v0 parent 1: classid 1:1 htb rate 80mbit burst 1600
  told "htb, 80 Mbit/s"
  sent 1
  told "htb, 80 Mbit/s, 1 more sent"
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
tbf, 8 bit/s, 6 sent: 5 wait
tbf, 80 Mbit/s: 5 wait
tbf, 80 Mbit/s, 1 more sent: 0 wait
htb, 8 bit/s, 6 sent: 5 wait
htb, 80 Mbit/s: 5 wait
htb, 80 Mbit/s, 1 more sent: 6 wait
TXT
