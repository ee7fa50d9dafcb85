"""A device around the hand-made program: real state, and packets that leave as they came."""

from __future__ import annotations

import threading

from finsy.proto import U128, p4i, p4r
from google.protobuf import text_format
from hand_made_ir import program

from gradplane.switch.arch.registry import architecture
from gradplane.switch.control.store import Store
from gradplane.switch.ir import nodes as ir
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.device_config import Source
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.runtime.packet_buffers import Bytes, Ints, Sent, sent
from gradplane.switch.runtime.state import State
from gradplane.switch.source import CompileError, Diagnostic, Span

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


class EchoSwitch:
    """State of a program; a packet leaves through the port it came from."""

    cpu_port: int | None = 510

    def __init__(self, program: ir.Program) -> None:
        self.time = 0
        self.architecture = architecture(None, program)
        self.state = State(program, clock=lambda: self.time)
        self.lock = threading.RLock()
        self.store = Store(self.state, self.architecture, self.lock)

    def process(self, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        return [(port, packet)]

    def poll(self) -> list[tuple[int, bytes]]:
        return []

    def process_spans(self, ports: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        packets = [data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
        return sent((i, int(ports[i]), packet) for i, packet in enumerate(packets))


def compiled(source: Source) -> ir.Program:
    """Stand for the compiler: the text says which program is meant."""
    if source.text == "broken":
        raise CompileError([Diagnostic(Span("x.p4", 3, 5, 8), "no such thing")], {})
    given = program()
    if source.text == "without acl":
        given.tables = [t for t in given.tables if t.name != "MyIngress.acl"]
    return given


def device(loaded: bool = True) -> Device:
    made = Device(compiled, EchoSwitch, id=1)
    if loaded:
        made.load(program())
    return made


def service(loaded: bool = True) -> P4RuntimeService:
    """Return a service with controller "c" as the primary, election id 1."""
    made = P4RuntimeService(device(loaded))
    made.stream_message("c", announce(1))
    return made


def announce(election_id: int, role: str = "") -> p4r.StreamMessageRequest:
    update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(election_id))
    if role:
        update.role.name = role
    return p4r.StreamMessageRequest(arbitration=update)


def ids(info: p4i.P4Info) -> dict[str, int]:
    """Return alias -> id of tables, actions, ..."""
    return {
        o.preamble.alias: o.preamble.id
        for part in ("tables", "actions", "counters", "registers", "meters", "action_profiles",
                     "value_sets", "digests")
        for o in getattr(info, part)
    }  # fmt: skip


def entity(info: p4i.P4Info, text: str) -> p4r.Entity:
    """Parse an entity's text form, where $alias stands for an id."""
    for alias, number in sorted(ids(info).items(), key=lambda item: -len(item[0])):
        text = text.replace(f"${alias}", str(number))
    return text_format.Parse(text, p4r.Entity())


def request(
    updates: list[tuple[int, p4r.Entity]], atomicity: int = 0, election_id: int = 1
) -> p4r.WriteRequest:
    return p4r.WriteRequest(
        device_id=1,
        election_id=U128.encode(election_id),
        updates=[p4r.Update(type=kind, entity=e) for kind, e in updates],
        atomicity=atomicity,
    )


def read_all(made: P4RuntimeService, query: p4r.Entity) -> list[p4r.Entity]:
    answers = made.read(p4r.ReadRequest(device_id=1, entities=[query]))
    return [e for answer in answers for e in answer.entities]
