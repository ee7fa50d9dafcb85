"""The algorithm of a hash, which may be replaced with a CRC while the program runs, and what it
gives for some fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.hashed_fields import HashedField
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Scope, Undo
from gradplane.switch.runtime.dynamic_hashes import DynamicHash
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.runtime.hashes import pack_bits

PRE_DEFINED, USER_DEFINED = "pre_defined", "user_defined"
PROGRAM = "PROGRAM"
"""The name of the algorithm that the program gives the hash."""

HASH_VALUE = "hash_value"

_FULL16, _FULL32 = 0xFFFF, 0xFFFF_FFFF
NAMED = {
    "CRC_8": Crc(8, 0x07),
    "CRC_16": Crc(16, 0x8005, reflected=True),
    "CRC_16_USB": Crc(16, 0x8005, _FULL16, _FULL16, True),
    "MODBUS": Crc(16, 0x8005, _FULL16, 0, True),
    "KERMIT": Crc(16, 0x1021, reflected=True),
    "XMODEM": Crc(16, 0x1021),
    "X_25": Crc(16, 0x1021, _FULL16, _FULL16, True),
    "CRC_CCITT_FALSE": Crc(16, 0x1021, _FULL16),
    "CRC_32": Crc(32, 0x04C11DB7, _FULL32, _FULL32, True),
    "CRC_32C": Crc(32, 0x1EDC6F41, _FULL32, _FULL32, True),
    "CRC_32_BZIP2": Crc(32, 0x04C11DB7, _FULL32, _FULL32),
    "CRC_32_MPEG": Crc(32, 0x04C11DB7, _FULL32),
}
"""The parameters of CRCs, by their names in the chip's driver."""


class HashAlgorithmTable(ControlTable):
    """The algorithm of a hash, as the default entry. `width`: the bits of its result."""

    def __init__(self, schema: TableSchema, hash: DynamicHash, width: int) -> None:
        super().__init__(schema)
        self.hash = hash
        self._width = width

    def set_default(self, scope: Scope, data: Data) -> Undo:
        if not scope.all:
            raise self.invalid("all pipes share it: leave the target's pipe at 0xffff")
        if data.action is None:
            raise self.invalid(f"give one of the actions {PRE_DEFINED} and {USER_DEFINED}")
        if data.values.get("rotate"):
            raise self.refused("its result cannot be rotated")
        named = data.action.name == PRE_DEFINED
        return self._set(self._named(data) if named else self._given(data))

    def reset_default(self, scope: Scope) -> Undo:
        return self._set(None)

    def default(self, scope: Scope) -> Data | None:
        crc = self.hash.crc
        name = PROGRAM if crc is None else next((n for n, c in NAMED.items() if c == crc), None)
        common = {"rotate": 0, "seed": 0, "msb": False, "extend": False}
        if name is not None:
            action = self.schema.action_named(PRE_DEFINED)
            return Data(action, {**common, "algorithm_name": name})
        assert crc is not None
        return Data(self.schema.action_named(USER_DEFINED), {
            **common, "seed": crc.initial & _FULL32, "reverse": crc.reflected,
            "polynomial": crc.polynomial, "init": crc.initial, "final_xor": crc.final,
            "hash_bit_width": crc.width,
        })  # fmt: skip

    def _named(self, data: Data) -> Crc | None:
        name = data.values.get("algorithm_name", PROGRAM)
        crc = NAMED.get(name)
        seed = data.values.get("seed", 0)
        if crc is None or not seed:
            return crc
        return Crc(crc.width, crc.polynomial, self._fitting("seed", seed, crc.width), crc.final,
                   crc.reflected)  # fmt: skip

    def _given(self, data: Data) -> Crc:
        values = data.values
        width = values.get("hash_bit_width") or self._width
        if not 8 <= width <= 64:
            raise self.invalid(f"hash_bit_width {width} is not within 8 to 64")
        numbers = {
            "polynomial": values["polynomial"],
            "init": values.get("init", 0) or values.get("seed", 0),
            "final_xor": values.get("final_xor", 0),
        }
        polynomial, initial, final = (self._fitting(n, v, width) for n, v in numbers.items())
        return Crc(width, polynomial, initial, final, values.get("reverse", False))

    def _fitting(self, name: str, value: int, width: int) -> int:
        if value >> width:
            raise self.invalid(f"{name} {value:#x} does not fit {width} bits")
        return value

    def _set(self, crc: Crc | None) -> Undo:
        old = self.hash.crc
        self.hash.set(crc)
        return lambda: self.hash.set(old)


class HashComputeTable(ControlTable):
    """The results of a hash: an entry for each key, which is read only.

    Fields that a key leaves out are 0. `width`: the bits of the result."""

    def __init__(
        self, schema: TableSchema, hash: DynamicHash, width: int, fields: Sequence[HashedField]
    ) -> None:
        super().__init__(schema)
        self.hash = hash
        self._mask = (1 << width) - 1
        self._fields = fields

    def find(self, scope: Scope, key: Key) -> tuple[Key, Data]:
        data = pack_bits([(self._value(f, key), f.width) for f in self._fields])
        return key, Data(None, {HASH_VALUE: self.hash.compute(data) & self._mask})

    def entries(self, scope: Scope) -> Iterator[tuple[Key, Data]]:
        return iter(())

    def usage(self, scope: Scope) -> int:
        return 0

    def _value(self, field: HashedField, key: Key) -> int:
        if field.value is not None:
            return field.value
        return self.number(key, field.name) if key.get(field.name) is not None else 0
