"""Bit strings of the protocol: big-endian bytes, sent in their shortest form.

    bit<12>  99   b"\\x63"        also accepted: any number of zero bytes in front
    bit<12>  0    b"\\x00"        the empty string is never a value
    int<8>  -99   b"\\x9d"        two's complement; also accepted: sign bytes in front
    bool     True b"\\x01"

P4Runtime specification, section "Bytestrings".
"""

from __future__ import annotations

from gradplane.switch.p4runtime.status_errors import RpcError


def to_bytes(value: int, width: int, signed: bool = False) -> bytes:
    """Return the shortest string for `value` of `width` bits, negative only when signed."""
    if not signed:
        assert value >> width == 0, (value, width)
        return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")
    low, high = _limits(width, signed)
    assert low <= value <= high, (value, width, signed)
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, "big", signed=True)


def from_bytes(data: bytes, width: int, where: str, signed: bool = False) -> int:
    """Return the value of a received string that must fit `width` bits.

    Raises RpcError OUT_OF_RANGE for an empty string or a value that does not fit; `where` names the
    table and field in its text.
    """
    if not data:
        raise RpcError(
            "OUT_OF_RANGE",
            f"{where}: empty value, expected {_type(width, signed)} as 1 to"
            f" {(width + 7) // 8} big-endian bytes",
        )
    value = int.from_bytes(data, "big", signed=signed)
    low, high = _limits(width, signed)
    if not low <= value <= high:
        raise RpcError(
            "OUT_OF_RANGE",
            f"{where}: value {_shown(value)} does not fit {_type(width, signed)}"
            f" ({_shown(low)} to {_shown(high)})",
        )
    return value


def _limits(width: int, signed: bool) -> tuple[int, int]:
    if signed:
        return -(1 << width - 1), (1 << width - 1) - 1
    return 0, (1 << width) - 1


def _type(width: int, signed: bool) -> str:
    return f"{'int' if signed else 'bit'}<{width}>"


def _shown(value: int) -> str:
    """Format short numbers in decimal, long ones in hex, huge ones by their size."""
    if abs(value) < 1 << 16:
        return str(value)
    return hex(value) if abs(value) < 1 << 128 else f"of {value.bit_length()} bits"
