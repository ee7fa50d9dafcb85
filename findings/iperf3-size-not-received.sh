#!/usr/bin/env bash
# iperf3 -n 1M over 8 Mbit/s ends in half the time that the link needs, with the rest thrown away.
#
# Versions:  iperf3 3.12, iproute2 6.1.0 (Debian 12), Linux 6.18.44; needs root, makes its own network namespaces.
# Expected:  A test of so many bytes ends when the receiver has them: 1 MiB takes 1.05 s at 8 Mbit/s, and both sides
#            count the same bytes, since TCP loses none.
# Seen:      The test ends when the last byte is in the sender's socket. The receiver drops what is still on its way
#            and reports less than 60 % of it, after less than 0.7 s; over loopback it can be 0 bytes. The sender's
#            rate is three times the link's. The same with -k (blocks). Of 16 MiB less than 10 % are lost. (-R, where
#            the receiver is the one who counts, waits for all.) 1M is 1,048,576 here, and 1,000,000 for -b.
# Matters:   Completion times of short flows, which -n seems made for, say how large the socket's buffer is. Compare
#            sum_received with the size before using a time.
# Source:    iperf3's manual page (-n "number of bytes to transmit"); known as its issue 382.
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
tc qdisc add dev v0 root tbf rate 8mbit burst 20000 limit 1000000

run() { # a test, its results in run.json
  far iperf3 --server --daemon --one-off
  until far ss -Hltn | grep -q ':5201 '; do sleep 0.1; done
  iperf3 --client 10.0.0.2 --json "$@" >"$work/run.json"
}
result() { python3 -c "import json; sent, got = (json.load(open('$work/run.json'))['end'][f'sum_{side}'] for side in ('sent', 'received')); print($1)"; }
{
  run -n 1M
  result '"-n 1M:", sent["bytes"], "sent"'
  result '"less than 60 % received:", got["bytes"] < 0.6 * sent["bytes"]'
  result '"in less than 0.7 s:", got["seconds"] < 0.7'
  result '"rate above 16 Mbit/s:", sent["bits_per_second"] > 16e6'
  run -n 16M
  result '"-n 16M, received 90 to 99 %:", 0.9 < got["bytes"] / sent["bytes"] < 0.99'
  run -n 1M -R
  result '"-n 1M -R:", got["bytes"], "received"'
  run -u -b 1M -t 1
  echo "-b 1M: $(python3 -c "import json; print(json.load(open('$work/run.json'))['start']['test_start']['target_bitrate'])")"
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
-n 1M: 1048576 sent
less than 60 % received: True
in less than 0.7 s: True
rate above 16 Mbit/s: True
-n 16M, received 90 to 99 %: True
-n 1M -R: 1048576 received
-b 1M: 1000000
TXT
