"""Traces: the events in a packet's processing, with text and JSON forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar

from gradplane.switch.interp.interpreter_values import Named, plain
from gradplane.switch.ir.types import Type
from gradplane.switch.source import NOWHERE, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """An event; `span`: its place in the source, or in the text of the architecture's packet path
    ("v1model/path.p4"); without a line for an architecture that has none."""

    kind: ClassVar[str] = "event"
    form: ClassVar[str] = ""
    span: Span = NOWHERE

    @property
    def place(self) -> str:
        """Its place in the source as text; empty where BMv2's JSON, for example, gives none."""
        return str(self.span) if self.span.line else ""

    def text(self) -> str:
        """Return the event as one line, without the place: `form` with the event's fields."""
        return self.form.format(self)

    def json(self) -> dict[str, Any]:
        """Return the event's fields, its kind, and its place as file:line:column."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"kind": self.kind, **fields, "span": self.place or None}


@dataclass(frozen=True, slots=True)
class Entered(TraceEvent):
    """A parser, a control or the traffic manager gets the packet."""

    kind = "enter"
    form = "== {0.block}"
    block: str


@dataclass(frozen=True, slots=True)
class StateEntered(TraceEvent):
    kind = "state"
    form = "state {0.state}"
    state: str


@dataclass(frozen=True, slots=True)
class Extracted(TraceEvent):
    """A header was extracted. `at`, `bits`: its place in the packet; `fields`: values by name, None
    for an element outside its stack."""

    kind = "extract"
    header: str
    at: int
    bits: int
    fields: dict[str, Any] | None

    def text(self) -> str:
        return f"extract {self.header} ({self.bits} bits at {self.at}): {fields_text(self.fields)}"


@dataclass(frozen=True, slots=True)
class Rejected(TraceEvent):
    kind = "reject"
    form = "parser error {0.error}"
    error: str


@dataclass(frozen=True, slots=True)
class Applied(TraceEvent):
    """A table was applied. `entry`: the matches of the entry that hit, as text; `handle`: the
    number by which commands know it; `chosen`: the member of the table's profile that runs, with
    its group and what the selector's hash is of, as text."""

    kind = "table"
    table: str
    keys: dict[str, int]
    hit: bool
    entry: str | None
    action: str
    params: dict[str, int]
    handle: int | None = None
    chosen: str | None = None

    def text(self) -> str:
        how = f"hit {self.entry}" if self.hit else "miss"
        chosen = f"; {self.chosen}" if self.chosen else ""
        action = f"{self.action}({fields_text(self.params)})"
        return f"table {self.table} ({fields_text(self.keys)}): {how}{chosen}; action {action}"


@dataclass(frozen=True, slots=True)
class Assigned(TraceEvent):
    kind = "assign"
    target: str
    value: Any

    def text(self) -> str:
        return f"{self.target} = {value_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Decided(TraceEvent):
    """An `if` or `switch` of the program was decided. `on`: its expression as text, in which a
    variable of the compiler's stands for calls; `value`: what that was."""

    kind = "branch"
    statement: str
    on: str
    value: Any

    def text(self) -> str:
        return f"{self.statement} ({self.on}): {value_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Called(TraceEvent):
    """A call of an extern. `args`: in arguments before it; `results`: out arguments after it."""

    kind = "call"
    name: str
    args: list[Any]
    results: list[Any]

    def text(self) -> str:
        results = f" -> {', '.join(map(value_text, self.results))}" if self.results else ""
        return f"{self.name}({', '.join(map(value_text, self.args))}){results}"


@dataclass(frozen=True, slots=True)
class Exited(TraceEvent):
    kind = "exit"
    form = "exit"


@dataclass(frozen=True, slots=True)
class Logged(TraceEvent):
    kind = "log"
    form = "log: {0.message}"
    message: str


@dataclass(frozen=True, slots=True)
class Copied(TraceEvent):
    """The packet was cloned, replicated, resubmitted or recirculated."""

    kind = "copy"
    form = "{0.what}"
    what: str


@dataclass(frozen=True, slots=True)
class Dropped(TraceEvent):
    kind = "drop"
    form = "dropped: {0.reason}"
    reason: str


_WAYS = {
    "mark_to_drop", "drop_packet", "send_to_port", "egress_spec", "ucast_egress_port",
    "egress_port", "drop_ctl", "drop", "mcast_grp", "mcast_grp_a", "multicast_group",
}  # fmt: skip


def _chooses_way(event: Assigned | Called) -> bool:
    """Return whether an event says where the packet goes, or that it is dropped."""
    name = event.target if isinstance(event, Assigned) else event.name
    return name.rpartition(".")[2] in _WAYS


OF_ONE_TEXT: dict[str, Callable[..., TraceEvent]] = {
    event.kind: event for event in (Entered, Rejected, Copied, Dropped)
}
"""The events that a packet's path notes with a text, by their kinds."""


