"""The attribute MeterByteCountAdjust: bytes that are added to what a meter measures."""

from __future__ import annotations

from typing import Any

from gradplane.switch.bfruntime.tables.control_table import Undo
from gradplane.switch.runtime.byte_adjustments import ByteAdjustment

ATTRIBUTE = "byte_count_adj"
"""The attribute's field in messages."""

_BITS = 14


def show_adjustment(adjustment: ByteAdjustment, message: Any) -> None:
    """Write the adjustment into a message; 0 while it is the program's."""
    message.byte_count_adj.byte_count_adjust = adjustment.bytes or 0


def set_adjustment(adjustment: ByteAdjustment, message: Any) -> Undo:
    """Set the adjustment. Raises ValueError for one that the chip has no bits for."""
    number, old = message.byte_count_adj.byte_count_adjust, adjustment.bytes
    if not -(1 << _BITS - 1) <= number < 1 << _BITS - 1:
        least, most = -(1 << _BITS - 1), (1 << _BITS - 1) - 1
        raise ValueError(f"byte_count_adjust {number} is not within {least} to {most}")
    adjustment.set(number)
    return lambda: adjustment.set(old)
