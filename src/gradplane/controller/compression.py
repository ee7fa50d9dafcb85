"""Control-plane names of `p4/tos_compress.p4` and `p4/tos_compress_tna.p4`; a switch's compression
as table entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradplane import codecs
from gradplane._lazy_names import LazyModule
from gradplane.controller.controller_errors import PlanError

if TYPE_CHECKING:
    import finsy
else:
    finsy = LazyModule("finsy")

Counters = Mapping[str, Mapping[int, Mapping[str, int]]]
"""Packets and bytes by counter and cell, without cells that are zero."""

HOST_PORTS = "TosIngress.host_ports"
TO_HOST_PORTS = "TosEgress.to_host_ports"
BOUNDS = "TosEgress.bounds"
FORMATS = "TosEgress.formats"

REASONS = (
    "to a host of the same switch",
    "not UDP",
    "IP options",
    "fragment",
    "lengths contradict each other",
    "not whole values",
    "no values",
    "too long",
    "bad IP checksum",
    "no bound",
    "unknown bound",
    "unknown format",
    "not shorter",
)
"""The reasons for which a marked packet passes uncompressed, in the order of counter `passed`."""
TAG_BITS = (0, 8, 16, 32)
"""Bits of a value of each tag class, without its tag; in the order of counter `tags`."""
_TAG_VECTORS = 4  # the cell of `tags` after the classes'
_SHIM_BYTES = 4


HEADER_BYTES = (0, 16)
"""The lengths of a message's header, which is never compressed."""


@dataclass(frozen=True)
class Bound:
    """An error bound: values to prefix/length change by less than 2^-k.

    Raises PlanError for another k.
    """

    prefix: str
    length: int
    k: int

    def __post_init__(self) -> None:
        if self.k not in codecs.ERROR_BOUNDS:
            allowed = ", ".join(map(str, codecs.ERROR_BOUNDS))
            raise PlanError(
                f"bound {self.k} for {self.prefix}/{self.length}: an error bound is 2^-k with k ="
                f" {allowed}"
            )


@dataclass(frozen=True)
class Format:
    """The format of messages to a UDP port: an uncompressed header, then float32 values.

    Raises PlanError for a header whose length is not in HEADER_BYTES.
    """

    udp_port: int
    header_bytes: int = 0
    little_endian: bool = False

    def __post_init__(self) -> None:
        if self.header_bytes not in HEADER_BYTES:
            raise PlanError(
                f"UDP port {self.udp_port}: a header of {self.header_bytes} bytes; a message has"
                f" {' or '.join(map(str, HEADER_BYTES))} bytes before its values"
            )


@dataclass(frozen=True)
class Compression:
    """The compression of a switch; without host ports it only forwards.

    Raises PlanError where one destination has two bounds, or one UDP port two formats.
    """

    host_ports: tuple[int, ...] = ()
    bounds: tuple[Bound, ...] = ()
    formats: tuple[Format, ...] = ()

    def __post_init__(self) -> None:
        bounds: dict[tuple[str, int], Bound] = {}
        for bound in self.bounds:
            other = bounds.setdefault((bound.prefix, bound.length), bound)
            if other != bound:
                raise PlanError(
                    f"{bound.prefix}/{bound.length} has the bounds 2^-{other.k} and 2^-{bound.k}:"
                    " give each destination one"
                )
        formats: dict[int, Format] = {}
        for form in self.formats:
            if formats.setdefault(form.udp_port, form) != form:
                raise PlanError(f"UDP port {form.udp_port} has two formats: give it one")


def entries(plan: Compression) -> Iterator[finsy.P4TableEntry]:
    """Yield bounds and formats first, so that packets are compressed when all is installed."""
    for bound in plan.bounds:
        yield bound_entry(bound)
    for form in plan.formats:
        yield _format_entry(form)
    for port in plan.host_ports:
        yield _port_entry(TO_HOST_PORTS, port)
        yield _port_entry(HOST_PORTS, port)


