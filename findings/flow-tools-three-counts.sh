#!/usr/bin/env bash
# Three tools that make flows of a capture count 2,900, 4,600 and 6,000 bytes for the same 100 datagrams.
#
# Versions:  nfdump 1.7.1 (nfpcapd), softflowd 1.1.0, argus-server 3.0.8.2 with argus-client (Debian 12); needs root for a
#            network namespace, over whose loopback softflowd exports to nfcapd.
# Expected:  A flow's bytes are those of its IP packets (NetFlow's IN_BYTES: "bytes associated with an IP flow"), its packets
#            those in the capture, its ToS the packets'.
# Seen:      Datagrams of one byte are IP packets of 29 bytes in frames of 60. nfpcapd counts 29, softflowd 46 (with the
#            frame's padding), argus 60. A datagram in six fragments is one packet in nfpcapd, two flows of one and five packets in
#            softflowd, of which the second has port 0, and six packets in argus. nfpcapd writes ToS 0 for packets with
#            ToS 40, so that its filter "tos 40" finds none.
# Matters:   Compression that marks packets in ToS, or bytes saved by it, measured with another tool, are other numbers;
#            nfpcapd does not see the mark.
# Source:    RFC 3954, section 8 (IN_BYTES, SRC_TOS); the tools' manual pages.
set -euo pipefail
for tool in nfpcapd nfcapd softflowd argus ra; do
  command -v "$tool" >/dev/null || { echo "needs Debian's packages nfdump, softflowd, argus-server and argus-client"; exit 2; }
done
[[ ${1:-} == inside ]] || exec unshare --net --pid --fork --kill-child --mount-proc "$0" inside
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ip link set lo up
cd "$work"

python3 - <<'PY'
import struct

frames = []


def ip(host, payload, tos=0, fragment=0, number=1):
    fields = struct.pack(">BBHHHBBH", 0x45, tos, 20 + len(payload), number, fragment, 64, 17, 0)
    header = fields + bytes((10, 0, 0, host, 10, 0, 0, host + 1))
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + header[12:] + payload


def add(second, packet):
    frames.append((second, (bytes(5) + b"\2" + bytes(5) + b"\1" + b"\x08\x00" + packet).ljust(60, b"\0")))


def datagram(payload):
    return struct.pack(">HHHH", 1000, 2000, 8 + len(payload), 0) + payload


for number in range(100):
    add(number / 1000, ip(1, datagram(b"x")))
whole = datagram(bytes(8000))
for at in range(0, len(whole), 1480):
    more = 0x2000 if at + 1480 < len(whole) else 0
    add(1 + at / 1e6, ip(3, whole[at : at + 1480], fragment=more | at // 8, number=7))
for number in range(10):
    add(2 + number / 1000, ip(5, datagram(bytes(100)), tos=40))
with open("packets.pcap", "wb") as file:
    file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for second, frame in frames:
        file.write(struct.pack("<IIII", 1_700_000_000 + int(second), round(second % 1 * 1e6), *2 * (len(frame),)) + frame)
PY

shown='fmt:%sa port %sp packets %pkt bytes %byt tos %stos'
squeeze() { sed -E 's/ +/ /g; s/^ //; s/ $//' | sort; }
mkdir of-nfpcapd of-softflowd
nfpcapd -r packets.pcap -w of-nfpcapd >/dev/null 2>&1
nfcapd -w of-softflowd -p 9995 -b 127.0.0.1 -t 3600 >/dev/null 2>&1 &
collector=$!
sleep 1
softflowd -d -a -r packets.pcap -n 127.0.0.1:9995 -v 9 >/dev/null 2>&1
sleep 1
kill "$collector"
wait "$collector" || true
argus -r packets.pcap -w packets.argus >/dev/null 2>&1 || true
{
  for tool in nfpcapd softflowd; do nfdump -R "of-$tool" -q -o "$shown" | squeeze | sed "s/^/$tool: /"; done
  ra -r packets.argus -n -s saddr sport pkts bytes stos - udp 2>/dev/null | grep '10\.0' | squeeze |
    awk '{n = split($1, part, "."); print "argus: " part[1] "." part[2] "." part[3] "." part[4], "port", part[5], "packets", $2, "bytes", $3, "tos", $4}'
} | tee seen
diff - seen <<'TXT' && echo "as described"
nfpcapd: 10.0.0.1 port 1000 packets 100 bytes 2900 tos 0
nfpcapd: 10.0.0.3 port 1000 packets 1 bytes 8028 tos 0
nfpcapd: 10.0.0.5 port 1000 packets 10 bytes 1280 tos 0
softflowd: 10.0.0.1 port 1000 packets 100 bytes 4600 tos 0
softflowd: 10.0.0.3 port 0 packets 5 bytes 6628 tos 0
softflowd: 10.0.0.3 port 1000 packets 1 bytes 1500 tos 0
softflowd: 10.0.0.5 port 1000 packets 10 bytes 1280 tos 40
argus: 10.0.0.1 port 1000 packets 100 bytes 6000 tos 0
argus: 10.0.0.3 port 1000 packets 6 bytes 8212 tos 0
argus: 10.0.0.5 port 1000 packets 10 bytes 1420 tos 40
TXT
