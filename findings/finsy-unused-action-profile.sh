#!/usr/bin/env bash
# finsy cannot read the P4Info of a program that has an action profile which no table uses.
#
# Versions:  finsy 0.30.0 from PyPI; P4Info as p4c 1.2.5.16 writes it (--p4runtime-files).
# Expected:  `table_ids` of an ActionProfile is a repeated field, so it may be empty: a profile without tables.
# Seen:      P4Schema raises IndexError, and with it each Switch that is given the file or gets it from the
#            device. The same P4Info with one table id is read.
# Matters:   p4c lists a declared profile though no table names it, so a line that is left over in a program, or
#            a table under #if, keeps finsy's controllers from connecting. Take the declaration out.
# Source:    finsy/p4schema.py (P4ActionProfile); p4.config.v1.ActionProfile in p4info.proto.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet finsy==0.30.0

cat >"$work/unused.txtpb" <<'TXT'
pkg_info { arch: "v1model" }
tables {
  preamble { id: 33554433 name: "ingress.hosts" alias: "hosts" }
  match_fields { id: 1 name: "port" bitwidth: 9 match_type: EXACT }
  action_refs { id: 16777217 }
  size: 16
}
actions { preamble { id: 16777217 name: "ingress.send" alias: "send" } }
action_profiles {
  preamble { id: 285212673 name: "ingress.spare" alias: "spare" }
  size: 16
}
TXT
sed '/ingress.spare/a\  table_ids: 33554433' "$work/unused.txtpb" >"$work/used.txtpb"

"$venv/bin/python" - "$work" <<'PY' | tee "$work/seen"
import sys
from pathlib import Path

from finsy import P4Schema

for name in ("used", "unused"):
    try:
        schema = P4Schema(Path(sys.argv[1], f"{name}.txtpb"))
        print(name, [profile.alias for profile in schema.action_profiles])
    except IndexError as error:
        print(name, "IndexError:", error)
PY
diff - "$work/seen" <<'TXT' && echo "as described"
used ['spare']
unused IndexError: list index out of range
TXT
