"""@entry_restriction and @action_restriction: p4-constraints' language, and what Write says."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import finsy
import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.constraints import INT, ConstraintError, Type, parse
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.status_errors import BatchError, RpcError
from gradplane.switch.p4runtime.write import write

KEYS = {
    "e": Type("exact", 8), "t": Type("ternary", 32), "l": Type("lpm", 32), "r": Type("range", 16),
    "o": Type("optional", 48), "hdr.flag": Type("exact", 1), "name": Type("exact"),
}  # fmt: skip
ENTRY: dict[str, Any] = {
    "e": 200, "t": (0x0A000001, 0xFFFFFFFF), "l": (0x0A000000, 8), "r": (10, 20), "o": (0, 0),
    "hdr.flag": 1, "::priority": 30, "name": int.from_bytes(b"vrf-1", "big"),
}  # fmt: skip


def holds(text: str, entry: dict[str, Any] = ENTRY) -> bool:
    return parse(text, "table t", KEYS, priority=True).violated(entry) is None


@pytest.mark.parametrize(
    "text",
    [
        "true", "e == 200", "e == 0xc8", "e == 0b11001000", "e == 0o310", "e == 0d200",
        "e == -56",  # as a bit<8>
        "e == 456", "e::value >= 200", "e < 201", "t == 0x0a000001", "t == ipv4('10.0.0.1')",
        "t::mask == -1", "t::value != 0 -> t::mask != 0", "l::prefix_length <= 24",
        "-l::prefix_length == -8", "l != 0x0a000000",  # a number stands for a prefix of 32 bits
        "r::low < r::high", "r != 10", "o::mask == 0", "o != mac('00:00:00:00:00:00')",
        "::priority < 0x7fffffff", "hdr.flag == true", "!(e == 1) && e != 2 || false",
        "false -> false", "true; e == 200;", "(e == 200) == true",
        "// a line\n e == 200 /* and\n more */ ; true",
        "name != 0",  # text, which is not empty
        "1 < 2", "ipv6('::1') == 1",
    ],
)  # fmt: skip
def test_constraints_that_hold(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    ["false", "e == 201", "t == 1", "l == 0x0a000000", "o::mask == -1", "true -> e == 1",
     "true; e == 1", "e != 200 || t::mask == 0", "::priority < 30", "hdr.flag == false"],
)  # fmt: skip
def test_constraints_that_do_not_hold(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("e == e == e", "column 8: == and == on one level: put one of them in parentheses"),
        ("true -> true -> true", "column 14: -> and -> on one level: put one of them in"),
        ("e", "column 1: expected bool, found exact of 8 bits"),
        ("e && true", "column 1: expected bool, found exact of 8 bits"),
        ("t < 3", "< has no meaning for ternary of 32 bits; compare its ::value or ::mask"),
        ("e == t", "exact of 8 bits and ternary of 32 bits cannot be compared"),
        ("t == o", "ternary of 32 bits and optional of 48 bits cannot be compared"),
        (
            "t::prefix_length == 1",
            "a match of kind ternary has no field prefix_length: value, mask",
        ),
        ("hdr.flog == 1", "hdr.flog is not known here; did you mean hdr.flag?"),
        ("\n e == ?", "line 2, column 7: '?' is not part of the language"),
        ("(e == 1", "column 8: a parenthesis is not closed"),
        ("e ==", "column 5: the constraint ends in the middle of an expression"),
        ("e == 1 t == 2", "column 8: expected an operator, found 't'"),
        ("t == ipv4('300.0.0.1')", "column 11: "),
        ("t == ipv4(3)", "ipv4() takes an address in single quotes"),
        ("::metadata == 3", "::metadata is not known here"),
    ],
)
def test_wrong_constraints(text: str, reason: str) -> None:
    with pytest.raises(ConstraintError) as error:
        parse(text, "table t", KEYS, priority=True)
    assert str(error.value).startswith("table t: its restriction, line ")
    assert reason in str(error.value)


NUMBERS = st.integers(0, 300)
_LOGIC = {"&&": lambda a, b: a and b, "||": lambda a, b: a or b, "->": lambda a, b: not a or b}


def expressions() -> st.SearchStrategy[tuple[str, bool]]:
    """Texts with parentheses everywhere, and their values."""
    compared = st.tuples(NUMBERS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), NUMBERS).map(
        lambda c: (f"{c[0]} {c[1]} {c[2]}", _COMPARE[c[1]](c[0], c[2]))
    )
    return st.recursive(
        compared,
        lambda inner: st.one_of(
            inner.map(lambda x: (f"!({x[0]})", not x[1])),
            st.tuples(inner, st.sampled_from(list(_LOGIC)), inner).map(
                lambda x: (f"({x[0][0]}) {x[1]} ({x[2][0]})", bool(_LOGIC[x[1]](x[0][1], x[2][1])))
            ),
        ),
    )


_COMPARE = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@given(expressions())
def test_logic(case: tuple[str, bool]) -> None:
    text, value = case
    assert (parse(text, "t", {"n": INT}).violated({}) is None) == value


TEXT = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<16> kind; bit<32> dst; }
struct H { h_t h; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    @action_restriction("port != 0 && port != 511")
    action forward(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    @entry_restriction("
        // Only IPv4 packets have such an address.
        dst::mask != 0 -> kind == 0x0800;
        ::priority < 1000;
    ")
    table acl {
        key = { h.h.kind : ternary @name("kind"); h.h.dst : ternary @name("dst"); }
        actions = { forward; drop; }
        default_action = drop();
    }
    apply { acl.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def device(text: str = TEXT, restricted: bool = True) -> Device:
    program = compile_program("acl.p4", text=text)
    made = Device(lambda source: program, Switch, restricted=restricted)
    made.load(program)
    return made


@pytest.fixture
def restricted() -> Iterator[Device]:
    yield device()


def refusal(made: Device, how: str, priority: int = 1, port: int | None = 1, **matches: Any) -> str:
    """Write an entry; return the error, empty if there is none."""
    assert made.pipeline is not None
    schema = finsy.P4Schema(made.pipeline.config.p4info)
    action = finsy.P4TableAction("forward", port=port) if port is not None else None
    entry = finsy.P4TableEntry(
        "acl", match=finsy.Match(**matches), action=action, priority=priority
    )
    entity = finsy.p4entity.encode_entities([entry], schema)[0]
    try:
        write(made.target, [p4r.Update(type=getattr(p4r.Update, how), entity=entity)])
    except BatchError as error:
        assert error.errors[0] is not None
        return str(error.errors[0])
    return ""


def test_entries_keep_to_the_restriction(restricted: Device) -> None:
    assert refusal(restricted, "INSERT", dst="10.0.0.1", kind=0x0800) == ""
    assert refusal(restricted, "INSERT", kind=0x86DD) == ""
    assert refusal(restricted, "INSERT", dst="10.0.0.1") == (
        "INVALID_ARGUMENT: table I.acl: the entry breaks its restriction:"
        " dst::mask != 0 -> kind == 0x0800"
    )
    assert refusal(restricted, "INSERT", priority=1000, kind=1) == (
        "INVALID_ARGUMENT: table I.acl: the entry breaks its restriction: ::priority < 1000"
    )
    assert refusal(restricted, "DELETE", kind=0x86DD) == ""


def test_actions_keep_to_theirs(restricted: Device) -> None:
    text = "INVALID_ARGUMENT: action I.forward breaks its restriction: port != 0 && port != 511"
    assert refusal(restricted, "INSERT", port=0, kind=1) == text
    assert refusal(restricted, "INSERT", port=2, kind=1) == ""
    assert refusal(restricted, "MODIFY", port=511, kind=1) == text
    assert restricted.pipeline is not None
    (entry,) = restricted.pipeline.state.tables["I.acl"].entries()
    assert entry.action.args == (2,)


NAMES = TEXT.replace(
    "header h_t {", '@p4runtime_translation("", string) type bit<32> name_t;\nheader h_t {', 1
).replace("bit<32> dst;", "name_t dst;", 1)


@pytest.mark.parametrize(
    ("match", "condition", "mask", "allowed"),
    [
        ("optional", "dst::mask != 0 -> kind == 0x0800", b"", False),
        ("optional", "dst::mask == -1", b"", True),
        ("optional", "dst == 0", b"", False),
        ("ternary", "dst::mask == 0 || dst::mask == -1", b"4294967295", True),
        ("ternary", "dst::mask == 0 || dst::mask == -1", b"1", False),
        ("ternary", "dst::mask == 1", b"1", True),
        ("ternary", "dst::value == 0", b"1", False),
    ],
)
def test_names_have_masks(match: str, condition: str, mask: bytes, allowed: bool) -> None:
    text = NAMES.replace("dst::mask != 0 -> kind == 0x0800", condition)
    made = device(text.replace("h.h.dst : ternary", f"h.h.dst : {match}"))
    assert made.pipeline is not None
    [table] = made.pipeline.catalog.p4info.tables
    entity = p4r.Entity(table_entry=p4r.TableEntry(table_id=table.preamble.id, priority=1))
    field = entity.table_entry.match.add(field_id=2)
    if match == "optional":
        field.optional.value = b"a"
    else:
        field.ternary.value, field.ternary.mask = b"a", mask  # the first name is the number 1
    drop = next(a for a in made.pipeline.catalog.p4info.actions if a.preamble.alias == "drop")
    entity.table_entry.action.action.action_id = drop.preamble.id
    try:
        write(made.target, [p4r.Update(type=p4r.Update.INSERT, entity=entity)])
    except BatchError as error:
        assert not allowed and "breaks its restriction" in str(error)
    else:
        assert allowed


def test_they_can_be_switched_off() -> None:
    assert refusal(device(restricted=False), "INSERT", port=0, dst="10.0.0.1") == ""


def test_a_wrong_restriction_is_refused_with_the_program() -> None:
    with pytest.raises(RpcError) as error:
        device(TEXT.replace("port != 0", "prot != 0"))
    assert error.value.message == (
        "action I.forward: its restriction, line 1, column 1: prot is not known here; did you mean"
        " port?; correct it, or start the switch with --no-restrictions"
    )


def test_saved_state_comes_back_whatever_the_restriction_says() -> None:
    made = device(restricted=False)
    assert refusal(made, "INSERT", port=0, kind=1) == ""
    state = made.save_state()
    made.restricted = True
    made.load_state(state)
    assert made.pipeline is not None
    assert len(list(made.pipeline.state.tables["I.acl"].entries())) == 1
    assert refusal(made, "INSERT", port=0, kind=2) != ""
