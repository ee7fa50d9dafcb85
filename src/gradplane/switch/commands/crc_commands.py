"""Commands on the CRCs of hash's custom algorithms."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.commands.command_registry import CommandError, CommandTarget, command
from gradplane.switch.commands.command_values import natural
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.crcs import CrcParameters

_USAGE = "CALCULATION POLYNOMIAL INITIAL FINAL_XOR REFLECT_DATA REFLECT_REMAINDER"


@command(_USAGE)
def set_crc16_parameters(
    target: CommandTarget, calculation: str, polynomial: str, initial: str, final: str, data: str,
    remainder: str,
) -> None:  # fmt: skip
    """Set the CRC of a hash call with crc16_custom: calc, calc_0, calc_1 ... in source order."""
    _set_crc(target, 16, calculation, (polynomial, initial, final), (data, remainder))


@command(_USAGE)
def set_crc32_parameters(
    target: CommandTarget, calculation: str, polynomial: str, initial: str, final: str, data: str,
    remainder: str,
) -> None:  # fmt: skip
    """Set the CRC of a hash call with crc32_custom: calc, calc_0, calc_1 ... in source order."""
    _set_crc(target, 32, calculation, (polynomial, initial, final), (data, remainder))


def _set_crc(
    target: CommandTarget, width: int, calculation: str, words: Sequence[str], flags: Sequence[str]
) -> None:
    known = {crc.name: crc for crc in target.switch.state.crcs.values() if crc.width == width}
    found = known[resolve(f"crc{width}_custom calculation", calculation, known)]
    polynomial, initial, final = (_number(calculation, word, width) for word in words)
    data, remainder = map(_flag, flags)
    found.set(CrcParameters(polynomial, initial, final, data, remainder))


def _number(calculation: str, word: str, width: int) -> int:
    value = natural(word, calculation)
    if value >> width:
        raise CommandError(f"{calculation}: {word} does not fit {width} bits")
    return value


def _flag(word: str) -> bool:
    flags = {"true": True, "false": False, "1": True, "0": False}
    if word.lower() not in flags:
        raise CommandError(f"{word!r} is not true or false")
    return flags[word.lower()]
