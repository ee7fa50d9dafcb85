"""Measure what parts of a P4 program cost: python benchmarks/program_costs.py.

Each line is a v1model program with one part more than the first, in memory on one core, in
processor time (Switch.process_buffer): what the part adds to a packet, in ns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gradplane.switch import Switch
from gradplane.switch.packet_rates import in_batches

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header link_t {{ bit<48> dst; bit<48> src; bit<16> type; }}
header net_t {{ bit<32> a; bit<32> b; bit<32> c; bit<16> d; bit<16> sum; bit<32> e; }}
struct headers_t {{ link_t link; net_t net; }}
struct metadata_t {{ @field_list(1) bit<8> times; bit<32> x; }}
parser Take(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {{
    state start {{ p.extract(h.link); {parser} transition accept; }}
}}
control Verify(inout headers_t h, inout metadata_t m) {{ apply {{ }} }}
control In(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{
    {declared}
    apply {{ s.egress_spec = 2; {ingress} }}
}}
control Out(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{
    apply {{ {egress} }}
}}
control Compute(inout headers_t h, inout metadata_t m) {{ apply {{ {checksum} }} }}
control Give(packet_out p, in headers_t h) {{ apply {{ p.emit(h); }} }}
V1Switch(Take(), Verify(), In(), Out(), Compute(), Give()) main;
"""
TABLE = """action to(bit<9> port) {{ s.egress_spec = port; }}
    table t {{ key = {{ h.link.{key}; }} actions = {{ to; NoAction; }} size = {size}; }}"""
PARTS = ("parser", "declared", "ingress", "egress", "checksum")


class Part(NamedTuple):
    """A part of a program. text: by PARTS; entries: adds them; size: bytes of the packets, which
    have so many source addresses."""

    name: str
    text: dict[str, str] = {}
    entries: Callable[[Switch], None] = lambda switch: None
    size: int = 64
    keys: int = 100


def table(kind: str, entries: int) -> dict[str, str]:
    key = "src: exact" if kind == "exact" else f"dst: {kind}"
    return {"declared": TABLE.format(key=key, size=2 * entries), "ingress": "t.apply();"}


def exact(count: int) -> Callable[[Switch], None]:
    def add(switch: Switch) -> None:
        for number in range(count):
            switch.table("t").add({"h.link.src": number}, "to", {"port": 2})

    return add


def prefixes(count: int) -> Callable[[Switch], None]:
    def add(switch: Switch) -> None:
        for number in range(count):
            match = {"h.link.dst": (number << 24, 24)}
            switch.table("t").add(match, "to", {"port": 2})

    return add


def ternary(count: int) -> Callable[[Switch], None]:
    def add(switch: Switch) -> None:
        for number in range(count):
            match = {"h.link.dst": (number << 8, 0xFFFF00 | number << 24)}
            switch.table("t").add(match, "to", {"port": 2}, priority=number + 1)

    return add


PACKETS = 1 << 12
CELLS = "register<bit<32>>(1024) r; bit<32> v;"
CSUM = "HashAlgorithm.csum16"
CELL = "(bit<32>) h.link.dst[33:24]"
FIELDS = "{ h.net.a, h.net.b, h.net.c, h.net.d, h.net.e }"
NET = "p.extract(h.net);"
ALL = [
    Part("a header of 14 bytes, port 2 (64 bytes)"),
    Part("1,400 bytes more, of payload", size=1464),
    Part("a header of 20 bytes more", {"parser": NET}),
    Part("a checksum over it", {
        "parser": NET, "checksum": f"update_checksum(true, {FIELDS}, h.net.sum, {CSUM});",
    }),
    Part("a CRC-32 over it", {
        "parser": NET, "ingress": f"hash(m.x, HashAlgorithm.crc32, 32w0, {FIELDS}, 32w1024);",
    }),
    Part("an exact table, 100 entries", table("exact", 100), exact(100)),
    Part("the same, 100,000 entries", table("exact", 100_000), exact(100_000), keys=100_000),
    Part("a table of prefixes, 10,000 of /24", table("lpm", 10_000), prefixes(10_000)),
    Part("a ternary table, 10 entries", table("ternary", 10), ternary(10)),
    Part("the same, 1,000 of 1,000 masks", table("ternary", 1000), ternary(1000)),
    Part("a counter", {
        "declared": "counter(1024, CounterType.packets_and_bytes) n;",
        "ingress": f"n.count({CELL});",
    }),
    Part("a register read, added to, written", {
        "declared": CELLS,
        "ingress": f"r.read(v, {CELL}); r.write({CELL}, v + 1);",
    }),
    Part("a meter", {
        "declared": "meter(1024, MeterType.bytes) k;",
        "ingress": f"k.execute_meter({CELL}, m.x);",
    }),
    Part("a random number", {"ingress": "random(m.x, 0, 1000);"}),
    Part("a clone to a second port", {
        "ingress": "clone(CloneType.I2E, 5);",
    }, lambda switch: switch.clone_session(5, [3])),
    Part("multicast to 4 ports instead of one", {
        "ingress": "s.mcast_grp = 1;",
    }, lambda switch: switch.multicast(1, [1, 2, 3, 4])),
    Part("a second pass, by recirculation", {
        "egress": "if (m.times == 0) { m.times = 1; recirculate_preserving_field_list(1); }",
    }),
    Part("a digest to the controller", {"ingress": "digest<bit<48>>(1, h.link.src);"}),
]  # fmt: skip


def ns(part: Part, folder: Path) -> float:
    """Return the ns of a packet of the program with a part."""
    file = folder / "part.p4"
    file.write_text(PROGRAM.format(**{name: part.text.get(name, "") for name in PARTS}))
    switch = Switch(file)
    part.entries(switch)
    packets = [
        (1, (n % 1000 << 24).to_bytes(6, "big") + source.to_bytes(6, "big") + bytes(part.size - 12))
        for n in range(PACKETS)
        for source in [n * 7919 % part.keys]
    ]
    return in_batches(switch, packets)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ns(ALL[0], Path(folder))  # the process gets the memory that all use
        first = ns(ALL[0], Path(folder))
        print(f"{ALL[0].name:44}{first:8.1f} ns")
        for part in ALL[1:]:
            print(f"{part.name:44}{ns(part, Path(folder)) - first:+8.1f}", flush=True)


if __name__ == "__main__":
    main()
