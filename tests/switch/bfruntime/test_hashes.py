"""The hashes of a program, whose algorithm and fields clients change."""

from __future__ import annotations

import grpc
import pytest
from bfrt_client import Client
from bfrt_served import Served

from gradplane import _bfruntime as bf
from gradplane.switch.bfruntime.tables.hashes import NAMED
from gradplane.switch.runtime.hashes import crc16

CHECKS = """
CRC_8 F4 CRC_8_DARC 15 CRC_8_I_CODE 7E CRC_8_ITU A1 CRC_8_MAXIM A1 CRC_8_ROHC D0 CRC_8_WCDMA 25
CRC_16 BB3D CRC_16_BYPASS FEE8 CRC_16_DDS_110 9ECF CRC_16_DECT 007E CRC_16_DECT_R 007E
CRC_16_DECT_X 007F CRC_16_DNP EA82 CRC_16_EN_13757 C2B7 CRC_16_GENIBUS D64E CRC_16_MAXIM 44C2
CRC_16_MCRF4XX 6F91 CRC_16_RIELLO 63D0 CRC_16_T10_DIF D0DB CRC_16_TELEDISK 0FB3 CRC_16_USB B4C8
X_25 906E XMODEM 31C3 MODBUS 4B37 KERMIT 2189 CRC_CCITT_FALSE 29B1 CRC_AUG_CCITT E5CC
CRC_32 CBF43926 CRC_32_BZIP2 FC891918 CRC_32C E3069283 CRC_32D 87315576 CRC_32_MPEG 0376E6E7
POSIX 765E7680 CRC_32Q 3010BF7F JAMCRC 340BC6D9 XFER BD0BE338 CRC_64 6C40DF5F0B497347
CRC_64_GO_ISO B90956C775A41001 CRC_64_WE 62EC59E3F1A4F00A CRC_64_JONES CAA717168609F281
"""


def test_the_named_crcs_are_those_of_the_catalogue() -> None:
    """Each with its published check value: that of the digits 1 to 9."""
    words = CHECKS.split()
    found = {name: f"{crc(b'123456789'):0{crc.width // 4}X}" for name, crc in NAMED.items()}
    assert found == dict(zip(words[::2], words[1::2], strict=True))


Parts = list[tuple[int, ...]]
"""Parts of a field: order, start bit and length, which may be left out from the end on."""

FIELDS = ("order", "start_bit", "length")


def configure(client: Client, table: str, **fields: Parts) -> None:
    """Write which parts of fields a hash takes."""
    entry = client.entry(table, None)
    entry.is_default_entry = True
    known = [one["singleton"] for one in client.table(table)["data"]]
    for name, parts in fields.items():
        about = next(f for f in known if f["name"].endswith(name))
        ids = {c["singleton"]["name"]: c["singleton"]["id"] for c in about["container"]}
        out = entry.data.fields.add(field_id=about["id"]).container_arr_val
        for part in parts:
            item = out.container.add()
            for name, number in zip(FIELDS, part, strict=False):
                item.val.add(field_id=ids[name], stream=number.to_bytes(8, "big"))
    client.write(("MODIFY", entry))


def packet(destination: int, kind: int = 0xEEEE) -> bytes:
    return destination.to_bytes(6, "big") + bytes(6) + kind.to_bytes(2, "big")


def test_a_hash_takes_chosen_parts_of_fields_in_their_order(served: Served) -> None:
    device, client = served
    client.set_default("macs", "Ingress.send", port=1)
    table = "Ingress.digest.configure"

    def hashed() -> int:
        ((_, data),) = device.process(3, packet(0x1234_5678_9ABC))
        return int.from_bytes(data[12:14], "big")

    assert hashed() == 0x1234 ^ 0x5678 ^ 0x9ABC
    configure(client, table, dst=[(2, 40, 8), (1, 0, 12)])
    assert hashed() == 0xABC1 ^ 0x2000
    client.set_default("Ingress.digest.algorithm", "pre_defined", algorithm_name="CRC_16")
    assert hashed() == crc16(bytes.fromhex("ABC120"))
    with pytest.raises(grpc.RpcError, match="1 of 1 updates failed.*start_bit 48 is not within"):
        configure(client, table, dst=[(1, 48)])
    assert hashed() == crc16(bytes.fromhex("ABC120"))
    reset = client.entry(table, None)
    reset.is_default_entry = True
    client.write(("DELETE", reset))
    assert hashed() == crc16(bytes.fromhex("123456789ABC"))


def shown_parts(client: Client, table: str, field: str) -> list[dict[str, int]]:
    """Read the parts of a field that a hash takes."""
    entry = client.entry(table, None)
    entry.is_default_entry = True
    (found,) = client.read_entities(bf.Entity(table_entry=entry))
    known = [one["singleton"] for one in client.table(table)["data"]]
    about = next(f for f in known if f["name"].endswith(field))
    names = {c["singleton"]["id"]: c["singleton"]["name"] for c in about["container"]}
    (data,) = (f for f in found.table_entry.data.fields if f.field_id == about["id"])
    return [
        {names[v.field_id]: int.from_bytes(v.stream, "big") for v in item.val}
        for item in data.container_arr_val.container
    ]


def test_a_part_begins_at_bit_0_and_ends_with_its_field(interpreted: Served) -> None:
    """bf-drivers, bf_rt_p4_table_data_impl.cpp: DynHashField::preProcess."""
    _, client = interpreted
    table = "Ingress.digest.configure"
    for given, taken in [
        ((1,), (0, 48, 1)), ((1, 40), (40, 8, 1)), ((1, 40, 9), (40, 8, 1)),
        ((2, 8, 16), (8, 16, 2)),
    ]:  # fmt: skip
        configure(client, table, dst=[given])
        start, length, order = taken
        wanted = {"start_bit": start, "length": length, "order": order}
        assert shown_parts(client, table, "dst") == [wanted]
    configure(client, table, dst=[(1, 0, 8), (2, 40, 0), (0, 8, 8)])  # none or no place: left out
    assert [part["order"] for part in shown_parts(client, table, "dst")] == [1, 0, 0]
    for wrong, reason in [
        ([(1, 0, 9), (2, 8)], "its parts have bits in common"),
        ([(1, 0, 8), (1, 8, 8)], "two parts have the order 1"),
        ([(0,)], "choose 1 to 64 parts"),
    ]:
        with pytest.raises(grpc.RpcError, match=reason):
            configure(client, table, dst=wrong)


def test_a_selectors_hash_has_its_tables_too(interpreted: Served) -> None:
    device, client = interpreted
    client.set_default("Ingress.spread.algorithm", "pre_defined", algorithm_name="CRC_32C")
    assert device.target.state.hashes["Ingress.spread"].compute(b"123456789") == 0xE3069283
    assert client.default("Ingress.spread.algorithm")["algorithm_name"] == "CRC_32C"
