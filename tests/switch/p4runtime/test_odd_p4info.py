"""P4Info that no compiler writes is compared and read without a fault."""

from finsy.proto import p4i

from gradplane.switch.frontends.bmv2.control_plane import ControlPlane
from gradplane.switch.p4runtime.device import differences


def with_table(kind: int) -> p4i.P4Info:
    info = p4i.P4Info()
    table = info.tables.add()
    table.preamble.id, table.preamble.name = 0x2000001, "I.t"
    table.match_fields.add(id=1, name="h.x", bitwidth=8, match_type=kind)
    return info


def test_a_match_kind_without_a_name() -> None:
    found = differences(with_table(77), with_table(p4i.MatchField.EXACT))
    assert found == [
        "table I.t: field h.x, 8 bits, kind 77, in the program field h.x, 8 bits, exact"
    ]


def test_externs_of_another_architecture() -> None:
    info = with_table(p4i.MatchField.EXACT)
    info.externs.add(extern_type_id=129, extern_type_name="Counter").instances.add()
    [note] = ControlPlane(info).annotations("tables", "I.t")
    assert (note.name, note.values) == ("id", (0x2000001,))
