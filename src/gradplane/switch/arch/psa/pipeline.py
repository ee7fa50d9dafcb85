"""The Portable Switch Architecture: two pipelines and, between them, packet replication.

After the ingress deparser: clone, then drop or resubmit or multicast or unicast. After the egress
deparser: clone, then drop or recirculate or send. (PSA specification 1.2, section 6.) Both
deparsers run for each packet, dropped ones too: they fill in the metadata of clones.

What the specification leaves undefined is zero. Times are in microseconds. Every port number is a
port; packets sent to PSA_PORT_CPU go to the control plane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradplane.switch.arch.externs import ExternCompiler
from gradplane.switch.arch.metadata_fields import Metadata
from gradplane.switch.arch.model import Arrival, Model, Pass, control_of, error_codes, parser_of
from gradplane.switch.arch.psacheck import check
from gradplane.switch.arch.psaexterns import COMPILER
from gradplane.switch.arch.psapacket import (
    BROUGHT,
    EGRESS,
    INGRESS,
    PORT_CPU,
    PORT_RECIRCULATE,
    SESSION_TO_CPU,
    TIME_MASK,
    PacketPath,
    PsaPacket,
    pipelines,
    value_types,
)
from gradplane.switch.arch.psaprepare import prepare
from gradplane.switch.arch.user_externs import Implementations
from gradplane.switch.interp.blocks import Block, control_block, parser_block
from gradplane.switch.interp.frame_layout import Env, Frame
from gradplane.switch.interp.interpreter_values import maker
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.trace_events import Copied, Event, Rejected
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.replicas import CloneSession, Replica
from gradplane.switch.runtime.state import State
from gradplane.switch.source import Diagnostic

Values = dict[str, Any]  # by the names in psapacket.INGRESS and EGRESS


@dataclass(slots=True)
class _Departure:
    """A packet queued for egress; `meta` is what it brings from the pass before."""

    packet: bytes
    path: PacketPath
    replica: Replica
    class_of_service: int
    meta: Any
    passes: int


class PsaModel(Model["_Blocks"]):
    """A loaded PSA program."""

    cpu_port = PORT_CPU
    sessions = 1 << 16
    ports = 1 << 32
    externs = COMPILER

    def __init__(
        self, program: ir.Program, state: State, externs: Implementations | None = None
    ) -> None:
        super().__init__(program, state, externs)
        state.clone_sessions.setdefault(SESSION_TO_CPU, CloneSession([Replica(PORT_CPU)]))

    @staticmethod
    def load(program: ir.Program) -> list[Diagnostic]:
        return prepare(program) + check(program)

    def compiled(self, kind: Callable[..., Statements]) -> _Blocks:
        return _Blocks(self.program, self.state, kind, self.compiler)

    def new_pass(self, pipeline: _Blocks, events: list[Event] | None) -> _Pass:
        return _Pass(pipeline, events)

    @property
    def parser(self) -> ir.Parser:
        return parser_of(pipelines(self.program)[0], "ip")

    def parsed(self, arrival: Arrival) -> list[Any]:
        values = _Pass(self._plain, None).arrived(arrival)
        self._plain.call("ip", PsaPacket(arrival.packet), values)
        return [values[name] for name in INGRESS["ip"]]


class _Blocks:
    """The compiled blocks by name, and the makers of their values."""

    def __init__(
        self,
        program: ir.Program,
        state: State,
        kind: Callable[..., Statements],
        externs: ExternCompiler,
    ) -> None:
        self.state = state
        self.errors = program.errors
        compiler = kind(Frame(), state, error_codes(program), externs)
        ingress, egress = pipelines(program)
        self.blocks: dict[str, Block] = {}
        for package, names in ((ingress, INGRESS), (egress, EGRESS)):
            parser, *controls = names
            self.blocks[parser] = parser_block(parser_of(package, parser), compiler)
            for name in controls:
                self.blocks[name] = control_block(control_of(package, name), compiler)
        self.ingress = {n: maker(t) for n, t in value_types(ingress, INGRESS).items()}
        self.egress = {n: maker(t) for n, t in value_types(egress, EGRESS).items()}
        pairs = (("ingress", ingress, INGRESS), ("egress", egress, EGRESS))
        self.fields = {
            (pipeline, name): Metadata(t)
            for pipeline, package, blocks in pairs
            for name, t in value_types(package, blocks).items()
            if name.endswith(("istd", "ostd"))
        }
        self.env: Env = compiler.frame.new()

    def call(self, name: str, packet: PsaPacket, values: Values) -> Any:
        """Runs a block on its values."""
        env, block = self.env, self.blocks[name]
        names = INGRESS.get(name) or EGRESS[name]
        env[0] = packet
        for slot, value in zip(block.slots, names, strict=True):
            env[slot] = values[value]
        result = block.run(env)
        for slot, value in zip(block.slots, names, strict=True):
            values[value] = env[slot]
        return result


class _Pass(Pass[_Departure]):
    """One arrival's way through both pipelines."""

    def __init__(self, blocks: _Blocks, events: list[Event] | None) -> None:
        super().__init__(blocks.state, events)
        self.blocks = blocks

    def put(self, pipeline: str, values: Values, struct: str, **fields: int) -> None:
        self.blocks.fields[pipeline, struct].put(values[struct], **fields)

    def get(self, pipeline: str, values: Values, field: str) -> int:
        """A field of a pipeline's output metadata."""
        return self.blocks.fields[pipeline, "ostd"].get(values["ostd"], field)

    def now(self) -> int:
        return self.state.microseconds() & TIME_MASK

    def parse(self, block: str, packet: PsaPacket, values: Values) -> int:
        error: int = self.blocks.call(block, packet, values)
        if error:
            self.note(Rejected, self.blocks.errors[error])
        return error

    # -- ingress --------------------------------------------------------------------------------

    def ingress(self, arrival: Arrival) -> None:
        packet = PsaPacket(arrival.packet, self.events)
        values = self.arrived(arrival)
        came = {"ingress_port": arrival.port, "packet_path": arrival.kind}
        now = self.now()
        self.enter("ingress parser")
        error = self.parse("ip", packet, values)
        self.put("ingress", values, "istd", ingress_timestamp=now, parser_error=error, **came)
        self.put("ingress", values, "ostd", drop=True)
        self.enter("ingress")
        self.blocks.call("ig", packet, values)
        self.enter("ingress deparser")
        self.blocks.call("id", packet, values)
        for digest in packet.digests:
            self.state.tell(digest)
        self.after_ingress(arrival, packet, values)

    def arrived(self, arrival: Arrival) -> Values:
        """The values that parsing starts from."""
        values = {name: make() for name, make in self.blocks.ingress.items()}
        if arrival.meta is not None:
            values[BROUGHT[PacketPath(arrival.kind)]] = arrival.meta
        came = {"ingress_port": arrival.port, "packet_path": arrival.kind}
        self.put("ingress", values, "parser istd", **came)
        return values

    def after_ingress(self, arrival: Arrival, packet: PsaPacket, values: Values) -> None:
        if self.get("ingress", values, "clone"):
            session = self.get("ingress", values, "clone_session_id")
            meta = values["to clone_i2e"]
            self.clone(PacketPath.CLONE_I2E, session, arrival.packet, meta, arrival.passes)
        if self.get("ingress", values, "drop"):
            self.drop("ingress: drop is set")
        elif self.get("ingress", values, "resubmit"):
            self.note(Copied, "resubmitted")
            self.come_again(
                PacketPath.RESUBMIT, arrival.port, arrival.packet, values, arrival.passes
            )
        else:
            self.leave_ingress(packet.output(), values, arrival.passes)

    def leave_ingress(self, data: bytes, values: Values, passes: int) -> None:
        group = self.get("ingress", values, "multicast_group")
        path = PacketPath.NORMAL_MULTICAST if group else PacketPath.NORMAL_UNICAST
        port = self.get("ingress", values, "egress_port")
        replicas = self.members(group) if group else [Replica(port)]
        service, meta = self.get("ingress", values, "class_of_service"), values["to normal"]
        for replica in replicas:
            self.queue.append(_Departure(data, path, replica, service, meta, passes))

    # -- copies ---------------------------------------------------------------------------------

    def clone(self, path: PacketPath, number: int, data: bytes, meta: Any, passes: int) -> None:
        session = self.session(number, passes)
        if session is None:
            return
        data = data[: session.truncate] if session.truncate else data
        for replica in session.replicas:
            service = session.class_of_service
            self.queue.append(_Departure(data, path, replica, service, meta, passes + 1))

    def come_again(
        self, path: PacketPath, port: int, data: bytes, values: Values, passes: int
    ) -> None:
        meta = values[f"to {BROUGHT[path]}"]
        self.result.again.append(Arrival(port, data, path, meta, passes + 1))

    # -- egress ---------------------------------------------------------------------------------

    def egress(self, departure: _Departure) -> None:
        packet = PsaPacket(departure.packet, self.events)
        values = {name: make() for name, make in self.blocks.egress.items()}
        values[BROUGHT[departure.path]] = departure.meta
        port = departure.replica.port
        came = {"egress_port": port, "packet_path": departure.path}
        self.put("egress", values, "parser istd", **came)
        now = self.now()
        self.enter(f"egress parser, port {port}")
        error = self.parse("ep", packet, values)
        self.put(
            "egress",
            values,
            "istd",
            class_of_service=departure.class_of_service,
            instance=departure.replica.instance,
            egress_timestamp=now,
            parser_error=error,
            **came,
        )
        self.enter("egress")
        self.blocks.call("eg", packet, values)
        self.put("egress", values, "deparser istd", egress_port=port)
        self.enter("egress deparser")
        self.blocks.call("ed", packet, values)
        self.after_egress(departure, packet.output(), values)

    def after_egress(self, departure: _Departure, data: bytes, values: Values) -> None:
        port = departure.replica.port
        if self.get("egress", values, "clone"):
            session = self.get("egress", values, "clone_session_id")
            meta = values["to clone_e2e"]
            self.clone(PacketPath.CLONE_E2E, session, data, meta, departure.passes)
        if self.get("egress", values, "drop"):
            self.drop("egress: drop is set")
        elif port == PORT_RECIRCULATE:
            self.note(Copied, "recirculated")
            self.come_again(PacketPath.RECIRCULATE, port, data, values, departure.passes)
        else:
            self.send(port, data)