@dataclass(frozen=True, slots=True)
class Queued(TraceEvent):
    """The packet waits in a queue of its port. `depth`: the packets that were in it."""

    kind = "queue"
    form = "in queue {0.priority} of port {0.port}, behind {0.depth} packets"
    port: int
    priority: int
    depth: int


@dataclass(frozen=True, slots=True)
class Sent(TraceEvent):
    kind = "send"
    port: int
    packet: bytes

    def text(self) -> str:
        return f"sent to port {self.port}, {len(self.packet)} bytes: {self.packet.hex()}"

    def json(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "port": self.port, "packet": self.packet.hex(),
            "span": self.place or None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything that `packet` from `port` caused, in order; `outputs`: (port, packet) each."""

    port: int
    packet: bytes
    events: list[TraceEvent]
    outputs: list[tuple[int, bytes]]

    def text(self) -> str:
        """Return a line for each event, with its place in the source at the end."""
        return "".join(f"{_line(event)}\n" for event in self.events)

    def why_nothing_left(self) -> str:
        """Return the reason, for a packet that caused none, and what the program had decided or
        looked up when it last chose the packet's way, or last of all where it chose none."""
        why, last, chosen = "kept by the switch", "", None
        for event in self.events:
            if isinstance(event, Decided):
                last = f", after {event.text()}" + (f" [{event.place}]" if event.place else "")
            elif isinstance(event, Applied):
                last = f", after table {event.table}: {'hit' if event.hit else 'miss'}"
                last += f"; action {event.action}"
            elif isinstance(event, Dropped | Rejected):
                why = event.text()
            elif isinstance(event, Assigned | Called) and _chooses_way(event):
                chosen = last
        return why + (last if chosen is None else chosen)

    def _repr_html_(self) -> str:
        """Return a table of the events and the packets sent, for notebooks."""
        rows = [
            f"<tr><th colspan=2 style='text-align: left'>{escape(event.text())}</th></tr>"
            if isinstance(event, Entered)
            else f"<tr><td style='text-align: left'>{escape(event.text())}</td>"
            f"<td>{escape(event.place)}</td></tr>"
            for event in self.events
        ]
        sent = ", ".join(f"{len(packet)} bytes to port {port}" for port, packet in self.outputs)
        return (
            f"<table><caption>{len(self.packet)} bytes from port {self.port}; sent:"
            f" {sent or 'nothing'}</caption>{''.join(rows)}</table>"
        )

    def json(self) -> dict[str, Any]:
        """Return an object for json.dumps; numbers beyond 2^53 stay so, packets are hexadecimal."""
        outputs = [{"port": port, "packet": packet.hex()} for port, packet in self.outputs]
        return {
            "port": self.port,
            "packet": self.packet.hex(),
            "events": [event.json() for event in self.events],
            "outputs": outputs,
        }


def _line(event: TraceEvent) -> str:
    indent = "" if isinstance(event, Entered) else "  "
    place = f"    [{event.place}]" if event.place else ""
    return f"{indent}{event.text()}{place}"


def value_text(value: Any) -> str:
    """Return the text of a plain value (interpreter_values.plain): hexadecimal from 10 on,
    an enum's member with its name."""
    match value:
        case bool():
            return str(value).lower()
        case Named(name=name):
            return f"{name} ({value_text(int(value))})"
        case int():
            return str(value) if value < 10 else hex(value)
        case dict():
            return f"{{{fields_text(value)}}}"
        case list() | tuple():
            return f"[{', '.join(map(value_text, value))}]"
        case None:
            return "invalid"
    return str(value)


def names_of(values: Sequence[Any]) -> list[str]:
    """Return the texts of values that are members of enums, or errors; empty for others."""
    return [value_text(value) if isinstance(value, Named) else "" for value in values]


def fields_text(fields: dict[str, Any] | None) -> str:
    if fields is None:  # an element outside its stack
        return "into nothing"
    return ", ".join(f"{name} {value_text(value)}" for name, value in fields.items())


# -- log_msg ------------------------------------------------------------------------------------


def log_message(form: str, kind: Type | None, value: Any) -> str:
    """Return the message: the values in the place of each {} of `form`, those left over at its end.

    `kind`: the type of the data, a value or a struct or list of them; None: without data.
    """
    if kind is None:
        return _formatted(form, [])
    found = plain(kind, value)
    if isinstance(found, dict):
        found = list(found.values())
    values = found if isinstance(found, list) else [found]
    return _formatted(form, [value_text(v) for v in values])


def _formatted(form: str, values: list[str]) -> str:
    pieces = form.split("{}")
    out = pieces[0]
    for i, piece in enumerate(pieces[1:]):
        out += (values[i] if i < len(values) else "{}") + piece
    return " ".join([out, *values[len(pieces) - 1 :]])
