#!/usr/bin/env bash
# os-ken and impacket send one UDP datagram in 65,536 without a checksum; over IPv6 it must then be dropped.
#
# Versions:  os-ken 4.2.2, impacket 0.13.1, dpkt 1.9.8, scapy 2.8.0 from PyPI.
# Expected:  A checksum that comes out as 0 is sent as 0xffff, since 0 says that there is none.
# Seen:      Of the datagrams of two bytes, whose payload counts on, one sums up to 0. Around it the checksums are 1, 0xffff and
#            0xfffe in Scapy and dpkt, and 1, 0 and 0xfffe in os-ken and impacket; in os-ken over IPv6, too.
# Matters:   Over IPv4 a damaged datagram of that payload is accepted; over IPv6 a correct one is discarded. With gradients
#            as payload that is one packet in 65,536, each time the same one, at any loss rate: it looks like a bug of the path.
# Source:    RFC 768 (0 is sent as all ones); RFC 8200, section 8.1 (a UDP checksum of 0 is discarded in IPv6).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet os-ken==4.2.2 impacket==0.13.1 dpkt==1.9.8 scapy==2.8.0

"$venv/bin/python" -W ignore - 2>"$work/errors" <<'PY' | tee "$work/seen"
import socket

import dpkt
from impacket import ImpactPacket
from os_ken.lib.packet import ipv4, ipv6, packet, udp
from scapy.layers.inet import IP, UDP

SOURCE, TARGET, PORTS = "10.0.0.1", "10.0.0.2", (1000, 2000)


def by_scapy(payload):
    return bytes(IP(src=SOURCE, dst=TARGET) / UDP(sport=PORTS[0], dport=PORTS[1]) / payload)[20:]


def by_dpkt(payload):
    datagram = dpkt.udp.UDP(sport=PORTS[0], dport=PORTS[1], data=payload, ulen=8 + len(payload))
    addresses = {"src": socket.inet_aton(SOURCE), "dst": socket.inet_aton(TARGET)}
    return bytes(dpkt.ip.IP(p=17, data=datagram, **addresses))[20:]


def by_os_ken(payload, header=None):
    made = packet.Packet()
    made.add_protocol(header or ipv4.ipv4(src=SOURCE, dst=TARGET, proto=17))
    made.add_protocol(udp.udp(*PORTS))
    made.add_protocol(payload)
    made.serialize()
    return bytes(made.data)[40 if header else 20 :]


def by_impacket(payload):
    header, datagram = ImpactPacket.IP(), ImpactPacket.UDP()
    header.set_ip_src(SOURCE)
    header.set_ip_dst(TARGET)
    datagram.set_uh_sport(PORTS[0])
    datagram.set_uh_dport(PORTS[1])
    datagram.contains(ImpactPacket.Data(payload))
    header.contains(datagram)
    return bytes(header.get_packet())[20:]


def checksum(datagram):
    return int.from_bytes(datagram[6:8], "big")


for name, make in (
    ("scapy", by_scapy),
    ("dpkt", by_dpkt),
    ("impacket", by_impacket),
    ("os-ken", by_os_ken),
    ("os-ken, IPv6", lambda payload: by_os_ken(payload, ipv6.ipv6(src="fd00::1", dst="fd00::2", nxt=17))),
):
    cancels = checksum(make(bytes(2)))  # as payload, it makes the sum 0
    near = [(cancels + step).to_bytes(2, "big") for step in (-1, 0, 1)]
    print(f"{name}: {', '.join(f'{checksum(make(payload)):#06x}' for payload in near)}")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
scapy: 0x0001, 0xffff, 0xfffe
dpkt: 0x0001, 0xffff, 0xfffe
impacket: 0x0001, 0x0000, 0xfffe
os-ken: 0x0001, 0x0000, 0xfffe
os-ken, IPv6: 0x0001, 0x0000, 0xfffe
TXT
