"""The algorithm of a hash, which may be replaced with a CRC while the program runs, and what it
gives for some fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.bfruntime.codec import Data, Key
from gradplane.switch.bfruntime.hashed_fields import HashedField
from gradplane.switch.bfruntime.schema import TableSchema
from gradplane.switch.bfruntime.tables.control_table import ControlTable, Scope, SettingsTable, Undo
from gradplane.switch.runtime.dynamic_hashes import DynamicHash
from gradplane.switch.runtime.fixed_crcs import Crc
from gradplane.switch.runtime.hashes import pack_bits

PRE_DEFINED, USER_DEFINED = "pre_defined", "user_defined"
RANDOM, IDENTITY, XOR = "RANDOM", "IDENTITY", "XOR"

HASH_VALUE = "hash_value"

_FULL16, _FULL32, _FULL64 = 0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
NAMED = {
    "CRC_8": Crc(8, 0x07),
    "CRC_8_DARC": Crc(8, 0x39, reflected=True),
    "CRC_8_I_CODE": Crc(8, 0x1D, 0xFD),
    "CRC_8_ITU": Crc(8, 0x07, 0, 0x55),
    "CRC_8_MAXIM": Crc(8, 0x31, reflected=True),
    "CRC_8_ROHC": Crc(8, 0x07, 0xFF, reflected=True),
    "CRC_8_WCDMA": Crc(8, 0x9B, reflected=True),
    "CRC_16": Crc(16, 0x8005, reflected=True),
    "CRC_16_BYPASS": Crc(16, 0x8005),
    "CRC_16_DDS_110": Crc(16, 0x8005, 0x800D),
    "CRC_16_DECT": Crc(16, 0x0589, 0, 0x0001),
    "CRC_16_DECT_R": Crc(16, 0x0589, 0, 0x0001),
    "CRC_16_DECT_X": Crc(16, 0x0589),
    "CRC_16_DNP": Crc(16, 0x3D65, 0, _FULL16, reflected=True),
    "CRC_16_EN_13757": Crc(16, 0x3D65, 0, _FULL16),
    "CRC_16_GENIBUS": Crc(16, 0x1021, _FULL16, _FULL16),
    "CRC_16_MAXIM": Crc(16, 0x8005, 0, _FULL16, reflected=True),
    "CRC_16_MCRF4XX": Crc(16, 0x1021, _FULL16, reflected=True),
    "CRC_16_RIELLO": Crc(16, 0x1021, 0xB2AA, reflected=True),
    "CRC_16_T10_DIF": Crc(16, 0x8BB7),
    "CRC_16_TELEDISK": Crc(16, 0xA097),
    "CRC_16_USB": Crc(16, 0x8005, _FULL16, _FULL16, reflected=True),
    "X_25": Crc(16, 0x1021, _FULL16, _FULL16, reflected=True),
    "XMODEM": Crc(16, 0x1021),
    "MODBUS": Crc(16, 0x8005, _FULL16, reflected=True),
    "KERMIT": Crc(16, 0x1021, reflected=True),
    "CRC_CCITT_FALSE": Crc(16, 0x1021, _FULL16),
    "CRC_AUG_CCITT": Crc(16, 0x1021, 0x1D0F),
    "CRC_32": Crc(32, 0x04C11DB7, _FULL32, _FULL32, reflected=True),
    "CRC_32_BZIP2": Crc(32, 0x04C11DB7, _FULL32, _FULL32),
    "CRC_32C": Crc(32, 0x1EDC6F41, _FULL32, _FULL32, reflected=True),
    "CRC_32D": Crc(32, 0xA833982B, _FULL32, _FULL32, reflected=True),
    "CRC_32_MPEG": Crc(32, 0x04C11DB7, _FULL32),
    "POSIX": Crc(32, 0x04C11DB7, 0, _FULL32),
    "CRC_32Q": Crc(32, 0x814141AB),
    "JAMCRC": Crc(32, 0x04C11DB7, _FULL32, reflected=True),
    "XFER": Crc(32, 0x000000AF),
    "CRC_64": Crc(64, 0x42F0E1EBA9EA3693),
    "CRC_64_GO_ISO": Crc(64, 0x000000000000001B, _FULL64, _FULL64, reflected=True),
    "CRC_64_WE": Crc(64, 0x42F0E1EBA9EA3693, _FULL64, _FULL64),
    "CRC_64_JONES": Crc(64, 0xAD93D23594C935A9, _FULL64, reflected=True),
}
"""The parameters of CRCs, by their names in the chip's driver."""
NAMES = (IDENTITY, RANDOM, XOR, *NAMED)

