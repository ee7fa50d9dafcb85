"""Traces as simple_switch logs them, for people and scripts that read its log.

    [10:57:40.482] [bmv2] [D] [thread 8210] [7.0] [cxt 0] Processing packet received on port 1

That is: time, level (T: trace, D: debug, I: log_msg, E: parser errors), thread, packet, context and
message. Primitives show values in place of expressions. Lines of that switch on keys of `select`,
checksums, the deparser and its own parts (buffers, node names) have no counterpart here.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime

from gradplane.switch.interp.trace_events import (
    Applied,
    Assigned,
    Called,
    Copied,
    Decided,
    Dropped,
    Entered,
    Extracted,
    Logged,
    Rejected,
    Sent,
    StateEntered,
    Trace,
    TraceEvent,
    value_text,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import bit_width

Line = tuple[str, str]
"""Level and message."""

_ENDS = ("ingress", "egress")
_EGRESS = "egress, port "  # the trace's name for egress, before the port


class Bmv2Log:
    """Formats the traces of a program's packets, which it numbers. `trace_level`: with T lines."""

    def __init__(self, program: ir.Program, trace_level: bool) -> None:
        self._widths: dict[str, Mapping[str, int]] = {
            table.name: {key.name: bit_width(key.expr.type) or 0 for key in table.keys}
            for table in program.tables
        }
        self._trace_level = trace_level
        self._packets = 0

    def text(self, trace: Trace) -> str:
        """Return the lines of one packet."""
        head = f"[thread {threading.get_native_id()}] [{self._packets}.0] [cxt 0]"
        time = f"{datetime.now():%H:%M:%S.%f}"[:-3]
        self._packets += 1
        return "".join(
            f"[{time}] [bmv2] [{level}] {head} {message}\n"
            for level, message in self._lines(trace)
            if level != "T" or self._trace_level
        )

    def _lines(self, trace: Trace) -> Iterator[Line]:
        yield "D", f"Processing packet received on port {trace.port}"
        block = ""
        for event in trace.events:
            if isinstance(event, Entered | Sent | Dropped) and block:
                yield "D", f"{block}: end"
                block = ""
            if isinstance(event, Entered):
                if event.block.startswith(_EGRESS):
                    yield "D", f"Egress port is {event.block.removeprefix(_EGRESS)}"
                block = _block(event.block)
                yield "D", f"{block}: start"
            else:
                yield from self._event(event)
        if block:
            yield "D", f"{block}: end"

    def _event(self, event: TraceEvent) -> Iterator[Line]:
        match event:
            case StateEntered(state=state):
                yield "D", f"Parser 'parser' entering state '{state}'"
            case Extracted(header=header):
                yield "D", f"Extracting header '{header.partition('.')[2] or header}'"
            case Rejected(error=error):
                yield "E", f"Exception while parsing: {error}"
            case Applied():
                yield from self._applied(event)
            case Assigned(target=target, value=value):
                yield "T", f"{_place(event)}Primitive {target} = {value_text(value)}"
            case Decided(statement="if", on=on, value=value):
                yield "T", f'{_place(event)}Condition "{on}" is {value_text(value)}'
            case Called(name=name, args=args):
                yield "T", f"{_place(event)}Primitive {name}({', '.join(map(value_text, args))})"
            case Logged(message=message):
                yield "I", message
            case Dropped(reason=reason):
                yield "D", f"Dropping packet{_where_dropped(reason)}"
            case Sent(port=port, packet=packet):
                yield "D", f"Transmitting packet of size {len(packet)} out of port {port}"
            case Copied(what=what):
                yield "D", what[:1].upper() + what[1:]

    def _applied(self, event: Applied) -> Iterator[Line]:
        yield "T", f"Applying table '{event.table}'"
        widths = self._widths.get(event.table, {})
        key = "".join(
            f"* {name:20}: {value:0{2 * (-(-widths.get(name, 0) // 8))}x}\n"
            for name, value in event.keys.items()
        )
        yield "D", f"Looking up key:\n{key}"
        if chosen := re.match("group ([0-9]+), member ([0-9]+)", event.chosen or ""):
            yield "D", f"Choosing member {chosen[2]} from group {chosen[1]}"
        found = f"hit with handle {event.handle}" if event.hit else "miss"
        yield "D", f"Table '{event.table}': {found}"
        params = "".join(f"{value:x}," for value in event.params.values())
        yield "D", f"Action entry is {event.action} - {params}"
        yield "T", f"Action {event.action}"


def _block(name: str) -> str:
    name = name.partition(",")[0]
    kind = {"parser": "Parser", "deparser": "Deparser"}.get(name, "Pipeline")
    return f"{kind} '{name}'"


def _where_dropped(reason: str) -> str:
    """Return the rest of the line on a dropped packet: simple_switch's words, and the reason."""
    block, colon, why = reason.partition(": ")
    return f" at the end of {block} ({why})" if colon and block in _ENDS else f" ({reason})"


def _place(event: TraceEvent) -> str:
    return f"{event.span.file}({event.span.line}) " if event.span.line else ""
