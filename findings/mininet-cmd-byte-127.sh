#!/usr/bin/env bash
# A byte 0x7f in a command's output ends Node.cmd; what follows is the answer of the next command.
#
# Versions:  mininet 2.3.0.dev6 from PyPI; needs root.
# Expected:  host.cmd(command) returns what the command writes, once it has ended.
# Seen:      The prompt of a node's shell is the byte 127, and cmd returns when what it has read ends with
#            one. After `printf 'one\177'; sleep 1; echo two` it returns "one" while the command runs;
#            "two" comes in front of the next command's output, and all later answers may be late by one.
# Matters:   0x7f is the first byte of every ELF file and common in packets: `cat`, `nc` or `tcpdump -w -`
#            in cmd mix up answers, depending on time. Redirect binary output, or use popen.
# Source:    mininet/node.py (waitOutput, monitor).
set -euo pipefail
command -v mnexec >/dev/null || { echo "needs Debian's package mininet (mnexec)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet mininet==2.3.0.dev6

unshare --net "$venv/bin/python" - <<'PY' | tee "$work/seen"
from mininet.log import setLogLevel
from mininet.net import Mininet

setLogLevel("critical")
net = Mininet(controller=None)
host = net.addHost("h1")
net.build()
for command in (r"printf 'one\177'; sleep 1; echo two", "echo three", "echo four"):
    print(repr(host.cmd(command)))
net.stop()
PY
diff - "$work/seen" <<'TXT' && echo "as described"
'one'
'two\r\n\x7fthree\r\n'
'four\r\n'
TXT
