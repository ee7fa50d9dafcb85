#!/usr/bin/env bash
# softflowd puts a capture of 2023 into other years, and with the option for captures still up to a second off.
#
# Versions:  softflowd 1.1.0, nfdump 1.7.1 (Debian 12); needs root for a network namespace, over whose loopback it exports.
# Expected:  "softflowd -r" reads a capture and exports its flows with the capture's times; -a, which adjusts the time
#            "for reading pcap file", is for those who want more than that.
# Seen:      NetFlow's times count from the exporter's start, and the start is now: a flow of November 2023 is months or years
#            away, at another place in version 5 than in 9. With -a it is right in version 5, up to a second off in 9. In IPFIX its
#            begin and end are exchanged, with -a, too. Absolute times (-A milli), said to be for IPFIX, are right in 9 and in 10.
# Matters:   Flows of several captures of one run are compared by their times, and do not meet.
# Source:    RFC 3954, section 8 (FIRST_SWITCHED); RFC 7012 (flowStartSysUpTime); softflowd's manual page (-a, -A).
set -euo pipefail
for tool in softflowd nfcapd; do
  command -v "$tool" >/dev/null || { echo "needs Debian's packages softflowd and nfdump"; exit 2; }
done
[[ ${1:-} == inside ]] || exec unshare --net --pid --fork --kill-child --mount-proc "$0" inside
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ip link set lo up
cd "$work"

python3 - <<'PY'
import struct

datagram = struct.pack(">HHHH", 1000, 2000, 108, 0) + bytes(100)
header = struct.pack(">BBHHHBBH", 0x45, 0, 128, 1, 0, 64, 17, 0) + bytes((10, 0, 0, 1, 10, 0, 0, 2))
total = sum(struct.unpack(">10H", header))
total = (total & 0xFFFF) + (total >> 16)
header = header[:10] + struct.pack(">H", ~total & 0xFFFF) + header[12:]
frame = bytes(5) + b"\2" + bytes(5) + b"\1" + b"\x08\x00" + header + datagram
with open("packets.pcap", "wb") as file:
    file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for number in range(10):
        file.write(struct.pack("<IIII", 1_700_000_000, 1000 * number, *2 * (len(frame),)) + frame)
PY

{
  for options in "-v 5" "-v 9" "-v 10" "-v 5 -a" "-v 9 -a" "-v 10 -a" "-v 9 -A milli" "-v 10 -A milli"; do
    rm -rf flows
    mkdir flows
    nfcapd -w flows -p 9995 -b 127.0.0.1 -t 3600 >/dev/null 2>&1 &
    collector=$!
    sleep 1
    # shellcheck disable=SC2086
    softflowd -d -r packets.pcap -n 127.0.0.1:9995 $options >/dev/null 2>&1
    sleep 1
    kill "$collector"
    wait "$collector" || true
    nfdump -R flows -q -o raw 'src port 1000' | OPTIONS="$options" python3 -c '
import os, re, sys

first, last = (int(time) for time in re.findall(r"^ +(?:first|last) += +([0-9]+)", sys.stdin.read(), re.MULTILINE)[:2])
off = abs(min(first, last) - 1_700_000_000_000)
place = "right" if off < 2 else "up to a second off" if off < 1100 else "more than a month off" if off > 3e9 else off
print(os.environ["OPTIONS"] + ":", place + (", ends before it begins" if last < first else ""))'
  done
} | tee seen
diff - seen <<'TXT' && echo "as described"
-v 5: more than a month off
-v 9: more than a month off
-v 10: more than a month off, ends before it begins
-v 5 -a: right
-v 9 -a: up to a second off
-v 10 -a: right, ends before it begins
-v 9 -A milli: right
-v 10 -A milli: right
TXT
