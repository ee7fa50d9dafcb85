"""A meter's rates and bursts as data fields: kbit/s and kbit, or packets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradplane.switch.bfruntime.codec import invalid
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.schema_fields import UNLIMITED
from gradplane.switch.runtime.meters import MeterConfig

_KBIT = 125  # bytes
_MOST = (1 << 62) - 1  # of a rate: above it a meter makes every packet green


def _names(schema: TableSchema) -> tuple[list[str], int]:
    """Return the names of the committed rate, peak rate, committed burst and peak burst."""
    known = {f.name for f in schema.data}
    if "$METER_SPEC_CIR_KBPS" in known:
        rates, bursts, unit = "KBPS", "KBITS", _KBIT
    else:
        rates, bursts, unit = "PPS", "PKTS", 1
    pairs = (("CIR", rates), ("PIR", rates), ("CBS", bursts), ("PBS", bursts))
    return [f"$METER_SPEC_{part}_{of}" for part, of in pairs], unit


def meter_values(schema: TableSchema, config: MeterConfig | None) -> dict[str, int]:
    """Return the fields of a meter; without a config its rates are unlimited."""
    names, unit = _names(schema)
    if config is None:
        return dict.fromkeys(names, UNLIMITED)
    numbers = (config.cir, config.pir, config.cburst, config.pburst)
    return {n: UNLIMITED if x >= _MOST else x // unit for n, x in zip(names, numbers, strict=True)}


def meter_config(
    schema: TableSchema, values: Mapping[str, Any], former: MeterConfig | None
) -> MeterConfig | None:
    """Return the config for given fields; the others keep their values. Raises RpcError."""
    names, unit = _names(schema)
    whole = {**meter_values(schema, former), **values}
    wanted = [whole[name] for name in names]
    if all(x == UNLIMITED for x in wanted):
        return None
    cir, pir, cbs, pbs = (_MOST if x * unit > _MOST else x * unit for x in wanted)
    if pir < cir:
        what = f"the peak rate {whole[names[1]]} is below the committed rate {whole[names[0]]}"
        raise invalid(schema, what)
    return MeterConfig(cir, cbs, pir, pbs)
