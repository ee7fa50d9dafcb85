#!/usr/bin/env bash
# p4runtime-shell says that it ignores a match of everything, and raises an error; the old match stays.
#
# Versions:  p4runtime-shell 0.0.6 from PyPI (protobuf 3.20.3).
# Expected:  P4Runtime leaves a match field out where it matches everything. The shell's message,
#            "Ignoring LPM don't care match (prefix length of 0) as per P4Runtime spec", sounds like that.
# Seen:      te.match["dst"] = "0.0.0.0/0" raises UserError with this text, also for masks of 0 and full
#            ranges. An entry that had 10.0.0.0/8 still has it, so where the error is caught the default
#            route is installed as 10.0.0.0/8.
# Matters:   A loop over routes from a file ends at the default route. Leave the field out, and make a new
#            TableEntry for each.
# Source:    p4runtime_sh/shell.py (MatchKey); P4Runtime specification, "Match Format".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=$work/venv # of its own: protobuf is an old one
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet p4runtime-shell==0.0.6

"$venv/bin/python" - <<'PY' | tee "$work/seen"
import contextlib
import io

import p4runtime_sh.shell as shell
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4runtime_sh.utils import UserError

INFO = """
tables { preamble { id: 33554433 name: "I.t" alias: "t" }
  match_fields { id: 1 name: "dst" bitwidth: 32 match_type: LPM }
  match_fields { id: 2 name: "src" bitwidth: 32 match_type: TERNARY }
  match_fields { id: 3 name: "port" bitwidth: 16 match_type: RANGE }
  action_refs { id: 16777217 } size: 16 }
actions { preamble { id: 16777217 name: "I.drop" alias: "drop" } }
"""
shell.context.set_p4info(text_format.Parse(INFO, p4info_pb2.P4Info()))
entry = shell.TableEntry("t")(action="drop")
with contextlib.redirect_stdout(io.StringIO()):  # each assignment prints the match
    entry.match["dst"] = "10.0.0.0/8"
for field, everything in (("dst", "0.0.0.0/0"), ("src", "0&&&0"), ("port", "0..65535")):
    try:
        entry.match[field] = everything
    except UserError as error:
        print(field, error)
print("dst now:", "10.0.0.0/8" if "prefix_len: 8" in str(entry.match) else "everything")
PY
diff - "$work/seen" <<'TXT' && echo "as described"
dst Ignoring LPM don't care match (prefix length of 0) as per P4Runtime spec
src Ignoring ternary don't care match (mask of 0s) as per P4Runtime spec
port Ignoring range don't care match (all possible values) as per P4Runtime spec
dst now: 10.0.0.0/8
TXT
