"""Tables: what matches, who wins, what is refused and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Annotation, Bits, Type
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData, Entry, GroupRef, MemberRef, OneShot
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.profiles import ActionProfile, Weighted

B8 = Bits(8)


def var(name: str, t: Type, id: int = 0) -> ir.Var:
    return ir.Var(t, name, id)


def key(name: str, kind: str, t: Type = B8) -> ir.Key:
    return ir.Key(name, var(name, t), kind)


ACTIONS = [
    ir.TableAction(ir.Action("I.set", [var("value", Bits(8))], [])),
    ir.TableAction(ir.Action("I.drop", [], [])),
    ir.TableAction(ir.Action("I.miss", [], []), (Annotation("defaultonly"),)),
    ir.TableAction(ir.Action("I.entry", [], []), (Annotation("tableonly"),)),
    ir.TableAction(ir.Action("I.move", [var("by", Bits(8, True))], [])),
]


def table(keys: list[ir.Key], **options: Any) -> MatchTable:
    defaults: dict[str, Any] = {
        "name": "I.t", "keys": keys, "key_setup": [], "actions": ACTIONS,
        "default": ir.ActionCall(1, []), "const_default": False, "entries": [],
        "const_entries": False, "size": 1024,
    }  # fmt: skip
    return MatchTable(ir.Table(**{**defaults, **options}))


def entry(*matches: Match, value: int = 0, priority: int = 0) -> Entry:
    return Entry(matches, ActionData(0, (value,)), priority)


def found(t: MatchTable, *values: int) -> int | None:
    hit = t.lookup(values)
    return None if hit is None else hit.action.args[0]


def refused(code: str, message: str, function: Any, *args: Any) -> None:
    with pytest.raises(TableError) as caught:
        function(*args)
    assert (caught.value.code, str(caught.value)) == (code, message)


# -- who wins -----------------------------------------------------------------------------------


def test_exact() -> None:
    t = table([key("a", "exact"), key("b", "exact")])
    t.insert(entry((1,), (2,), value=7))
    assert found(t, 1, 2) == 7
    assert found(t, 2, 1) is None


def test_the_longest_prefix_wins_whatever_the_order() -> None:
    t = table([key("dst", "lpm", Bits(32))])
    t.insert(entry((0x0A000100, 24), value=24))
    t.insert(entry(None, value=0))
    t.insert(entry((0x0A000000, 8), value=8))
    assert [found(t, a) for a in (0x0A000105, 0x0A7F0001, 0x0B000000)] == [24, 8, 0]
    t.delete(entry((0x0A000100, 24)))
    assert found(t, 0x0A000105) == 8


def test_lpm_beside_an_exact_field() -> None:
    t = table([key("vrf", "exact"), key("dst", "lpm")])
    t.insert(entry((1,), (0x80, 1), value=1))
    t.insert(entry((2,), (0x80, 4), value=2))
    assert [found(t, v, 0x8F) for v in (1, 2, 3)] == [1, 2, None]


def test_the_larger_priority_wins_and_among_equals_the_older() -> None:
    t = table([key("a", "ternary")])
    t.insert(entry((0x10, 0xF0), value=1, priority=1))
    t.insert(entry((0x01, 0x0F), value=2, priority=9))
    t.insert(entry(None, value=3, priority=1))
    assert [found(t, a) for a in (0x11, 0x10, 0x22)] == [2, 1, 3]


def test_an_entry_that_is_put_back_has_its_old_place_among_equals() -> None:
    t = table([key("a", "ternary")])
    first, second = entry((0, 1), value=1, priority=5), entry((0, 2), value=2, priority=5)
    t.insert(first)
    t.insert(second)
    t.delete(first)
    assert found(t, 0) == 2
    t.restore(first)
    assert found(t, 0) == 1


def test_ranges_are_closed_and_signed_ones_go_below_zero() -> None:
    t = table([key("a", "range"), key("b", "range", Bits(8, True))])
    t.insert(entry((10, 20), (0xFE, 3), value=1, priority=1))  # b from -2 to 3
    hits = [found(t, a, b) for a in (9, 10, 20, 21) for b in (0xFD, 0xFE, 3, 4)]
    assert hits == [None] * 5 + [1, 1, None] + [None, 1, 1, None] + [None] * 4


def test_optional() -> None:
    t = table([key("a", "optional"), key("b", "exact")])
    t.insert(entry((5,), (1,), value=1, priority=2))
    t.insert(entry(None, (1,), value=2, priority=1))
    assert [found(t, a, 1) for a in (5, 6)] == [1, 2]


KINDS = ["exact", "lpm", "ternary", "range", "optional"]


@st.composite
def matches(draw: Any, kind: str) -> Match:
    """Return a match on 4 bits."""
    nibble = st.integers(0, 15)
    value = draw(nibble)
    if kind != "exact" and draw(st.integers(0, 3)) == 0:
        return None
    match kind:
        case "lpm":
            length = draw(st.integers(1, 4))
            return (value & ~(15 >> length), length)
        case "ternary":
            mask = draw(st.integers(1, 15))
            return (value & mask, mask)
        case "range":
            low, high = sorted((value, draw(nibble)))
            return None if (low, high) == (0, 15) else (low, high)
    return (value,)


def covers(kind: str, match: Match, value: int) -> bool:
    if match is None:
        return True
    match kind:
        case "lpm":
            return value >> (4 - match[1]) == match[0] >> (4 - match[1])
        case "ternary":
            return value & match[1] == match[0]
        case "range":
            return match[0] <= value <= match[1]
    return value == match[0]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_lookup_agrees_with_trying_every_entry(data: Any) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    t = table([key(f"k{i}", kind, Bits(4)) for i, kind in enumerate(kinds)])
    kept: list[Entry] = []
    for i in range(data.draw(st.integers(0, 12))):
        ms = tuple(data.draw(matches(kind)) for kind in kinds)
        priority = data.draw(st.integers(1, 4)) if t.with_priority else 0
        if t.find(ms, priority) is None:
            kept.append(entry(*ms, value=i, priority=priority))
            t.insert(kept[-1])
    for gone in data.draw(st.lists(st.sampled_from(kept), unique_by=id)) if kept else []:
        t.delete(entry(*gone.matches, priority=gone.priority))
        kept.remove(gone)
    for _ in range(20):
        values = tuple(data.draw(st.integers(0, 15)) for _ in kinds)
        fitting = [
            e for e in kept
            if all(covers(k, m, v) for k, m, v in zip(kinds, e.matches, values, strict=True))
        ]  # fmt: skip
        lengths = {e.serial: [m[1] if m else 0 for k, m in zip(kinds, e.matches, strict=True)
                              if k == "lpm"] for e in fitting}  # fmt: skip
        best = min(
            fitting,
            key=lambda e: (-e.priority, e.serial) if t.with_priority
            else ([-x for x in lengths[e.serial]], e.serial),
            default=None,
        )  # fmt: skip
        assert t.lookup(values) is best


# -- the source's entries -----------------------------------------------------------------------


def number(value: int, t: Type = B8) -> ir.Const:
    return ir.Const(t, value)


def source(
    *matches: ir.Match, value: int, priority: int | None = None, const: bool = True
) -> ir.Entry:
    return ir.Entry(list(matches), ir.ActionCall(0, [value]), priority, const)


def test_source_entries_match_in_their_order() -> None:
    t = table(
        [key("a", "ternary"), key("b", "range")],
        entries=[
            source(ir.MatchMask(number(0xF5), number(0x0F)), ir.MatchAny(), value=1),
            source(ir.MatchValue(number(0x15)), ir.MatchRange(number(2), number(4)), value=2),
            source(ir.MatchAny(), value=3),
        ],
        const_entries=True,
    )
    assert [e.priority for e in t.entries()] == [3, 2, 1]
    assert [found(t, 0x15, 3), found(t, 0x16, 3)] == [1, 3]


def test_source_priorities_fill_up_and_may_count_downwards() -> None:
    written = [None, 20, None]

    def entries() -> list[ir.Entry]:
        return [
            source(ir.MatchValue(number(i)), value=i, priority=p) for i, p in enumerate(written)
        ]

    t = table([key("a", "ternary")], entries=entries())
    assert [e.priority for e in t.entries()] == [3, 20, 19]
    t = table([key("a", "ternary")], entries=entries(), largest_priority_wins=False)
    assert [e.priority for e in t.entries()] == [21, 2, 1]


def test_source_entries_of_every_kind() -> None:
    t = table([key("a", "exact"), key("b", "lpm"), key("c", "exact", Bits(8, True))], entries=[
        source(ir.MatchValue(number(1)), ir.MatchMask(number(0xC1), number(0xC0)),
               ir.MatchValue(number(-1, Bits(8, True))), value=1),
        source(ir.MatchValue(number(1)), ir.MatchValue(number(0xC1)),
               ir.MatchValue(number(-1, Bits(8, True))), value=2),
    ])  # fmt: skip
    assert [found(t, 1, b, 0xFF) for b in (0xC0, 0xC1, 0x41)] == [1, 2, None]


def test_const_entries_are_left_alone() -> None:
    fixed, loose = ir.MatchValue(number(1)), ir.MatchValue(number(2))
    t = table([key("a", "exact")], const_entries=True, entries=[source(fixed, value=1)])
    message = "table I.t: its entries are const in the source"
    refused("PERMISSION_DENIED", message, t.insert, entry((2,)))
    refused("PERMISSION_DENIED", message, t.delete, entry((1,)))

    t = table([key("a", "exact")],
              entries=[source(fixed, value=1), source(loose, value=2, const=False)])  # fmt: skip
    refused("PERMISSION_DENIED", "table I.t: its entry for a 0x1 is const in the source",
            t.modify, entry((1,)))  # fmt: skip
    t.clear()
    assert [e.matches for e in t.entries()] == [((1,),)]


# -- what is refused ----------------------------------------------------------------------------


def test_refusals_name_table_field_and_limits() -> None:
    t = table([key("h.a", "exact"), key("h.b", "lpm"), key("h.c", "ternary")], size=2)
    ok = entry((1,), (0x80, 1), (3, 3), priority=5)
    t.insert(ok)
    invalid = "INVALID_ARGUMENT"
    cases = [
        ("ALREADY_EXISTS", "table I.t: it has an entry for h.a 0x1, h.b 0x80/1, "
         "h.c 0x3 &&& 0x3, priority 5", entry((1,), (0x80, 1), (3, 3), priority=5)),
        (invalid, "table I.t: field h.a: value 256 does not fit 8 bits (0 to 255)",
         entry((256,), None, None, priority=1)),
        (invalid, "table I.t: field h.a: an exact match needs a value",
         entry(None, None, None, priority=1)),
        (invalid, "table I.t: field h.b: prefix length 9 is not within 0 to 8",
         entry((1,), (1, 9), None, priority=1)),
        (invalid, "table I.t: field h.b: value 0x81 has bits set beyond its prefix of 1 bits",
         entry((1,), (0x81, 1), None, priority=1)),
        (invalid, "table I.t: field h.c: value 0x4 has bits set outside its mask 0x3",
         entry((1,), None, (4, 3), priority=1)),
        (invalid, "table I.t: field h.b: (1,) is not (value, prefix length), which kind lpm takes",
         entry((1,), (1,), None, priority=1)),
        (invalid, "table I.t: 1 matches given for its 3 fields (h.a, h.b, h.c)",
         entry((1,), priority=1)),
        (invalid, "table I.t: ternary, range and optional fields need a priority of 1 to "
         "2147483647, not 0", entry((1,), None, None)),
    ]  # fmt: skip
    for code, message, bad in cases:
        refused(code, message, t.insert, bad)
    t.insert(entry((2,), None, None, priority=1))
    refused("RESOURCE_EXHAUSTED", "table I.t: all 2 entries are in use",
            t.insert, entry((3,), None, None, priority=1))  # fmt: skip
    refused("NOT_FOUND", "table I.t: it has no entry for h.a 0x9, h.b any, h.c any, priority 1",
            t.delete, entry((9,), None, None, priority=1))  # fmt: skip
    assert list(t.entries())[0] is ok and len(t) == 2


def test_refusals_of_actions() -> None:
    t = table([key("a", "exact")])

    def insert(data: Any) -> None:
        t.insert(Entry(((1,),), data))

    invalid, denied = "INVALID_ARGUMENT", "PERMISSION_DENIED"
    refused(invalid, "table I.t: no action 7; its actions: I.set, I.drop, I.miss, I.entry, I.move",
            insert, ActionData(7))  # fmt: skip
    refused(invalid, "table I.t: action I.set takes 1 parameters (value), not 0",
            insert, ActionData(0))  # fmt: skip
    refused(invalid, "table I.t: action I.set: parameter value: value 256 does not fit bit<8> "
            "(0 to 255)", insert, ActionData(0, (256,)))  # fmt: skip
    refused(invalid, "table I.t: action I.move: parameter by: value 128 does not fit int<8> "
            "(-128 to 127)", insert, ActionData(4, (128,)))  # fmt: skip
    refused(denied, "table I.t: action I.miss is @defaultonly: it cannot be an entry's action",
            insert, ActionData(2))  # fmt: skip
    refused(denied, "table I.t: action I.entry is @tableonly: it cannot be the default action",
            t.set_default, ActionData(3))  # fmt: skip
    refused(invalid, "table I.t: it has no action profile: give an action", insert, MemberRef(1))
    refused(invalid, "table I.t: priority 3 given, but exact and lpm fields take none",
            t.insert, entry((1,), priority=3))  # fmt: skip


def test_a_table_without_key_takes_only_a_default() -> None:
    t = table([])
    assert t.lookup(()) is None
    refused("INVALID_ARGUMENT", "table I.t: it has no key, so it takes no entries",
            t.insert, entry())  # fmt: skip
    t.set_default(ActionData(0, (9,)))
    assert t.default == ActionData(0, (9,))
    t.set_default(None)
    assert t.default == ActionData(1)
    t = table([], const_default=True)
    refused("PERMISSION_DENIED", "table I.t: its default action is const in the source",
            t.set_default, ActionData(0, (9,)))  # fmt: skip


def test_modify_keeps_the_counter() -> None:
    t = table([key("a", "exact")])
    t.insert(entry((1,), value=1))
    hit = t.lookup((1,))
    assert hit is not None
    hit.counter.add(100)
    t.modify(entry((1,), value=2))
    assert (found(t, 1), hit.counter.packets, hit.counter.bytes) == (2, 1, 100)


# -- profiles -----------------------------------------------------------------------------------


def selector_table() -> tuple[MatchTable, ActionProfile]:
    profile = ActionProfile("I.ap", 3, "crc16", 14)
    plain = table([key("a", "exact"), key("b", "selector")])
    return MatchTable(plain.table, profile), profile


def test_groups_spread_by_weight() -> None:
    t, profile = selector_table()
    for member in (1, 2):
        profile.add_member(member, ActionData(0, (member,)))
    profile.add_group(7, [Weighted(1), Weighted(2, 2)])
    t.insert(Entry(((1,),), GroupRef(7)))
    hit = t.lookup((1,))
    assert hit is not None
    assert [t.resolve(hit.action, i).args[0] for i in range(6)] == [1, 2, 2, 1, 2, 2]
    profile.modify_group(7, [])
    assert t.resolve(hit.action, 0) == t.default


def test_members_whose_port_is_down_are_left_out() -> None:
    t, profile = selector_table()
    for member in (1, 2):
        profile.add_member(member, ActionData(0, (member,)))
    profile.add_group(7, [Weighted(1, 1, b"\1"), Weighted(2, 1, b"\2")])
    profile.links.set(1, up=False)
    assert {t.resolve(GroupRef(7), i).args[0] for i in range(4)} == {2}
    shot = OneShot(((ActionData(0, (1,)), 3, b"\0\1"), (ActionData(0, (2,)), 1, b"")))
    assert {t.resolve(shot, i).args[0] for i in range(4)} == {2}
    profile.links.set(2, up=False)
    assert t.resolve(GroupRef(7)) == t.for_empty_group
    profile.links.set(1, up=True)
    profile.links.set(2, up=True)
    assert {t.resolve(GroupRef(7), i).args[0] for i in range(4)} == {1, 2}


def test_older_members_of_a_group_come_first() -> None:
    """As in BMv2, whatever their order in the group: a hash means the same member in both."""
    _, profile = selector_table()
    for member in (5, 2, 9):
        profile.add_member(member, ActionData(0, (member,)))
    profile.add_group(7, [Weighted(9), Weighted(2), Weighted(5, 2)])
    assert [choice.args for choice in profile.choices(GroupRef(7))] == [(5,), (5,), (2,), (9,)]


def test_one_shot_groups() -> None:
    t, _ = selector_table()
    shot = OneShot(((ActionData(0, (1,)), 1, b""), (ActionData(0, (2,)), 1, b"")))
    t.insert(Entry(((1,),), shot))
    assert [t.resolve(shot, i).args[0] for i in range(3)] == [1, 2, 1]


def test_refusals_of_profiles() -> None:
    t, profile = selector_table()
    where = "action profile I.ap"
    refused("INVALID_ARGUMENT", "table I.t: its actions are those of I.ap: give a member or a "
            "group (member=, group=; table_indirect_add, table_indirect_add_with_group)",
            t.insert, entry((1,)))  # fmt: skip
    refused("NOT_FOUND", f"{where}: no member 5; members: none",
            t.insert, Entry(((1,),), MemberRef(5)))  # fmt: skip
    profile.add_member(1, ActionData(1))
    refused("ALREADY_EXISTS", f"{where}: member 1 exists", profile.add_member, 1, ActionData(1))
    refused("NOT_FOUND", f"{where}: no member 9; members: 1",
            profile.add_group, 1, [Weighted(9)])  # fmt: skip
    refused("INVALID_ARGUMENT", f"{where}: member 1 has weight 0, below 1",
            profile.add_group, 1, [Weighted(1, 0)])  # fmt: skip
    refused("RESOURCE_EXHAUSTED", f"{where}: 2 members in a group of at most 1",
            profile.add_group, 1, [Weighted(1), Weighted(1)], 1)  # fmt: skip
    profile.add_group(1, [Weighted(1)])
    refused("FAILED_PRECONDITION", f"{where}: member 1 is in group 1", profile.delete_member, 1)
    refused("NOT_FOUND", f"{where}: no group 2; groups: 1", profile.delete_group, 2)
    plain = ActionProfile("I.ap", 1)
    MatchTable(t.table, plain)
    refused("INVALID_ARGUMENT", f"{where}: it is not a selector, so it has no groups",
            plain.add_group, 1, [])  # fmt: skip
    plain.add_member(1, ActionData(1))
    refused("RESOURCE_EXHAUSTED", f"{where}: all 1 members are in use",
            plain.add_member, 2, ActionData(1))  # fmt: skip
