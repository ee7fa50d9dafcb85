"""Writes and reads of every entity: what comes back, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from hand_made_device import (
    DELETE,
    INSERT,
    MODIFY,
    EchoSwitch,
    entity,
    read_all,
    request,
    service,
)
from hand_made_ir import extern, note, program, table, var

from gradplane.switch.compiler import compile_program
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.entities import packed_cells
from gradplane.switch.p4runtime.entities.counter_data import show_counter
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.p4runtime.status_errors import BatchError
from gradplane.switch.runtime.profiles import Weighted
from gradplane.switch.runtime.replicas import Replica

PROGRAMS = Path(__file__).parent / "programs"
ROUTE = """table_entry {
  table_id: $ipv4_lpm
  match { field_id: 1 lpm { value: "\\n\\000\\001\\000" prefix_len: 24 } }
  action { action { action_id: $ipv4_forward
    params { param_id: 1 value: "\\002" } params { param_id: 2 value: "\\003" } } }
  metadata: "mine"
}"""
RULE = """table_entry {
  table_id: $acl
  match { field_id: 1 ternary { value: "\\n\\000\\000\\000" mask: "\\377\\000\\000\\000" } }
  match { field_id: 2 range { low: "\\005" high: "\\t" } }
  match { field_id: 9 optional { value: "\\021" } }
  match { field_id: 3 exact { value: "\\001" } }
  action { action { action_id: $mark
    params { param_id: 1 value: "\\007" } params { param_id: 2 value: "\\001" } } }
  priority: 10
}"""


class Control:
    """Writes and reads in short."""

    def __init__(self, made: P4RuntimeService | None = None) -> None:
        self.service = made or service()
        pipeline = self.service.device.pipeline
        assert pipeline is not None
        self.pipeline = pipeline
        self.info = pipeline.catalog.p4info

    def entity(self, text: str) -> p4r.Entity:
        return entity(self.info, text)

    def write(self, kind: int, text: str) -> None:
        self.service.write(request([(kind, self.entity(text))]))

    def read(self, text: str) -> list[p4r.Entity]:
        return read_all(self.service, self.entity(text))

    def refused(self, kind: int, text: str) -> tuple[str, str]:
        """Return the code and text of the error of an update that must fail."""
        with pytest.raises(BatchError) as caught:
            self.write(kind, text)
        (error,) = caught.value.errors
        assert error is not None
        return error.code, error.message

    def refused_read(self, text: str) -> tuple[str, str]:
        with pytest.raises(BatchError) as caught:
            self.read(text)
        (error,) = caught.value.errors
        assert error is not None
        return error.code, error.message


@pytest.fixture
def control() -> Control:
    return Control()


def without(text: str, part: str) -> str:
    assert part in text
    return text.replace(part, "")


def changed(text: str, part: str, other: str) -> str:
    assert part in text, part
    return text.replace(part, other)


# -- table entries -------------------------------------------------------------------------------


@pytest.mark.p4runtime("8.2-1 9.1.1-1 9.1-8")
@pytest.mark.parametrize("text", [ROUTE, RULE])
def test_an_entry_reads_back_as_it_was_written(control: Control, text: str) -> None:
    control.write(INSERT, text)
    assert control.read(text) == [control.entity(text)]


@pytest.mark.p4runtime("8.3-1 8.3-2")
def test_values_read_back_in_canonical_form(control: Control) -> None:
    control.write(INSERT, changed(ROUTE, '"\\002"', '"\\000\\000\\002"'))
    assert control.read(ROUTE) == [control.entity(ROUTE)]


@pytest.mark.p4runtime("9.1-4 12-7")
def test_modify_replaces_and_delete_needs_only_the_key(control: Control) -> None:
    control.write(INSERT, ROUTE)
    other = changed(changed(ROUTE, '"\\003"', '"\\004"'), "mine", "yours")
    control.write(MODIFY, other)
    assert control.read(ROUTE.replace("mine", "")) == [control.entity(other)]
    control.write(MODIFY, without(ROUTE[: ROUTE.index("action {")] + "}", "XX" * 0))
    assert control.read("table_entry { table_id: $ipv4_lpm }")[0].table_entry.metadata == b""
    control.write(DELETE, ROUTE[: ROUTE.index("action {")] + "}")
    assert control.read("table_entry { table_id: $ipv4_lpm }") == []


@pytest.mark.p4runtime("9.1.2-2")
def test_a_modify_without_action_keeps_it(control: Control) -> None:
    control.write(INSERT, ROUTE)
    control.write(MODIFY, ROUTE[: ROUTE.index("action {")] + "}")
    (found,) = control.read("table_entry { table_id: $ipv4_lpm }")
    assert found.table_entry.action == control.entity(ROUTE).table_entry.action


@pytest.mark.p4runtime("9.1.1-1")
def test_an_entry_that_matches_anything(control: Control) -> None:
    text = "table_entry { table_id: $ipv4_lpm action { action { action_id: $drop } } }"
    control.write(INSERT, text)
    assert control.read("table_entry { table_id: $ipv4_lpm }") == [control.entity(text)]
    control.write(DELETE, text)
    assert control.read("table_entry { table_id: $ipv4_lpm }") == []


@pytest.mark.p4runtime("9.1.6-1 9.1.6-2 9.1.6-3 9.1.4-3")
def test_reads_select(control: Control) -> None:
    control.write(INSERT, ROUTE)
    control.write(INSERT, RULE)
    second = changed(changed(RULE, "priority: 10", "priority: 20"), "$mark", "$drop")
    second = second[: second.index("params")] + "} } priority: 20 }"
    control.write(INSERT, second)
    fixed = control.read("table_entry { table_id: $fixed }")
    assert [e.table_entry.is_const for e in fixed] == [True]

    def count(query: str) -> int:
        return len(control.read(f"table_entry {{ {query} }}"))

    assert count("") == 4
    assert count("table_id: $acl") == 2
    assert count("table_id: $acl priority: 20") == 1
    assert count("table_id: $acl action { action { action_id: $drop } }") == 1
    assert count('table_id: $ipv4_lpm metadata: "mine"') == 1
    assert count('table_id: $ipv4_lpm metadata: "other"') == 0
    assert len(control.read(RULE.replace("priority: 10", ""))) == 1


@pytest.mark.p4runtime("9.1-8 9.1.6-3")
def test_the_deprecated_cookie_is_kept(control: Control) -> None:
    text = changed(ROUTE, 'metadata: "mine"', "controller_metadata: 77")
    control.write(INSERT, text)
    assert control.read("table_entry { table_id: $ipv4_lpm }") == [control.entity(text)]
    assert control.read("table_entry { table_id: $ipv4_lpm controller_metadata: 78 }") == []
    control.write(DELETE, text)
    control.write(INSERT, changed(ROUTE, 'metadata: "mine"', ""))
    (found,) = control.read("table_entry { table_id: $ipv4_lpm }")
    assert found.table_entry.controller_metadata == 0


REFUSED_INSERTS = [
    (changed(ROUTE, "$ipv4_lpm", "5"), "INVALID_ARGUMENT",
     "no table has id 5; there are: MyIngress.ipv4_lpm (37375156), MyIngress.acl (33554551),"
     " MyEgress.fixed (33896458)"),
    (changed(ROUTE, "field_id: 1", "field_id: 8"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: no match field has id 8; there are: hdr.ipv4.dst (lpm) (1)"),
    (changed(ROUTE, "prefix_len: 24", "prefix_len: 33"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: field hdr.ipv4.dst: prefix length 33 is not within 1 to 32"),
    (changed(ROUTE, "prefix_len: 24", "prefix_len: 0"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: field hdr.ipv4.dst: prefix length 0 is not within 1 to 32; leave"
     " the field out to match any value"),
    (changed(ROUTE, "prefix_len: 24", "prefix_len: 16"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: field hdr.ipv4.dst: value 0xa000100 has bits set beyond its prefix"
     " of 16 bits"),
    (changed(ROUTE, '"\\n\\000\\001\\000"', '"\\001\\000\\000\\000\\000"'), "OUT_OF_RANGE",
     "table MyIngress.ipv4_lpm: field hdr.ipv4.dst: value 0x100000000 does not fit bit<32>"
     " (0 to 0xffffffff)"),
    (changed(ROUTE, "lpm {", "ternary {").replace("prefix_len: 24", ""), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: field hdr.ipv4.dst: the match is of kind ternary, the field's is"
     " lpm"),
    (changed(ROUTE, "$ipv4_forward", "$mark"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: no action has id 27927631; there are: MyIngress.ipv4_forward"
     " (28792405), MyIngress.drop (25652968), NoAction (21257015)"),
    (changed(ROUTE, "param_id: 2", "param_id: 3"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: action MyIngress.ipv4_forward: no parameter has id 3; there are:"
     " dstAddr (1), port (2)"),
    (changed(ROUTE, "param_id: 2", "param_id: 1"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: action MyIngress.ipv4_forward: parameter dstAddr is given twice"),
    (without(ROUTE, 'params { param_id: 2 value: "\\003" }'), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: action MyIngress.ipv4_forward: parameters missing: port"),
    (changed(ROUTE, '"\\003"', '"\\002\\000"'), "OUT_OF_RANGE",
     "table MyIngress.ipv4_lpm: action MyIngress.ipv4_forward: parameter port: 512 does not fit"
     " bit<9>"),
    (changed(ROUTE, '"\\003"', '""'), "OUT_OF_RANGE",
     "table MyIngress.ipv4_lpm: action MyIngress.ipv4_forward: parameter port: empty value,"
     " expected bit<32> as 1 to 4 big-endian bytes"),
    (ROUTE[: ROUTE.index("action {")] + "}", "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: an entry takes an action, not nothing"),
    (changed(ROUTE, 'metadata: "mine"', "priority: 4"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: priority 4 given, but exact and lpm fields take none"),
    (changed(ROUTE, 'metadata: "mine"', "idle_timeout_ns: 4"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: idle_timeout_ns is set, but the source does not set"
     " support_timeout = true"),
    (changed(ROUTE, 'metadata: "mine"', "is_const: true"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: is_const cannot be set by a controller; leave it false"),
    (changed(ROUTE, 'metadata: "mine"', "meter_config { cir: 1 }"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: meter_config is set, but the table has no direct meter"),
    (changed(ROUTE, 'metadata: "mine"', "counter_data { packet_count: -1 }"), "INVALID_ARGUMENT",
     "table MyIngress.ipv4_lpm: packet_count -1 is below 0"),
    (changed(RULE, "priority: 10", ""), "INVALID_ARGUMENT",
     "table MyIngress.acl: ternary, range and optional fields need a priority of 1 to 2147483647,"
     " not 0"),
    (without(RULE, 'match { field_id: 3 exact { value: "\\001" } }'), "INVALID_ARGUMENT",
     "table MyIngress.acl: field flag is missing; an exact match needs a value"),
    (changed(RULE, 'low: "\\005"', 'low: "\\012"'), "INVALID_ARGUMENT",
     "table MyIngress.acl: field hdr.ipv4.dport: low 10 is above high 9"),
    (changed(RULE, 'low: "\\005" high: "\\t"', 'low: "\\000" high: "\\377\\377"'),
     "INVALID_ARGUMENT",
     "table MyIngress.acl: field hdr.ipv4.dport: range 0 to 65535 covers all values; leave the"
     " field out to match any value"),
    (changed(RULE, 'mask: "\\377\\000\\000\\000"', 'mask: "\\000"'), "INVALID_ARGUMENT",
     "table MyIngress.acl: field hdr.ipv4.src: mask 0; leave the field out to match any value"),
    (changed(RULE, 'mask: "\\377', 'mask: "\\360').replace('"\\n\\0', '"\\037\\0'),
     "INVALID_ARGUMENT",
     "table MyIngress.acl: field hdr.ipv4.src: value 0x1f000000 has bits set outside its mask"
     " 0xf0000000"),
    (changed(RULE, "field_id: 9 optional", "field_id: 3 exact"), "OUT_OF_RANGE",
     "table MyIngress.acl: field flag: value 17 does not fit bit<1> (0 to 1)"),
    ("table_entry { table_id: $fixed match { field_id: 1 exact { value: \"\\001\" } }"
     " action { action { action_id: $NoAction } } }", "PERMISSION_DENIED",
     "table MyEgress.fixed: its entries are const in the source"),
]  # fmt: skip


@pytest.mark.p4runtime(
    "8.1.1-1 8.3-3 9.1-1 9.1-7 9.1.1-2 9.1.1-3 9.1.1-4 9.1.1-5 9.1.1-6 9.1.1-7 9.1.2-1 9.1.2-4 "
    "9.1.2-6 9.1.2-7 9.1.4-1 9.1.8-4"
)
@pytest.mark.parametrize(("text", "code", "message"), REFUSED_INSERTS)
def test_refused_inserts(control: Control, text: str, code: str, message: str) -> None:
    assert control.refused(INSERT, text) == (code, message)
    assert not control.read("table_entry { table_id: $ipv4_lpm }")


@pytest.mark.p4runtime("9.1-6 12-5 12-6")
def test_presence_and_size(control: Control) -> None:
    control.write(INSERT, ROUTE)
    described = "MyIngress.ipv4_lpm: it has {} entry for hdr.ipv4.dst 0xa000100/24"
    assert control.refused(INSERT, ROUTE) == ("ALREADY_EXISTS", "table " + described.format("an"))
    control.write(DELETE, ROUTE)
    for kind in (MODIFY, DELETE):
        assert control.refused(kind, ROUTE) == ("NOT_FOUND", "table " + described.format("no"))
    for priority in range(1, 5):
        control.write(INSERT, changed(RULE, "priority: 10", f"priority: {priority}"))
    assert control.refused(INSERT, RULE) == (
        "RESOURCE_EXHAUSTED",
        "table MyIngress.acl: all 4 entries are in use",
    )


@pytest.mark.p4runtime("9.1.4-1 9.1.4-2")
def test_const_entries_let_nothing_but_their_resources_change(control: Control) -> None:
    key = 'table_entry { table_id: $fixed match { field_id: 1 exact { value: "\\006" } } %s }'
    control.write(MODIFY, key % "")
    assert control.refused(MODIFY, key % "action { action { action_id: $NoAction } }") == (
        "PERMISSION_DENIED",
        "table MyEgress.fixed: its entry for hdr.ipv4.kind 0x6 is const in the source; only its"
        " counter and meter may be changed, so leave the action out",
    )
    for other in ('metadata: "m"', "controller_metadata: 1"):
        code, message = control.refused(MODIFY, key % other)
        assert code == "PERMISSION_DENIED"
        assert message.endswith(f"so leave {other.split(':')[0]} out")
    assert control.refused(DELETE, key % "")[0] == "PERMISSION_DENIED"


# -- default entries -----------------------------------------------------------------------------

DEFAULT = "table_entry { table_id: $ipv4_lpm is_default_action: true %s }"


@pytest.mark.p4runtime("9.1.3-3 9.1.6-4")
def test_the_default_entry(control: Control) -> None:
    drop = DEFAULT % 'action { action { action_id: $drop } } metadata: "m" controller_metadata: 3'
    control.write(MODIFY, drop)
    assert control.read(DEFAULT % "") == [control.entity(drop)]
    control.write(MODIFY, DEFAULT % 'metadata: "n"')  # without an action: as in the source, whole
    original = DEFAULT % "action { action { action_id: $NoAction } }"
    assert control.read(DEFAULT % "") == [control.entity(original)]
    assert len(control.read("table_entry { is_default_action: true }")) == 3


@pytest.mark.p4runtime("9.1.3-1 9.1.3-2 9.1.3-4 9.1.3-6 9.1.8-5")
@pytest.mark.parametrize(
    ("kind", "text", "code", "message"),
    [
        (INSERT, DEFAULT % "", "INVALID_ARGUMENT",
         "table MyIngress.ipv4_lpm: the default entry always exists: it can only be changed"
         " (MODIFY)"),
        (DELETE, DEFAULT % "", "INVALID_ARGUMENT",
         "table MyIngress.ipv4_lpm: the default entry always exists: it can only be changed"
         " (MODIFY)"),
        (MODIFY, DEFAULT % "priority: 1", "INVALID_ARGUMENT",
         "table MyIngress.ipv4_lpm: the default entry has no match and no priority"),
        (MODIFY, DEFAULT % "idle_timeout_ns: 1", "INVALID_ARGUMENT",
         "table MyIngress.ipv4_lpm: the default entry has no idle timeout"),
        (MODIFY, DEFAULT % "action { action_profile_member_id: 1 }", "INVALID_ARGUMENT",
         "table MyIngress.ipv4_lpm: the default entry takes an action"),
        (MODIFY, "table_entry { table_id: $fixed is_default_action: true"
         " action { action { action_id: $NoAction } } }", "PERMISSION_DENIED",
         "table MyEgress.fixed: its default action is const in the source"),
    ],
)  # fmt: skip
def test_refused_default_entries(
    control: Control, kind: int, text: str, code: str, message: str
) -> None:
    assert control.refused(kind, text) == (code, message)


# -- direct counters and meters ------------------------------------------------------------------


@pytest.mark.p4runtime("8.2.1.2-1 9.1.7-3 9.1.7-4 9.3.1-1 9.3.1-2 9.3.1-3 9.3.1-4")
def test_direct_counters(control: Control) -> None:
    control.write(
        INSERT,
        changed(ROUTE, "metadata", "counter_data { packet_count: 5 byte_count: 9 } metadata"),
    )
    key = ROUTE[ROUTE.index("{") + 1 : ROUTE.index("action {")]
    query = "direct_counter_entry { table_entry { %s } }"
    (found,) = control.read(query % key)
    assert found.direct_counter_entry.data == p4r.CounterData(packet_count=5, byte_count=9)
    (entry,) = control.read("table_entry { table_id: $ipv4_lpm counter_data {} }")
    assert entry.table_entry.counter_data.packet_count == 5
    control.write(
        MODIFY, f"direct_counter_entry {{ table_entry {{ {key} }} data {{ packet_count: 1 }} }}"
    )
    assert control.read(query % "")[0].direct_counter_entry.data.packet_count == 1
    control.write(MODIFY, ROUTE)  # leaves the counter alone
    assert (
        control.read(query % "table_id: $ipv4_lpm")[0].direct_counter_entry.data.packet_count == 1
    )
    for kind in (INSERT, DELETE):
        assert control.refused(kind, query % key) == (
            "INVALID_ARGUMENT",
            "table MyIngress.ipv4_lpm: a direct counter can only be modified (MODIFY), not inserted"
            " or deleted",
        )
    control.write(DELETE, ROUTE)
    assert control.refused(MODIFY, query % key)[0] == "NOT_FOUND"
    assert control.refused_read(query % key) == (
        "NOT_FOUND",
        "table MyIngress.ipv4_lpm: it has no entry with this match",
    )
    assert control.refused_read(query % "table_id: $acl") == (
        "INVALID_ARGUMENT",
        "table MyIngress.acl: it has no direct counter",
    )


@pytest.mark.p4runtime("9.1.3-5")
def test_the_default_entry_counts_too(control: Control) -> None:
    control.write(MODIFY, DEFAULT % "counter_data { packet_count: 4 }")
    (found,) = control.read(DEFAULT % "counter_data {}")
    assert found.table_entry.counter_data.packet_count == 4
    query = "direct_counter_entry { table_entry { table_id: $ipv4_lpm is_default_action: true } }"
    (direct,) = control.read(query)
    assert direct.direct_counter_entry.data.packet_count == 4


def metered(annotation: str = "") -> Control:
    """Return a table with a direct meter."""
    action = ir.Action("NoAction", [], [])
    meter = extern("direct_meter", "I.m", "bytes")
    if annotation:
        meter.annotations = (note(annotation),)
    t = table("I.t", [ir.Key("k", var("k", Bits(8)), "exact")], [action], meter=meter)
    return custom(program(tables=[t], actions=[action], externs=[meter]))


def custom(given: ir.Program) -> Control:
    from hand_made_device import announce

    made = Device(lambda source: given, EchoSwitch)
    made.load(given)
    served = P4RuntimeService(made)
    served.stream_message("c", announce(1))
    return Control(served)


METERED = """table_entry { table_id: $t match { field_id: 1 exact { value: "\\001" } }
  action { action { action_id: $NoAction } } %s }"""


@pytest.mark.p4runtime("9.1.7-1 9.1.7-2 9.4-1 9.4.1-2")
def test_direct_meters() -> None:
    control = metered()
    rates = "meter_config { cir: 1 cburst: 2 pir: 3 pburst: 4 }"
    control.write(INSERT, METERED % rates)
    assert control.read("table_entry { table_id: $t meter_config {} }") == [
        control.entity(METERED % rates)
    ]
    control.write(MODIFY, METERED % "")
    query = "direct_meter_entry { table_entry { table_id: $t } }"
    assert not control.read(query)[0].direct_meter_entry.HasField("config")
    key = METERED[METERED.index("{") + 1 : METERED.index("action {")]
    control.write(
        MODIFY, f"direct_meter_entry {{ table_entry {{ {key} }} {rates.replace('meter_', '')} }}"
    )
    assert control.read(query)[0].direct_meter_entry.config.pburst == 4
    assert control.refused(INSERT, METERED % "meter_config { eburst: 1 }") == (
        "INVALID_ARGUMENT",
        "meter I.m: only a single-rate three-colour meter has an eburst",
    )


COUNTS = "green { byte_count: 20 packet_count: 2 } yellow {} red { byte_count: 7 packet_count: 1 }"


@pytest.mark.p4runtime("9.1.7-5 9.1.7-6 9.4.1-4 9.4.3-1")
def test_what_a_direct_meter_gave_each_colour() -> None:
    control = metered()
    rates = "meter_config { cir: 0 cburst: 20 pir: 0 pburst: 20 }"
    control.write(INSERT, METERED % rates)
    (entry,) = control.pipeline.state.tables["I.t"].entries()
    for nbytes in (10, 10, 7):
        entry.meter.execute(0, nbytes, by_packets=False)
    (found,) = control.read("table_entry { table_id: $t meter_counter_data {} }")
    counts = control.entity(METERED % f"meter_counter_data {{ {COUNTS} }}")
    assert found == counts
    (direct,) = control.read("direct_meter_entry { table_entry { table_id: $t } counter_data {} }")
    assert direct.direct_meter_entry.counter_data == counts.table_entry.meter_counter_data
    (without,) = control.read("direct_meter_entry { table_entry { table_id: $t } }")
    assert not without.direct_meter_entry.HasField("counter_data")

    control.write(MODIFY, METERED % rates)  # leaves the counts as they are
    assert entry.meter.counts == ((2, 20), (0, 0), (1, 7))
    assert control.refused(MODIFY, METERED % f"meter_counter_data {{ {COUNTS} }}") == (
        "INVALID_ARGUMENT",
        "table I.t: the count of green packets is not 0; the counts per colour can only be set"
        " to 0",
    )
    control.write(MODIFY, METERED % "meter_counter_data { green {} }")
    assert entry.meter.counts == ((0, 0),) * 3


@pytest.mark.p4runtime("8.2.1.5-1 9.4.3-1")
def test_what_a_meter_gave_each_colour(control: Control) -> None:
    meter = control.pipeline.state.meters["MyIngress.rate"]
    for _ in range(2):
        meter.execute(3, 0, 10)  # green, since it has no rates
    query = "meter_entry { meter_id: $rate index { index: 3 } counter_data {} }"
    counts = "counter_data { green { byte_count: 20 packet_count: 2 } yellow {} red {} }"
    changed_query = query.replace("counter_data {}", counts)
    assert control.read(query) == [control.entity(changed_query)]
    assert not control.read("meter_entry {}")[3].meter_entry.HasField("counter_data")
    code, _ = control.refused(MODIFY, changed_query)
    assert code == "INVALID_ARGUMENT"
    control.write(MODIFY, "meter_entry { meter_id: $rate counter_data {} }")
    assert meter.counts(3) == ((0, 0),) * 3


def test_what_is_refused_changes_nothing() -> None:
    control = metered()
    control.write(INSERT, METERED % "meter_config { cir: 1 cburst: 2 pir: 3 pburst: 4 }")
    query = "table_entry { table_id: $t meter_config {} }"
    before = control.read(query)
    wrong = "meter_config { cir: 9 pir: 1 }"
    code, _ = control.refused(MODIFY, METERED % f'metadata: "x" {wrong}')
    assert (code, control.read(query)) == ("INVALID_ARGUMENT", before)
    action = "action { action { action_id: $NoAction } }"
    default = f"table_entry {{ table_id: $t is_default_action: true {action} %s }}"
    assert control.refused(MODIFY, default % f'metadata: "x" {wrong}')[0] == "INVALID_ARGUMENT"
    assert control.read(default % "") == [control.entity(default % "")]


@pytest.mark.p4runtime("9.4-2")
def test_single_rate_meters() -> None:
    control = metered("single_rate_three_color")
    control.write(INSERT, METERED % "meter_config { cir: 5 cburst: 6 pir: 5 pburst: 6 eburst: 7 }")
    assert control.refused(MODIFY, METERED % "meter_config { cir: 1 pir: 2 }") == (
        "INVALID_ARGUMENT",
        "meter I.m: a single-rate meter needs cir = pir and cburst = pburst",
    )


# -- arrays --------------------------------------------------------------------------------------


@pytest.mark.p4runtime("8.1.2-1 9.3.2-2 9.3.2-4")
def test_counters(control: Control) -> None:
    data = "data { packet_count: 8 byte_count: 1 }"
    one = f"counter_entry {{ counter_id: $seen index {{ index: 3 }} {data} }}"
    control.write(MODIFY, one)
    assert control.read("counter_entry { counter_id: $seen index { index: 3 } }") == [
        control.entity(one)
    ]
    values = [e.counter_entry.data.packet_count for e in control.read("counter_entry {}")]
    assert values == [0, 0, 0, 8, 0, 0, 0, 0]
    control.write(MODIFY, "counter_entry { counter_id: $seen data { packet_count: 2 } }")
    values = [e.counter_entry.data.packet_count for e in control.read("counter_entry {}")]
    assert values == [2] * 8


@pytest.mark.p4runtime("8.1.2-1 9.7-1")
def test_registers(control: Control) -> None:
    one = 'register_entry { register_id: $acc index { index: 3 } data { bitstring: "\\001\\000" } }'
    control.write(MODIFY, one)
    assert control.read("register_entry { register_id: $acc index { index: 3 } }") == [
        control.entity(one)
    ]
    assert len(control.read("register_entry {}")) == 16
    control.write(MODIFY, 'register_entry { register_id: $acc data { bitstring: "\\005" } }')
    found = control.read("register_entry { register_id: $acc }")
    assert {e.register_entry.data.bitstring for e in found} == {b"\5"}


@pytest.mark.p4runtime("9.4.2-5")
def test_meters(control: Control) -> None:
    rates = "config { cir: 1 cburst: 2 pir: 3 pburst: 4 }"
    one = f"meter_entry {{ meter_id: $rate index {{ index: 2 }} {rates} }}"
    control.write(MODIFY, one)
    assert control.read("meter_entry { meter_id: $rate index { index: 2 } }") == [
        control.entity(one)
    ]
    given = [e.meter_entry.HasField("config") for e in control.read("meter_entry {}")]
    assert given == [False, False, True, False]


@pytest.mark.p4runtime("9.3.2-1 9.3.2-3 9.7-3")
@pytest.mark.parametrize(
    ("kind", "text", "code", "message"),
    [
        (INSERT, "counter_entry { counter_id: $seen }", "INVALID_ARGUMENT",
         "counter MyIngress.seen can only be modified (MODIFY), not inserted or deleted"),
        (DELETE, "counter_entry { counter_id: $seen }", "INVALID_ARGUMENT",
         "counter MyIngress.seen can only be modified (MODIFY), not inserted or deleted"),
        (MODIFY, "counter_entry { counter_id: 9 }", "INVALID_ARGUMENT",
         "no counter has id 9; there are: MyIngress.seen (316013145)"),
        (MODIFY, "counter_entry { counter_id: $seen index { index: -1 } data {} }",
         "INVALID_ARGUMENT", "counter MyIngress.seen: index -1 is below 0"),
        (MODIFY, "counter_entry { counter_id: $seen index { index: 8 } data {} }", "OUT_OF_RANGE",
         "counter MyIngress.seen: index 8 is not within 0 to 7"),
        (MODIFY, "meter_entry { meter_id: $rate config { cir: 5 pir: 4 } }", "INVALID_ARGUMENT",
         "meter: peak rate 4 is below committed rate 5"),
        (MODIFY, "register_entry { register_id: $acc data { bool: true } }", "INVALID_ARGUMENT",
         "register MyIngress.acc: data is bool, expected bitstring (bit<32>)"),
        (MODIFY, 'register_entry { register_id: $acc data { bitstring: "12345" } }',
         "OUT_OF_RANGE",
         "register MyIngress.acc: value 0x3132333435 does not fit bit<32> (0 to 0xffffffff)"),
        (MODIFY, "value_set_entry { value_set_id: 1 }", "INVALID_ARGUMENT",
         "no value set has id 1; there are none"),
    ],
)  # fmt: skip
def test_refused_cells(control: Control, kind: int, text: str, code: str, message: str) -> None:
    assert control.refused(kind, text) == (code, message)


CELL = """register_entry { register_id: $cells index { index: %d } data { struct {
  members { bitstring: "\\%03o" } members { struct {
    members { bitstring: "\\%03o" } members { bool: %s } } }
  members { tuple { members { bitstring: "\\%03o" } } } members { enum_value: "\\%03o" } } } }"""


@pytest.fixture
def structs() -> Control:
    return custom(compile_program(PROGRAMS / "structs.p4"))


@pytest.mark.p4runtime("8.4.3-1 9.7-1")
def test_registers_of_structs(structs: Control) -> None:
    kind = structs.service.device.target.catalog.p4info.registers[0].type_spec
    assert kind.struct.name == "cell_t"
    written = CELL % (1, 7, 0xFE, "true", 5, 2)
    structs.write(MODIFY, written)
    assert structs.read("register_entry { register_id: $cells index { index: 1 } }") == [
        structs.entity(written)
    ]
    cells = structs.service.device.target.state.registers["I.cells"]
    assert cells.read(1) == 0x07 << 24 | 0xFE << 16 | 1 << 15 | 5 << 8 | 2
    assert structs.read("register_entry { register_id: $cells }")[0] == structs.entity(
        CELL % (0, 0, 0, "false", 0, 0)
    )


@pytest.mark.p4runtime("9.7-3")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('bitstring: "1"',
         "register I.cells: data is bitstring (0 members), expected struct (cell_t: a, i, t, c)"),
        ('struct { members { bitstring: "1" } }',
         "register I.cells: data is struct (1 members), expected struct (cell_t: a, i, t, c)"),
        ("struct { members { bool: true } members {} members {} members {} }",
         "register I.cells: a: data is bool, expected bitstring (bit<8>)"),
    ],
)  # fmt: skip
def test_refused_structs(structs: Control, data: str, message: str) -> None:
    text = f"register_entry {{ register_id: $cells data {{ {data} }} }}"
    assert structs.refused(MODIFY, text) == ("INVALID_ARGUMENT", message)


# -- multicast groups and clone sessions ---------------------------------------------------------

GROUP = """packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 7
  replicas { port: "\\001" instance: 1 } replicas { egress_port: 2 } metadata: "x" } }"""
SESSION = """packet_replication_engine_entry { clone_session_entry { session_id: 5
  replicas { egress_port: 3 instance: 9 } class_of_service: 2 packet_length_bytes: 64 } }"""


@pytest.mark.p4runtime("9.5.1-8 9.5.1-9 9.5.1-10 9.5.2-6 9.5.2-7")
@pytest.mark.parametrize(("text", "part"), [(GROUP, "metadata"), (SESSION, "class_of_service")])
def test_replication_reads_back_as_written(control: Control, text: str, part: str) -> None:
    control.write(INSERT, text)
    assert control.read(text[: text.index("replicas")] + "} }") == [control.entity(text)]
    assert control.refused(INSERT, text)[0] == "ALREADY_EXISTS"
    other = text[: text.index("replicas")] + 'replicas { port: "\\004" } } }'
    control.write(MODIFY, other)
    everything = text[: text.index("{", text.index("entry {") + 7) + 1] + "} }"
    assert control.read(everything) == [control.entity(other)]
    control.write(DELETE, text)
    assert control.read(everything) == []
    assert control.refused(DELETE, text)[0] == "NOT_FOUND"


@pytest.mark.p4runtime("9.5.1-1 9.5.2-1")
def test_the_switch_gets_the_groups(control: Control) -> None:
    control.write(INSERT, GROUP)
    control.write(INSERT, SESSION)
    state = control.pipeline.state
    assert [(r.port, r.instance) for r in state.multicast[7]] == [(1, 1), (2, 0)]
    session = state.clone_sessions[5]
    assert ([(r.port, r.instance) for r in session.replicas], session.truncate) == ([(3, 9)], 64)


@pytest.mark.p4runtime("8.2-2")
def test_backups_of_replicas(control: Control) -> None:
    backups = 'backup_replicas { port: "\\003" instance: 5 } backup_replicas { port: "\\004" }'
    text = changed(GROUP, "egress_port: 2", f"egress_port: 2 {backups}")
    control.write(INSERT, text)
    assert control.pipeline.state.multicast[7][1].backups == (Replica(3, 5), Replica(4))
    query = "packet_replication_engine_entry { multicast_group_entry {} }"
    assert control.read(query) == [control.entity(text)]
    control.pipeline.store.replication.groups.modify(7)  # by another interface
    (found,) = control.read(query)
    replica = found.packet_replication_engine_entry.multicast_group_entry.replicas[1]
    assert replica == text_format.Parse(f'port: "\\002" {backups}', p4r.Replica())


def test_groups_set_from_python_are_read(control: Control) -> None:
    control.write(INSERT, GROUP)
    del control.pipeline.state.multicast[7][1]
    (found,) = control.read("packet_replication_engine_entry { multicast_group_entry {} }")
    replica = found.packet_replication_engine_entry.multicast_group_entry
    assert replica == p4r.MulticastGroupEntry(
        multicast_group_id=7, replicas=[p4r.Replica(port=b"\1", instance=1)]
    )


@pytest.mark.p4runtime("9.5.1-3 9.5.1-4 9.5.1-5 9.5.1-6 9.5.2-3")
@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (changed(GROUP, "multicast_group_id: 7", ""), "INVALID_ARGUMENT",
         "multicast group 0: its id is not within 1 to 65535"),
        (changed(GROUP, "egress_port: 2", 'port: "\\001" instance: 1'), "INVALID_ARGUMENT",
         "multicast group 7: port 1, instance 1 is given twice"),
        (changed(GROUP, "egress_port: 2", "egress_port: 512"), "OUT_OF_RANGE",
         "multicast group 7: replica port: value 512 does not fit bit<9> (0 to 511)"),
        (changed(GROUP, "egress_port: 2", "instance: 2"), "INVALID_ARGUMENT",
         "multicast group 7: a replica has no port"),
        (changed(GROUP, "egress_port: 2", "egress_port: 2 instance: 65536"), "INVALID_ARGUMENT",
         "multicast group 7: replica instance 65536 is not within 0 to 65535"),
        (changed(GROUP, "egress_port: 2", 'egress_port: 2 backup_replicas { port: "\\002" }'),
         "INVALID_ARGUMENT", "multicast group 7: port 2 is its own backup; name another port"),
        (changed(GROUP, "egress_port: 2",
                 'egress_port: 2 backup_replicas { port: "\\001" instance: 1 }'),
         "INVALID_ARGUMENT", "multicast group 7: port 1, instance 1 is given twice"),
        (changed(SESSION, "session_id: 5", ""), "INVALID_ARGUMENT",
         "clone session 0: its id is not within 1 to 32767"),
        (changed(SESSION, "packet_length_bytes: 64", "packet_length_bytes: -1"),
         "INVALID_ARGUMENT", "clone session 5: packet_length_bytes -1 is below 0"),
        ("packet_replication_engine_entry {}", "INVALID_ARGUMENT",
         "packet replication engine: neither a multicast group nor a clone session is given"),
    ],
)  # fmt: skip
def test_refused_replication(control: Control, text: str, code: str, message: str) -> None:
    assert control.refused(INSERT, text) == (code, message)


# -- action profiles -----------------------------------------------------------------------------


def selecting(**limits: int) -> Control:

    go = ir.Action("I.go", [var("port", Bits(9))], [])
    nothing = ir.Action("NoAction", [], [])
    selector = extern("action_selector", "I.sel", "crc16", 8, 14)
    selector.annotations = tuple(note(name, value) for name, value in limits.items())
    t = table("I.t", [ir.Key("k", var("k", Bits(8)), "exact")], [go, nothing],
              implementation=selector)  # fmt: skip
    return custom(program(tables=[t], actions=[go, nothing], externs=[selector]))


MEMBER = """action_profile_member { action_profile_id: $sel member_id: %d
  action { action_id: $go params { param_id: 1 value: "\\%d" } } }"""
SEL_GROUP = """action_profile_group { action_profile_id: $sel group_id: 1 max_size: 4
  members { member_id: 1 weight: 1 } members { member_id: 2 weight: 2 watch_port: "\\001" } }"""
SEL_ENTRY = (
    'table_entry { table_id: $t match { field_id: 1 exact { value: "\\%d" } } action { %s } }'
)
ONE_SHOT = """action_profile_action_set { action_profile_actions {
  action { action_id: $go params { param_id: 1 value: "\\001" } }
  weight: 2 watch_port: "\\003" } }"""


@pytest.mark.p4runtime("9.2.1-4 9.2.1-7 9.2.2-4 9.2.2-9 9.2.2-11")
def test_members_groups_and_entries_that_use_them() -> None:
    control = selecting()
    control.write(INSERT, MEMBER % (1, 1))
    control.write(INSERT, MEMBER % (2, 2))
    control.write(INSERT, SEL_GROUP)
    control.write(INSERT, SEL_ENTRY % (1, "action_profile_group_id: 1"))
    control.write(INSERT, SEL_ENTRY % (2, "action_profile_member_id: 2"))
    for chosen in ("", "action_profile_id: $sel", "action_profile_id: $sel group_id: 1"):
        found = control.read(f"action_profile_group {{ {chosen} }}")
        assert found == [control.entity(SEL_GROUP)]
    assert control.read("action_profile_group { action_profile_id: $sel group_id: 2 }") == []
    assert control.read("action_profile_member {}") == [
        control.entity(MEMBER % (1, 1)),
        control.entity(MEMBER % (2, 2)),
    ]
    assert control.read("table_entry { table_id: $t }") == [
        control.entity(SEL_ENTRY % (1, "action_profile_group_id: 1")),
        control.entity(SEL_ENTRY % (2, "action_profile_member_id: 2")),
    ]
    used = "action profile I.sel: {} is used by table I.t, entry k 0x{}"
    assert control.refused(DELETE, SEL_GROUP) == (
        "FAILED_PRECONDITION",
        used.format("group 1", 1),
    )
    assert control.refused(DELETE, MEMBER % (2, 2)) == (
        "FAILED_PRECONDITION",
        used.format("member 2", 2),
    )
    assert control.refused(DELETE, MEMBER % (1, 1)) == (
        "FAILED_PRECONDITION",
        "action profile I.sel: member 1 is in group 1",
    )
    control.write(MODIFY, MEMBER % (1, 5))
    assert control.read(MEMBER % (1, 1)) == [control.entity(MEMBER % (1, 5))]
    control.write(MODIFY, without(SEL_GROUP, "members { member_id: 1 weight: 1 }"))
    control.write(DELETE, MEMBER % (1, 1))


@pytest.mark.p4runtime("9.2.2-8")
def test_only_ports_that_are_there_can_be_watched() -> None:
    control = selecting(max_group_size=4)
    for member in (1, 2):
        control.write(INSERT, MEMBER % (member, member))
    control.pipeline.state.links.ports = frozenset({2, 3})
    assert control.refused(INSERT, SEL_GROUP) == (
        "INVALID_ARGUMENT",
        "action profile I.sel: watch_port 1 is no port of the switch; there are: 2, 3",
    )
    control.write(INSERT, changed(SEL_GROUP, '"\\001"', '"\\000\\003"'))


@pytest.mark.p4runtime("9.2.3-1 9.2.3-2 9.2.3-3 9.2.3-4 9.2.3-8")
def test_one_shots_read_back_as_written() -> None:
    control = selecting(max_group_size=2)
    control.write(INSERT, SEL_ENTRY % (1, ONE_SHOT))
    assert control.read("table_entry { table_id: $t }") == [
        control.entity(SEL_ENTRY % (1, ONE_SHOT))
    ]
    assert control.refused(INSERT, MEMBER % (1, 1)) == (
        "INVALID_ARGUMENT",
        "action profile I.sel: its tables are programmed with sets of actions (one shot): it takes"
        " no members and no groups",
    )
    empty_group = "action_profile_group { action_profile_id: $sel group_id: 1 max_size: 2 }"
    assert control.refused(INSERT, empty_group)[1].endswith("no members and no groups")
    assert control.refused(
        INSERT, SEL_ENTRY % (2, changed(ONE_SHOT, "weight: 2", "weight: 3"))
    ) == (
        "INVALID_ARGUMENT",
        "action profile I.sel: a group of 3 weights in sum is above its size of 2",
    )
    assert control.refused(INSERT, SEL_ENTRY % (2, changed(ONE_SHOT, "weight: 2", ""))) == (
        "INVALID_ARGUMENT",
        "table I.t: weight 0 of an action is not above 0",
    )


@pytest.mark.p4runtime(
    "9.1.2-3 9.1.2-8 9.2.1-1 9.2.1-2 9.2.1-3 9.2.1-6 9.2.2-2 9.2.2-3 9.2.2-5 9.2.2-6 9.2.2.1-1 "
    "9.2.2.1-4 9.2.3-8"
)
@pytest.mark.parametrize(
    ("kind", "text", "code", "message"),
    [
        (INSERT, MEMBER % (0, 1), "INVALID_ARGUMENT",
         "action profile I.sel: member id 0 stands for all members, it cannot be written"),
        (INSERT, MEMBER % (1, 1), "ALREADY_EXISTS", "action profile I.sel: member 1 exists"),
        (MODIFY, MEMBER % (3, 1), "NOT_FOUND", "action profile I.sel: no member 3; members: 1"),
        (DELETE, MEMBER % (3, 1), "NOT_FOUND", "action profile I.sel: no member 3; members: 1"),
        (INSERT, "action_profile_member { action_profile_id: $sel member_id: 4 }",
         "INVALID_ARGUMENT", "action profile I.sel: member 4 is given without an action"),
        (INSERT, SEL_GROUP, "NOT_FOUND", "action profile I.sel: no member 2; members: 1"),
        (INSERT, changed(SEL_GROUP, "member_id: 2", "member_id: 1"), "INVALID_ARGUMENT",
         "action profile I.sel: group 1 has member 1 twice; use its weight instead"),
        (INSERT, changed(SEL_GROUP, "weight: 2", ""), "INVALID_ARGUMENT",
         "action profile I.sel: group 1: member 2 has weight 0, expected at least 1"),
        (INSERT, changed(SEL_GROUP, "max_size: 4", "max_size: 9"), "INVALID_ARGUMENT",
         "action profile I.sel: max_size 9 is not within 1 to 4, its max_group_size"),
        (INSERT, changed(SEL_GROUP, "weight: 2", "weight: 4"), "RESOURCE_EXHAUSTED",
         "action profile I.sel: a group of 5 weights in sum is above its size of 4"),
        (MODIFY, without(SEL_GROUP, 'members { member_id: 2 weight: 2 watch_port: "\\001" }'),
         "NOT_FOUND", "action profile I.sel: no group 1; groups: none"),
        (DELETE, SEL_GROUP, "NOT_FOUND", "action profile I.sel: no group 1; groups: none"),
        (INSERT, SEL_ENTRY % (1, "action { action_id: $go }"), "INVALID_ARGUMENT",
         "table I.t: an entry takes a member of an action profile or a group of an action selector"
         " or a set of actions (one shot), not an action"),
        (INSERT, SEL_ENTRY % (1, "action_profile_member_id: 8"), "NOT_FOUND",
         "action profile I.sel: no member 8; members: 1"),
        (INSERT, SEL_ENTRY % (1, "action_profile_group_id: 8"), "NOT_FOUND",
         "action profile I.sel: no group 8; groups: none"),
        (INSERT, changed(SEL_GROUP, '"\\001"', '"\\002\\000"'), "INVALID_ARGUMENT",
         "action profile I.sel: watch_port: value 512 does not fit bit<9> (0 to 511)"),
        (INSERT, SEL_ENTRY % (1, ONE_SHOT), "INVALID_ARGUMENT",
         "action profile I.sel: its tables are programmed with members and groups, so no entry"
         " takes a set of actions (one shot)"),
    ],
)  # fmt: skip
def test_refused_members_and_groups(kind: int, text: str, code: str, message: str) -> None:
    control = selecting(max_group_size=4)
    control.write(INSERT, MEMBER % (1, 1))
    assert control.refused(kind, text) == (code, message)


def test_groups_of_commands_have_the_size_of_the_selectors_groups() -> None:
    """They are read as they can be written again."""
    control = selecting(max_group_size=4)
    control.write(INSERT, MEMBER % (1, 1))
    control.pipeline.state.profiles["I.sel"].add_group(1, [Weighted(1)])
    (found,) = control.read("action_profile_group {}")
    assert found.action_profile_group.max_size == 4
    control.service.write(request([(MODIFY, found), (DELETE, found), (INSERT, found)]))


@pytest.mark.p4runtime("9.2.2.1-4")
def test_a_selectors_size_limits_all_groups_together() -> None:
    control = selecting()  # of size 8
    for number in (1, 2):
        control.write(INSERT, MEMBER % (number, number))
    other = SEL_GROUP.replace("group_id: 1", "group_id: 2").replace("weight: 2", "weight: 3")
    beyond = SEL_GROUP.replace("group_id: 1", "group_id: 3")
    control.write(INSERT, SEL_GROUP)  # 3
    control.write(INSERT, other)  # 4
    assert control.refused(INSERT, beyond) == (
        "RESOURCE_EXHAUSTED",
        "action profile I.sel: 10 weights in sum in all groups are above its size of 8",
    )
    more = other.replace("weight: 3", "weight: 6").replace("max_size: 4", "max_size: 8")
    assert control.refused(INSERT, more)[0] == "ALREADY_EXISTS"
    assert control.refused(MODIFY, beyond)[0] == "NOT_FOUND"
    control.write(MODIFY, changed(SEL_GROUP, "weight: 2", "weight: 3"))  # 4
    control.write(DELETE, other)
    control.write(INSERT, beyond)


def test_a_selectors_size_limits_one_shots_together() -> None:
    control = selecting()
    for number in (1, 2, 3, 4):
        control.write(INSERT, SEL_ENTRY % (number, ONE_SHOT))
    assert control.refused(INSERT, SEL_ENTRY % (5, ONE_SHOT)) == (
        "RESOURCE_EXHAUSTED",
        "action profile I.sel: 10 weights in sum in all groups are above its size of 8",
    )
    assert control.refused(INSERT, SEL_ENTRY % (4, ONE_SHOT))[0] == "ALREADY_EXISTS"
    control.write(MODIFY, SEL_ENTRY % (1, changed(ONE_SHOT, "weight: 2", "weight: 1")))
    control.write(INSERT, SEL_ENTRY % (5, changed(ONE_SHOT, "weight: 2", "weight: 1")))


def test_a_selectors_size_may_count_members() -> None:
    control = selecting(selector_size_semantics="sum_of_members")
    for number in (1, 2):
        control.write(INSERT, MEMBER % (number, number))
    for number in (1, 2, 3, 4):
        control.write(INSERT, SEL_GROUP.replace("group_id: 1", f"group_id: {number}"))
    assert control.refused(INSERT, SEL_GROUP.replace("group_id: 1", "group_id: 5")) == (
        "RESOURCE_EXHAUSTED",
        "action profile I.sel: 10 members in all groups are above its size of 8",
    )


@pytest.mark.p4runtime("9.2.2.1-3")
def test_a_groups_max_size_stays() -> None:
    control = selecting()
    control.write(INSERT, MEMBER % (1, 1))
    control.write(INSERT, MEMBER % (2, 1))
    control.write(INSERT, SEL_GROUP)
    assert control.refused(MODIFY, changed(SEL_GROUP, "max_size: 4", "max_size: 5")) == (
        "INVALID_ARGUMENT",
        "action profile I.sel: group 1 has max_size 4, which cannot be changed to 5",
    )


@pytest.mark.p4runtime("6.4.1-3 9.1.2-5")
def test_action_scopes() -> None:

    a, b = ir.Action("I.a", [], []), ir.Action("I.b", [], [])
    t = table("I.t", [ir.Key("k", var("k", Bits(8)), "exact")], [a, b])
    t.actions[0].annotations = (note("tableonly"),)
    t.actions[1].annotations = (note("defaultonly"),)
    control = custom(program(tables=[t], actions=[a, b], externs=[]))
    assert [r.scope for r in control.info.tables[0].action_refs] == [
        p4i.ActionRef.TABLE_ONLY,
        p4i.ActionRef.DEFAULT_ONLY,
    ]
    assert control.refused(INSERT, SEL_ENTRY % (1, "action { action_id: $b }")) == (
        "PERMISSION_DENIED",
        "table I.t: action I.b may only be the default action",
    )
    default = (
        "table_entry { table_id: $t is_default_action: true action { action { action_id: $a } } }"
    )
    assert control.refused(MODIFY, default) == (
        "PERMISSION_DENIED",
        "table I.t: action I.a may only be an entry",
    )


# -- value sets, idle timeouts, digests ----------------------------------------------------------


@pytest.mark.p4runtime("9.6-1 9.6-2 9.6-3")
def test_value_sets() -> None:
    keys = [
        ir.Key("kind", var("kind", Bits(8)), "exact"),
        ir.Key("port", var("port", Bits(16)), "ternary"),
    ]
    control = custom(program(value_sets=[ir.ValueSet("P.vs", keys, 2)]))
    member = """members { match { field_id: 1 exact { value: "\\%d" } }
      match { field_id: 2 ternary { value: "\\001" mask: "\\001" } } }"""
    two = f"value_set_entry {{ value_set_id: $vs {member % 1} {member % 2} }}"
    control.write(MODIFY, two)
    assert control.read("value_set_entry {}") == [control.entity(two)]
    for kind in (INSERT, DELETE):
        assert control.refused(kind, two) == (
            "INVALID_ARGUMENT",
            "value set P.vs can only be modified (MODIFY), not inserted or deleted",
        )
    twice = f"value_set_entry {{ value_set_id: $vs {member % 1} {member % 1} }}"
    assert control.refused(MODIFY, twice) == (
        "ALREADY_EXISTS",
        "value set P.vs: member 1 is given twice",
    )
    three = f"value_set_entry {{ value_set_id: $vs {member % 1} {member % 2} {member % 3} }}"
    assert control.refused(MODIFY, three) == (
        "RESOURCE_EXHAUSTED",
        "value set P.vs: 3 members for its size of 2",
    )


@pytest.mark.p4runtime("6.4.1-9 9.1.8-1 9.1.8-2 9.1.8-3")
def test_idle_timeouts() -> None:
    action = ir.Action("NoAction", [], [])
    hdr = var("k", Bits(8))
    t = table("I.t", [ir.Key("k", hdr, "exact")], [action], support_timeout=True)
    control = custom(program(tables=[t], actions=[action], externs=[]))
    assert control.info.tables[0].idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL
    entry = METERED % "idle_timeout_ns: 50"
    control.write(INSERT, entry)
    control.pipeline.switch.time = 30  # type: ignore[attr-defined]
    (found,) = control.read("table_entry { table_id: $t time_since_last_hit {} }")
    assert found.table_entry.time_since_last_hit.elapsed_ns == 30
    messages: list[object] = []
    control.pipeline.state.listener = messages.append
    assert control.service.tick(1000) == []
    control.pipeline.switch.time = 50  # type: ignore[attr-defined]
    control.service.tick(1000)
    ((stream, message),) = control.service.switch_message(messages[0], 1001)  # type: ignore[arg-type]
    notice = message.idle_timeout_notification
    assert (stream, notice.timestamp) == ("c", 1001)
    assert [e.idle_timeout_ns for e in notice.table_entry] == [50]


@pytest.mark.p4runtime("9.8-1")
def test_digest_entries(control: Control) -> None:
    from gradplane.switch.ir.types import Field, Struct

    learn = Struct("learn_t", (Field("mac", Bits(48)),))
    action = ir.Action(
        "I.learn", [], [ir.CallExtern(None, "digest", [], ["in", "in"], None, [learn])]
    )
    control = custom(program(actions=[action], tables=[], externs=[]))
    text = "digest_entry { digest_id: $learn_t config { max_timeout_ns: 5 max_list_size: 2 } }"
    assert control.refused(MODIFY, text) == (
        "NOT_FOUND",
        "digest learn_t is not enabled; INSERT enables it",
    )
    control.write(INSERT, text)
    assert control.refused(INSERT, text) == ("ALREADY_EXISTS", "digest learn_t is enabled")
    assert control.read("digest_entry {}") == [control.entity(text)]
    assert control.refused(MODIFY, text.replace(": 5", ": -5")) == (
        "INVALID_ARGUMENT",
        "digest learn_t: max_timeout_ns -5 is below 0",
    )
    control.write(DELETE, text)
    assert control.read("digest_entry {}") == []


@pytest.mark.parametrize("most", [0, 1, 200, 2**20, 2**64 - 1])
def test_packed_cells_are_the_messages_of_one_after_the_other(most):
    cells, random = range(0, 33), np.random.default_rng(1)
    packets, nbytes = random.integers(0, most, (2, 33), np.uint64, endpoint=True)
    packed = packed_cells.pack(0x1234567, cells, packets, nbytes)
    expected = p4r.ReadResponse()
    for i in cells:
        entry = expected.entities.add().counter_entry
        entry.counter_id = packed.counter_id
        entry.index.index = i
        entry.data.CopyFrom(show_counter(int(packets[i]), int(nbytes[i])))
        entry.index.SetInParent()
    assert p4r.ReadResponse.FromString(packed.data) == expected
