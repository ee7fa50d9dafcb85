"""Large tables of every kind of match, on both engines, against trying the entries one by one."""

import random

import pytest

from gradplane.switch import Switch
from gradplane.switch.jit import table_layout
from gradplane.switch.runtime.entries import ActionData, Entry
from gradplane.switch.runtime.match_fields import Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.packet_buffers import pack

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header key_t { bit<32> a; bit<16> b; int<8> c; bit<128> d; bit<8> e; bit<16> found; }
struct headers_t { key_t k; }
struct meta_t { }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.k); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(bit<16> n) { h.k.found = n; }
    table t { key = { KEY } actions = { set; } default_action = set(0xffff); size = 100000; }
    apply { s.egress_spec = 1; t.apply(); }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
WIDTHS = {"h.k.a": 32, "h.k.b": 16, "h.k.c": 8, "h.k.d": 128, "h.k.e": 8}
KEYS = {
    "routes": "h.k.a : lpm;",
    "routes of IPv6": "h.k.d : lpm;",
    "routes by port": "h.k.b : exact; h.k.a : lpm; h.k.e : exact;",
    "short routes": "h.k.e : lpm;",
    "access list": "h.k.a : ternary; h.k.d : ternary; h.k.b : range; h.k.e : optional;",
    "signed ranges": "h.k.c : range;",
    "many ranges": "h.k.b : range; h.k.a : range; h.k.c : range;",
    "masks": "h.k.a : ternary;",
    "many masks": "h.k.a : ternary; h.k.d : ternary;",
    "a route and a mask": "h.k.a : lpm; h.k.d : ternary;",
    "exact": "h.k.a : exact; h.k.d : exact;",
}


class Case:
    """A table on both engines. Few values, so that entries overlap and are hit."""

    def __init__(self, keys: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.values = {n: [self.rng.getrandbits(w) for _ in range(12)] for n, w in WIDTHS.items()}
        self.switches = [
            Switch("lookups.p4", text=PROGRAM, defines={"KEY": keys}, engine=engine)
            for engine in ("interpreter", "jit")
        ]
        self.tables: list[MatchTable] = [s.table("t").state for s in self.switches]

    def value(self, name: str) -> int:
        """Return one of few values, or a neighbour of one."""
        value = self.rng.choice(self.values[name])
        if self.rng.random() < 0.3:
            value ^= 1 << self.rng.randrange(WIDTHS[name])
        return value

    def match(self, name: str, kind: str, width: int, signed: bool) -> Match:
        rng, value, full = self.rng, self.value(name), (1 << width) - 1
        match kind:
            case "exact" | "optional":
                return None if kind == "optional" and rng.random() < 0.4 else (value,)
            case "lpm":
                length = rng.choice([0, 1, width // 2, width - 1, width, rng.randrange(width)])
                return (value & (full ^ (full >> length)), length) if length else None
            case "ternary":
                some = rng.getrandbits(width) | rng.getrandbits(width)
                mask = rng.choice([0, full, full ^ 0xF, full & 0x0F0F0F0F, some])
                return (value & mask, mask) if mask else None
            case "range":
                half = (1 << width >> 1) if signed else 0
                low, high = sorted((value ^ half, self.value(name) ^ half))
                whole = rng.random() < 0.1 or (low, high) == (0, full)
                return None if whole else (low ^ half, high ^ half)
        raise AssertionError(kind)

    def insert(self) -> None:
        fields = self.tables[0].fields
        matches = tuple(self.match(f.name, f.kind, f.width, f.signed) for f in fields)
        priority = self.rng.randrange(1, 6) if self.tables[0].with_priority else 0
        if self.tables[0].find(matches, priority) is None:
            number = self.rng.randrange(60_000)
            for table in self.tables:
                table.insert(Entry(matches, ActionData(0, (number,)), priority))

    def delete(self) -> None:
        entries = list(self.tables[0].entries())
        if entries:
            gone = self.rng.choice(entries)
            for table in self.tables:
                table.delete(Entry(gone.matches, gone.action, gone.priority))

    def modify(self) -> None:
        entries = list(self.tables[0].entries())
        if entries:
            one, number = self.rng.choice(entries), self.rng.randrange(60_000)
            for table in self.tables:
                table.modify(Entry(one.matches, ActionData(0, (number,)), one.priority))

    def expected(self, key: dict[str, int]) -> int:
        """Look up by trying all entries."""
        best: tuple[object, ...] = ()
        found = 0xFFFF
        table = self.tables[0]
        for entry in table.entries():
            pairs = list(zip(table.fields, entry.matches, strict=True))
            if all(f.matches(m, key[f.name]) for f, m in pairs):
                lengths = tuple(m[1] if m else 0 for f, m in pairs if f.kind == "lpm")
                rank = (entry.priority, -entry.serial) if table.with_priority else lengths
                if not best or rank > best:
                    assert isinstance(entry.action, ActionData)
                    best, found = rank, entry.action.args[0]
        return found

    def check(self, count: int) -> None:
        keys = [{name: self.value(name) for name in WIDTHS} for _ in range(count)]
        heads = [b"".join(k[n].to_bytes(w // 8, "big") for n, w in WIDTHS.items()) for k in keys]
        found = [self.expected(key).to_bytes(2, "big") for key in keys]
        wanted = [head + number for head, number in zip(heads, found, strict=True)]
        packets = pack([1] * count, [head + b"\0\0" for head in heads])
        for switch in self.switches:
            _, data, _, _ = switch.process_buffer(*packets)
            assert data.tobytes() == b"".join(wanted)


@pytest.mark.parametrize("name", KEYS)
def test_what_is_found_is_the_best_that_matches(name: str) -> None:
    case = Case(KEYS[name], seed=len(name))
    case.check(20)
    for _ in range(4):
        for _ in range(60):
            case.insert()
        case.check(60)
        for _ in range(30):
            case.rng.choice((case.delete, case.modify, case.insert))()
        case.check(60)
    for table in case.tables:
        table.clear()
    case.check(20)
    case.insert()
    case.check(20)


def test_masks_that_differ_in_few_bytes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_layout, "GUARD_BYTES", 3)
    case = Case(KEYS["many masks"], seed=7)
    for _ in range(3):
        for _ in range(80):
            case.insert()
        for _ in range(40):
            case.delete()
        case.check(60)