_OF_PROGRAM = {
    "identity": IDENTITY, "random": RANDOM, "xor8": XOR, "xor16": XOR, "xor32": XOR,
    "crc8": "CRC_8", "crc16": "CRC_16", "crc32": "CRC_32", "crc64": "CRC_64",
}  # fmt: skip
"""The names of the algorithms of programs."""


class HashAlgorithmTable(SettingsTable):
    """The algorithm of a hash, as the default entry. `width`: the bits of its result."""

    def __init__(self, schema: TableSchema, hash: DynamicHash, width: int) -> None:
        super().__init__(schema)
        self.hash = hash
        self._width = width
        self._own = _name_of(hash.algorithm)
        self._chosen = ""  # the name of the last algorithm that was chosen by name

    def set_default(self, scope: Scope, data: Data) -> Undo:
        if not scope.all:
            raise self.invalid("all pipes share it: leave the target's pipe at 0xffff")
        if data.action is None:
            raise self.invalid(f"give one of the actions {PRE_DEFINED} and {USER_DEFINED}")
        if data.values.get("rotate"):
            raise self.refused("its result cannot be rotated")
        if data.action.name != PRE_DEFINED:
            return self._set(self._given(data), "")
        name = data.values.get("algorithm_name", self._own)
        return self._set(self._named(name, data.values.get("seed", 0)), name)

    def reset_default(self, scope: Scope) -> Undo:
        return self._set(None, self._own)

    def default(self, scope: Scope) -> Data | None:
        crc, name = self.hash.crc, self._chosen
        if crc is None:
            own = self.hash.algorithm
            crc, name = own if isinstance(own, Crc) else None, self._own
        common = {"rotate": 0, "seed": 0, "msb": False, "extend": False}
        if crc is None or crc == NAMED.get(name):
            action = self.schema.action_named(PRE_DEFINED)
            return Data(action, {**common, "algorithm_name": name})
        return Data(self.schema.action_named(USER_DEFINED), {
            **common, "seed": crc.initial & _FULL32, "reverse": crc.reflected,
            "polynomial": crc.polynomial, "init": crc.initial, "final_xor": crc.final,
            "hash_bit_width": crc.width,
        })  # fmt: skip

    def _named(self, name: str, seed: int) -> Crc | None:
        """Return the CRC of a name, None for the program's own algorithm."""
        crc, own = NAMED.get(name), self.hash.algorithm
        if name == self._own:
            if not seed:
                return None
            crc = own if isinstance(own, Crc) else crc
        elif crc is None:
            raise self.refused(f"{name} is not the program's algorithm: use {self._known()}")
        if crc is None:
            raise self.refused(f"{name} takes no seed: use {self._known()}")
        if not seed:
            return crc
        return Crc(crc.width, crc.polynomial, self._fitting("seed", seed, crc.width), crc.final,
                   crc.reflected)  # fmt: skip

    def _known(self) -> str:
        return f"{self._own}, or the name of a CRC" if self._own else "the name of a CRC"

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

    def _set(self, crc: Crc | None, name: str) -> Undo:
        old, old_name = self.hash.crc, self._chosen
        self.hash.set(crc)
        self._chosen = name

        def undo() -> None:
            self.hash.set(old)
            self._chosen = old_name

        return undo


def _name_of(algorithm: Crc | str) -> str:
    """Return the name of a program's algorithm, "" for a CRC that has none."""
    if isinstance(algorithm, str):
        return _OF_PROGRAM.get(algorithm, algorithm.upper())
    return next((name for name, crc in NAMED.items() if crc == algorithm), "")


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
