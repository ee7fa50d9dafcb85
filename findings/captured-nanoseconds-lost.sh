#!/usr/bin/env bash
# Packets 100 ns apart are 0, 238 or 1000 ns or 100 us apart after tcpdump's filter, two conversions and four readers.
#
# Versions:  dpkt 1.9.8, python-pcapng 2.1.1, pyshark 0.6, pypcapfile 0.12.0 from PyPI; tcpdump 4.99.3
#            (libpcap 1.10.3), tshark and editcap 4.0.17 from Debian 12.
# Expected:  Who reads a file of nanoseconds has nanoseconds, and who filters it writes them again; a reader without them
#            refuses the file.
# Seen:      tcpdump -r -w cuts to microseconds and changes the file's kind (--nano keeps them), editcap and tshark with
#            -F pcap as well (-F nsecpcap keeps them), all without a word. dpkt is exact for pcap, in Decimal, but for
#            pcapng it and python-pcapng have float64 seconds, whose steps are 238 ns today. pyshark's sniff_time is
#            rounded to microseconds. pypcapfile calls a field timestamp_us and fills it with nanoseconds.
# Matters:   A frame of 1250 bytes takes 100 ns at 100 Gbit/s: its gaps, and so queues, are gone, and filtering once with
#            tcpdump cannot be undone.
# Source:    tcpdump's manual page (--time-stamp-precision, said of captures); the pcap file format; the
#            specification of pcapng, if_tsresol.
set -euo pipefail
for tool in tcpdump tshark editcap; do
  command -v "$tool" >/dev/null || { echo "needs Debian's packages tcpdump, tshark and wireshark-common"; exit 2; }
done
dpkg-query -W -f '${Package} ${Version}\n' tcpdump libpcap0.8 tshark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet dpkt==1.9.8 python-pcapng==2.1.1 pyshark==0.6 pypcapfile==0.12.0

cd "$work"
"$venv/bin/python" - <<'PY'
from decimal import Decimal

import dpkt

with open("four.pcap", "wb") as file:
    writer = dpkt.pcap.Writer(file, nano=True)
    for index in range(4):
        writer.writepkt(bytes(60), ts=Decimal(1_700_000_000) + Decimal(950 + 100 * index) / 10**9)
PY
gaps() { tshark -r "$1" -T fields -e frame.time_delta 2>/dev/null | tail -n +2 | awk '{ printf " %d", $1 * 1e9 + 0.5 }'; }
editcap -F pcapng four.pcap four.pcapng
tcpdump -r four.pcap -w tcpdump.pcap 2>/dev/null
tcpdump --nano -r four.pcap -w nano.pcap 2>/dev/null
editcap -F pcap four.pcapng editcap.pcap
editcap -F nsecpcap four.pcapng nsecpcap.pcap
tshark -r four.pcapng -F pcap -w tshark.pcap 2>/dev/null
{
  for name in four.pcap four.pcapng tcpdump.pcap nano.pcap editcap.pcap nsecpcap.pcap tshark.pcap; do
    echo "$name:$(gaps $name)"
  done
  "$venv/bin/python" -W ignore - <<'PY'
from itertools import pairwise

import dpkt
import pyshark
from pcapfile import savefile
from pcapng import FileScanner
from pcapng.blocks import EnhancedPacket


def show(name, times, unit):
    print(f"{name}:", *(round((later - earlier) * unit) for earlier, later in pairwise(times)))


with open("four.pcap", "rb") as file:
    show("dpkt, pcap", [time for time, _ in dpkt.pcap.Reader(file)], 10**9)
with open("four.pcapng", "rb") as file:
    show("dpkt, pcapng", [time for time, _ in dpkt.pcapng.Reader(file)], 10**9)
with open("four.pcapng", "rb") as file:
    times = [block.timestamp for block in FileScanner(file) if isinstance(block, EnhancedPacket)]
    show("python-pcapng", times, 10**9)
with pyshark.FileCapture("four.pcap") as capture:
    show("pyshark", [packet.sniff_time.timestamp() for packet in capture], 10**9)
with open("four.pcap", "rb") as file:
    show("pypcapfile, us as ns", [packet.timestamp_us for packet in savefile.load_savefile(file).packets], 10**3)
PY
} | tee seen
diff - seen <<'TXT' && echo "as described"
four.pcap: 100 100 100
four.pcapng: 100 100 100
tcpdump.pcap: 1000 0 0
nano.pcap: 100 100 100
editcap.pcap: 1000 0 0
nsecpcap.pcap: 100 100 100
tshark.pcap: 1000 0 0
dpkt, pcap: 100 100 100
dpkt, pcapng: 0 0 238
python-pcapng: 0 0 238
pyshark: 0 0 0
pypcapfile, us as ns: 100000 100000 100000
TXT
