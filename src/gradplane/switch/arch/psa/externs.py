"""PSA's externs: a row each, with both engines' implementations and where it may be called.

Those that only ask for what becomes of the packet are text, in path.p4.
"""

from __future__ import annotations

from pathlib import Path

from gradplane.switch.machine.extern_table import Extern, Externs
from gradplane.switch.machine.externs import arrays, checksums, messages, numbers
from gradplane.switch.machine.text_externs import TextBody
from gradplane.switch.runtime.meters import GREEN, RED, YELLOW

COLOUR_CODES = {RED: 0, GREEN: 1, YELLOW: 2}  # PSA_MeterColor_t's members in order

_HERE = Path(__file__).parent


def _text(name: str) -> Extern:
    """Return the row of an extern whose body is in path.p4."""
    return TextBody(_HERE, name).extern()


# -- the table ----------------------------------------------------------------------------------

INGRESS_DEPARSER, EGRESS_DEPARSER = "ingress.id", "egress.ed"

EXTERNS: Externs = {
    ("Register", "read"): arrays.register_read(index=0),
    ("Register", "write"): arrays.REGISTER_WRITE,
    ("Counter", "count"): arrays.COUNT,
    ("DirectCounter", "count"): arrays.COUNT_DIRECT,
    ("Meter", "execute"): arrays.meter_execute(index=0, before=1, codes=COLOUR_CODES),
    ("DirectMeter", "execute"): arrays.direct_meter_execute(before=0, codes=COLOUR_CODES),
    ("Random", "read"): numbers.RANDOM_READ,
    ("Hash", "get_hash"): numbers.GET_HASH,
    ("Checksum", "clear"): checksums.CLEAR,
    ("Checksum", "update"): checksums.UPDATE,
    ("Checksum", "get"): checksums.GET_CHECKSUM,
    ("InternetChecksum", "clear"): checksums.CLEAR,
    ("InternetChecksum", "add"): checksums.ADD,
    ("InternetChecksum", "subtract"): checksums.SUBTRACT,
    ("InternetChecksum", "get"): checksums.GET,
    ("InternetChecksum", "get_state"): checksums.GET_STATE,
    ("InternetChecksum", "set_state"): checksums.SET_STATE,
    ("Digest", "pack"): messages.digest(data=0).within(INGRESS_DEPARSER),
    ("", "psa_clone_i2e"): _text("psa_clone_i2e").within(INGRESS_DEPARSER),
    ("", "psa_resubmit"): _text("psa_resubmit").within(INGRESS_DEPARSER),
    ("", "psa_normal"): _text("psa_normal").within(INGRESS_DEPARSER),
    ("", "psa_clone_e2e"): _text("psa_clone_e2e").within(EGRESS_DEPARSER),
    ("", "psa_recirculate"): _text("psa_recirculate").within(EGRESS_DEPARSER),
    ("", "assert"): messages.ASSERT,
    ("", "assume"): messages.ASSERT,
}
