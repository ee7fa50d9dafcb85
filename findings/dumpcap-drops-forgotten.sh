#!/usr/bin/env bash
# A capture that missed nearly every packet knows it; editcap, mergecap, reordercap and tshark -w make it forget.
#
# Versions:  Wireshark 4.0.17 (tshark, wireshark-common; Debian 12), Linux 6.18.44; needs root, makes its own network
#            namespace.
# Expected:  What a capture dropped stays with it through Wireshark's own tools, and capinfos, which prints
#            "information about capture files", says it.
# Seen:      dumpcap writes the number into the last block of its file (interface statistics, isb_ifdrop). capinfos
#            says "Number of stat entries = 1" and no more. Each tool that writes a new file leaves the block out, even
#            if it changes nothing; the counts of single packets (epb_dropcount), which dumpcap does not write, stay.
# Matters:   Two captures of a path are compared for its losses: what the second capture dropped is counted as lost on
#            the path. Read the count (tshark -V does not show it either) before the file is filtered or cut.
# Source:    Specification of pcapng, "Interface Statistics Block"; the tools' manual pages.
set -euo pipefail
for tool in dumpcap tshark; do
  command -v "$tool" >/dev/null || { echo "needs Debian's packages tshark and wireshark-common"; exit 2; }
done
[[ ${1:-} == inside ]] || {
  echo "Linux $(uname -r), $(tshark --version 2>/dev/null | head -n 1)"
  exec unshare --net "$0" inside
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ip link set lo up

dumpcap -q -i lo -B 1 -f 'udp port 9000' -w "$work/first.pcapng" 2>/dev/null &
capture=$!
until [[ -s $work/first.pcapng ]]; do sleep 0.1; done
sleep 1
kill -STOP $capture # as if its processor were busy with something else
python3 - <<'PY'
import socket

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(20_000):
        sender.sendto(bytes(1000), ("127.0.0.1", 9000))
PY
kill -CONT $capture
sleep 1
kill -INT $capture
wait $capture

cd "$work"
editcap first.pcapng editcap.pcapng
mergecap -w mergecap.pcapng first.pcapng
reordercap first.pcapng reordercap.pcapng >reordercap.txt
tshark -r first.pcapng -w tshark.pcapng 2>tshark.txt
{
  python3 - <<'PY'
import struct


def captured_and_dropped(name):
    """Return the number of packets of a little-endian pcapng file, and what its statistics count as dropped."""
    with open(f"{name}.pcapng", "rb") as file:
        data = file.read()
    at = packets = dropped = 0
    while at < len(data):
        kind, size = struct.unpack("<II", data[at : at + 8])
        packets += kind == 6
        if kind == 5:
            options = data[at + 20 : at + size - 4]
            while options:
                code, length = struct.unpack("<HH", options[:4])
                if code == 5:
                    dropped = struct.unpack("<Q", options[4:12])[0]
                options = options[4 + length + -length % 4 :]
        at += size
    return packets, dropped


first = captured_and_dropped("first")
print("dumpcap dropped more than nine of ten:", first[1] > 9 * first[0])
for name in ("editcap", "mergecap", "reordercap", "tshark"):
    packets, dropped = captured_and_dropped(name)
    print(f"{name}: all packets {packets == first[0]}, dropped {dropped}")
PY
  echo "capinfos: $(capinfos first.pcapng | grep -i -c drop || true) lines on drops"
  echo "tshark -V: $(tshark -V -r first.pcapng 2>/dev/null | grep -i -c drop || true) lines on drops"
} | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
dumpcap dropped more than nine of ten: True
editcap: all packets True, dropped 0
mergecap: all packets True, dropped 0
reordercap: all packets True, dropped 0
tshark: all packets True, dropped 0
capinfos: 0 lines on drops
tshark -V: 0 lines on drops
TXT
