#!/usr/bin/env bash
# Scapy's sniff(filter="vlan") captures nothing on an interface, and "not vlan" captures the tagged frames as well.
#
# Versions:  Scapy 2.8.0 from PyPI; tcpdump 4.99.3 with libpcap 1.10.3, Debian 12; Linux 6.18.44; needs root,
#            makes its own network namespace.
# Expected:  A filter selects the same packets on an interface as from a list of packets or a file, since
#            libpcap compiles all three.
# Seen:      Of a tagged and a plain frame "vlan" and "vlan 5 and udp" select none on the interface and "not vlan"
#            both, with their tags; from a list, and in tcpdump on the interface, they do what they say.
#            Linux takes the tag off before a filter runs. libpcap asks the kernel for it when it compiles for
#            an interface; Scapy compiles as for a file, hands that to the kernel, and puts the tag back only
#            into what came through. ("udp" selects the tagged frame on an interface, but not in a file;
#            so it does in tcpdump.)
# Matters:   A test of a switch that tags sees no frame, or counts those it meant to leave out, and suspects
#            the switch. Select in Python instead (lfilter).
# Source:    pcap-filter's manual page (vlan), packet's (PACKET_AUXDATA); Scapy's issue 4029.
set -euo pipefail
command -v tcpdump >/dev/null || { echo "needs Debian's package tcpdump"; exit 2; }
dpkg-query -W -f '${Package} ${Version}\n' tcpdump libpcap0.8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet scapy==2.8.0

cat >"$work/finding.py" <<'PY'
import subprocess
import sys
import threading
import time

from scapy.all import IP, UDP, AsyncSniffer, Dot1Q, Ether, PcapReader, sendp, sniff

FILTERS = ("vlan", "vlan 5 and udp", "not vlan", "udp")
addresses = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
datagram = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(dport=9000) / b"abc"
frames = [addresses / Dot1Q(vlan=5) / datagram, addresses / datagram]


def names(packets):
    return "+".join("tagged" if Dot1Q in packet else "plain" for packet in packets) or "none"


subprocess.run("ip link add v0 type veth peer name v1", shell=True, check=True)
for side in ("v0", "v1"):
    subprocess.run(f"ip link set {side} addrgenmode none up", shell=True, check=True)
sniffers, dumps = {}, {}
for text in FILTERS:
    started = threading.Event()
    sniffers[text] = AsyncSniffer(iface="v1", filter=text, started_callback=started.set)
    sniffers[text].start()
    started.wait()
    command = ["tcpdump", "--immediate-mode", "-U", "-i", "v1", "-w", f"{sys.argv[1]}/{text}.pcap", text]
    dumps[text] = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while "listening" not in dumps[text].stderr.readline():
        pass
sendp(frames, iface="v0", verbose=False)
time.sleep(1)
for text in FILTERS:
    dumps[text].terminate()
    dumps[text].wait()
    with PcapReader(f"{sys.argv[1]}/{text}.pcap") as reader:
        dumped = names(reader)
    listed = names(sniff(offline=frames, filter=text))
    print(f"{text}: list {listed}, tcpdump {dumped}, sniff {names(sniffers[text].stop())}")
PY
unshare --net "$venv/bin/python" "$work/finding.py" "$work" 2>"$work/errors" | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
vlan: list tagged, tcpdump tagged, sniff none
vlan 5 and udp: list tagged, tcpdump tagged, sniff none
not vlan: list plain, tcpdump plain, sniff tagged+plain
udp: list plain, tcpdump tagged+plain, sniff tagged+plain
TXT
