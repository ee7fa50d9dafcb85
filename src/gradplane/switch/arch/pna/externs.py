"""PNA's externs: a row each. Those that say where a packet goes are text, in path.p4."""

from __future__ import annotations

from pathlib import Path

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import BOOL
from gradplane.switch.machine.extern_table import Extern, Externs
from gradplane.switch.machine.externs import arrays, checksums, messages, numbers
from gradplane.switch.machine.text_externs import TextBody, made_of
from gradplane.switch.runtime.meters import GREEN, RED, YELLOW

COLOUR_CODES = {RED: 0, GREEN: 1, YELLOW: 2}  # PNA_MeterColor_t's members in order
NET_TO_HOST = 0

_HERE = Path(__file__).parent


def _text(name: str) -> Extern:
    """Return the row of an extern whose body is in path.p4."""
    return TextBody(_HERE, name).extern().within("main_control")


def _by_direction(call: ir.CallExtern) -> list[ir.Stmt]:
    """Return the statement of SelectByDirection(direction, to host, to net)."""
    direction, to_host, to_net = call.args
    if call.result is None:
        return []
    if isinstance(direction, ir.Const) and isinstance(direction.value, str):
        return [ir.Assign(call.result, to_host if direction.value == "NET_TO_HOST" else to_net)]
    first = ir.Binary(BOOL, "==", direction, ir.Const(direction.type, NET_TO_HOST))
    return [ir.Assign(call.result, ir.Mux(to_host.type, first, to_host, to_net))]


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
    ("Digest", "pack"): messages.digest(data=0).within("main_control", "main_deparser"),
    ("", "drop_packet"): _text("drop_packet"),
    ("", "send_to_port"): _text("send_to_port"),
    ("", "mirror_packet"): _text("mirror_packet"),
    ("", "SelectByDirection"): made_of(_by_direction),
}
