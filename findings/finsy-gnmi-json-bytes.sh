#!/usr/bin/env bash
# The same leaf is 'UP' or b'"UP"' in finsy's gNMI client, as the switch encodes it.
#
# Versions:  finsy 0.30.0 from PyPI.
# Expected:  GNMIUpdate.value is "the value as a Python value", so a string is a str in each of gNMI's
#            encodings, and a JSON number a number.
# Seen:      string_val gives 'UP', json_ietf_val the bytes b'"UP"' with the quotes, json_val b'5' for 5;
#            a leaf-list is a protobuf message. Only one field of the message is taken out.
# Matters:   `update.value == "UP"` holds with a switch that answers in PROTO encoding (Stratum) and never
#            with one that answers in JSON_IETF, which OpenConfig's servers prefer. Use json.loads for bytes.
# Source:    finsy/gnmiclient.py (GNMIUpdate.value); gNMI specification, section 2.3.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet finsy==0.30.0

"$venv/bin/python" - <<'PY' | tee "$work/seen"
from finsy import GNMIPath
from finsy.gnmiclient import GNMIUpdate
from finsy.proto import gnmi

PATH = GNMIPath("interfaces/interface[name=eth1]/state/oper-status")
for kind, raw in (("string_val", "UP"), ("json_ietf_val", b'"UP"'), ("json_val", b"5")):
    print(kind, repr(GNMIUpdate(1, PATH, gnmi.TypedValue(**{kind: raw})).value))
listed = gnmi.ScalarArray(element=[gnmi.TypedValue(uint_val=1)])
print("leaflist_val", type(GNMIUpdate(1, PATH, gnmi.TypedValue(leaflist_val=listed)).value).__name__)
PY
diff - "$work/seen" <<'TXT' && echo "as described"
string_val 'UP'
json_ietf_val b'"UP"'
json_val b'5'
leaflist_val ScalarArray
TXT
