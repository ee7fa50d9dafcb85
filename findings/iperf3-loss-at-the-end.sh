#!/usr/bin/env bash
# iperf3 reports 0 % loss of UDP where everything after the first half of the test was lost.
#
# Versions:  iperf3 3.12, iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root, makes its own network namespaces.
# Expected:  The sender tells the receiver over the control connection how many packets it sent, so that lost_percent is
#            100 (1 - received / sent).
# Seen:      The receiver knows only of gaps before a packet that arrived. From the middle to the end of a test all is
#            lost: sum_sent has 4000 packets, sum_received about 2000, both with 0 lost of as many as each knows,
#            lost_percent 0. With the same loss a second earlier, and the last quarter arriving, it is 50 %.
# Matters:   A link that fails, a queue or policer that fills up towards the end, a switch that restarts: the loss rate
#            of the report is too low by all of the last burst. Compute it from the packets of sum_sent and sum_received.
# Source:    iperf3's manual page (--udp, --json).
set -euo pipefail
command -v iperf3 >/dev/null || { echo "needs Debian's package iperf3"; exit 2; }
[[ ${1:-} == inside ]] || {
  echo "Linux $(uname -r), $(tc -V)"
  iperf3 --version | head -n 1
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
ip link set v0 up
far ip addr add 10.0.0.2/24 dev v1
far ip link set v1 up
# A class of its own for UDP, whose queue takes everything or nothing; the control connection is not touched.
tc qdisc add dev v0 root handle 1: htb default 1
for class in 1 3; do tc class add dev v0 parent 1: classid 1:$class htb rate 1gbit quantum 2000; done
tc qdisc add dev v0 parent 1:3 handle 30: bfifo limit 100000
tc filter add dev v0 parent 1: protocol ip u32 match ip protocol 17 0xff flowid 1:3
queue() { tc qdisc change dev v0 parent 1:3 handle 30: bfifo limit "$1"; }

run() { # loses all from one time to another, in seconds
  far iperf3 --server --daemon --one-off
  until far ss -Hltn | grep -q ':5201 '; do sleep 0.1; done
  iperf3 --client 10.0.0.2 --udp --bitrate 8M --length 1000 --time 4 --json >"$work/run.json" &
  client=$!
  sleep "$1"
  queue 1
  sleep "$2"
  queue 100000
  wait $client
  python3 - "$work/run.json" <<'PY'
import json
import sys

with open(sys.argv[1]) as file:
    end = json.load(file)["end"]
sent, received = end["sum_sent"], end["sum_received"]
arrived = received["packets"] - received["lost_packets"]
print(f"  40 to 60 % arrived: {0.4 < arrived / sent['packets'] < 0.6}; lost_packets of the sender: {sent['lost_packets']}")
print(f"  lost_percent of the receiver: {round(received['lost_percent'], -1):.0f}")
PY
}
{
  echo "lost from 2 s to the end:"
  run 2 2.5
  echo "lost from 1 s to 3 s:"
  run 1 2
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
lost from 2 s to the end:
  40 to 60 % arrived: True; lost_packets of the sender: 0
  lost_percent of the receiver: 0
lost from 1 s to 3 s:
  40 to 60 % arrived: True; lost_packets of the sender: 0
  lost_percent of the receiver: 50
TXT