def bound_entry(bound: Bound) -> finsy.P4TableEntry:
    action = finsy.Action("TosEgress.set_bound", k=bound.k)
    return finsy.P4TableEntry(BOUNDS, match=_destination(bound.prefix, bound.length), action=action)


def no_bound_entry(prefix: str, length: int) -> finsy.P4TableEntry:
    """Return the entry to delete so that packets to prefix/length are not compressed."""
    return finsy.P4TableEntry(BOUNDS, match=_destination(prefix, length))


def _destination(prefix: str, length: int) -> finsy.Match:
    return finsy.Match({"hdr.ipv4.dst_addr": f"{prefix}/{length}"})


def _format_entry(form: Format) -> finsy.P4TableEntry:
    action = finsy.Action(
        "TosEgress.set_format",
        header_bytes=form.header_bytes,
        little_endian=int(form.little_endian),
    )
    match = finsy.Match({"hdr.udp.dst_port": form.udp_port})
    return finsy.P4TableEntry(FORMATS, match=match, action=action)


def _port_entry(table: str, port: int) -> finsy.P4TableEntry:
    block = table.partition(".")[0]
    action = finsy.Action(f"{block}.host")
    return finsy.P4TableEntry(table, match=finsy.Match(port=port), action=action)


def compresses(schema: finsy.P4Schema) -> bool:
    """Return True if the loaded program compresses marked packets."""
    return any(table.name == BOUNDS for table in schema.tables)


def statistics(counters: Counters) -> dict[str, Any]:
    """Return a switch's compression counters by name, from `Controller.counters()`.

    packets and bytes (from the Ethernet header on) that were compressed, bytes after that; the same
    for decompressed packets, in compressed form; marked packets that passed uncompressed, by
    reason; values of each tag class by their bits, and the ratio of all values' bytes before and
    after. On Tofino also, if there are any, the packets that were lost because too many others were
    between their passes.
    """
    tags = [_packets(counters, "tags", index) for index in range(_TAG_VECTORS + 1)]
    plain = 4 * sum(tags[:_TAG_VECTORS])
    packed = 2 * tags[_TAG_VECTORS] + sum(
        bits // 8 * count for bits, count in zip(TAG_BITS, tags, strict=False)
    )
    before = _traffic(counters, "compressed")
    after = before["bytes"] - plain + packed + _SHIM_BYTES * before["packets"]
    passed = {name: _packets(counters, "passed", i) for i, name in enumerate(REASONS)}
    overtaken = _packets(counters, "overtaken", 0)
    return {
        "compressed": before | {"bytes_after": after},
        "decompressed": _traffic(counters, "decompressed"),
        "passed": {reason: count for reason, count in passed.items() if count},
        "malformed": _packets(counters, "malformed", 0),
        "tags": {str(bits): count for bits, count in zip(TAG_BITS, tags, strict=False)},
        "ratio": plain / packed if packed else None,
        **({"overtaken": overtaken} if overtaken else {}),
    }


def _packets(counters: Counters, name: str, index: int) -> int:
    """Return the packets of a cell of the program's counters of this name, in all its controls."""
    return sum(cells[index]["packets"] for cells in _named(counters, name) if index in cells)


def _traffic(counters: Counters, name: str) -> dict[str, int]:
    """Return packets and bytes: of a counter's only cell, or of one that has a cell for each size.

    A pass on Tofino that knows what became of a packet has no longer all of its bytes to count.
    """
    found = {"packets": 0, "bytes": 0}
    for cells in _named(counters, name):
        for cell in cells.values():
            found = {unit: found[unit] + cell[unit] for unit in found}
    for cells in _named(counters, f"{name}_sizes"):
        for size, cell in cells.items():
            found["packets"] += cell["packets"]
            found["bytes"] += size * cell["packets"]
    return found


def _named(counters: Counters, name: str) -> Iterator[Mapping[int, Mapping[str, int]]]:
    for full, cells in counters.items():
        if full.startswith(("TosIngress.", "TosEgress.")) and full.rpartition(".")[2] == name:
            yield cells
