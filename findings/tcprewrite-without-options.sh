#!/usr/bin/env bash
# tcprewrite that is asked for nothing makes padding payload and gives IPv6 unicast frames multicast addresses.
#
# Versions:  tcpreplay 4.4.3 and tshark 4.0.17 from Debian 12; Scapy 2.8.0 from PyPI (writes the capture).
# Expected:  What no option names stays as it is. Ethernet pads to 60 bytes, and IP's total length says where the
#            packet ends. 33:33:... is for IPv6 groups, and never a frame's source.
# Seen:      IPv4's length becomes the frame's less 14. A padded ACK has 46 bytes instead of 40, so six bytes of
#            data, with a checksum to match; one captured with its FCS has that in its data as well; a padded
#            datagram has a wrong checksum. Frames between unicast IPv6 addresses get 33:33 in both MAC
#            addresses, also where --enet-dmac asks for another; a group's frame gets 33:33 as its source.
#            Only unpadded IPv4 comes out as it went in.
# Matters:   Replayed TCP has data at sequence numbers that come again, and a switch floods or drops the IPv6
#            frames. Captures on a sender, not yet padded, pass each test of a replay; those of a switch or a
#            receiver do not.
# Source:    tcprewrite's manual page; RFC 894 (padding), RFC 2464 (33:33). Known to its authors and repaired in
#            later versions (issues 793, 845), not in Debian 12's.
set -euo pipefail
for tool in tcprewrite tshark; do
  command -v $tool >/dev/null || { echo "needs Debian's packages tcpreplay, tshark"; exit 2; }
done
dpkg-query -W -f '${Package} ${Version}\n' tcpreplay tshark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet scapy==2.8.0

"$venv/bin/python" - "$work/in.pcap" <<'PY'
import sys

from scapy.all import IP, TCP, UDP, Ether, IPv6, Padding, wrpcap

link = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
group = Ether(src="02:00:00:00:00:01", dst="33:33:00:00:00:01")
ipv4 = link / IP(src="10.0.0.1", dst="10.0.0.2")
ack = ipv4 / TCP(sport=9000, dport=9000, flags="A", seq=1000, ack=2000)
datagram = UDP(sport=9000, dport=9000) / b"abc"
wrpcap(
    sys.argv[1],
    [
        ack,
        ack / Padding(bytes(6)),
        ack / Padding(bytes(6) + b"\x12\x34\x56\x78"),
        ipv4 / datagram / Padding(bytes(15)),
        link / IPv6(src="2001:db8::1", dst="2001:db8::2") / datagram,
        group / IPv6(src="fe80::1", dst="ff02::1") / datagram,
    ],
)
PY
shown() {
  echo "$1: IP length, TCP data, checksum; source, destination"
  tshark -o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE -r "$2" -T fields -E occurrence=f \
    -e ip.len -e tcp.len -e tcp.checksum.status -e udp.checksum.status -e eth.src -e eth.dst 2>/dev/null |
    awk -F '\t' '{ print $1 ? $1 : "-", $2 == "" ? "-" : $2, $3 $4 == 1 ? "good" : "bad", $5, $6 }'
}
{
  shown original "$work/in.pcap"
  for option in "" --enet-dmac=02:00:00:00:00:09; do
    tcprewrite --infile="$work/in.pcap" --outfile="$work/out.pcap" $option
    shown "tcprewrite${option:+ $option}" "$work/out.pcap"
  done
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
original: IP length, TCP data, checksum; source, destination
40 0 good 02:00:00:00:00:01 02:00:00:00:00:02
40 0 good 02:00:00:00:00:01 02:00:00:00:00:02
40 0 good 02:00:00:00:00:01 02:00:00:00:00:02
31 - good 02:00:00:00:00:01 02:00:00:00:00:02
- - good 02:00:00:00:00:01 02:00:00:00:00:02
- - good 02:00:00:00:00:01 33:33:00:00:00:01
tcprewrite: IP length, TCP data, checksum; source, destination
40 0 good 02:00:00:00:00:01 02:00:00:00:00:02
46 6 good 02:00:00:00:00:01 02:00:00:00:00:02
50 10 good 02:00:00:00:00:01 02:00:00:00:00:02
46 - bad 02:00:00:00:00:01 02:00:00:00:00:02
- - good 33:33:00:00:00:01 33:33:00:00:00:02
- - good 33:33:00:00:00:01 33:33:00:00:00:01
tcprewrite --enet-dmac=02:00:00:00:00:09: IP length, TCP data, checksum; source, destination
40 0 good 02:00:00:00:00:01 02:00:00:00:00:09
46 6 good 02:00:00:00:00:01 02:00:00:00:00:09
50 10 good 02:00:00:00:00:01 02:00:00:00:00:09
46 - bad 02:00:00:00:00:01 02:00:00:00:00:09
- - good 33:33:00:00:00:01 33:33:00:00:00:02
- - good 33:33:00:00:00:01 02:00:00:00:00:09
TXT
