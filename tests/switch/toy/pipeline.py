"""A packet's path through the toy: parser, control, deparser, out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradplane.switch.arch.blocks import Blocks, Layout
from gradplane.switch.arch.native_blocks import NativeBlocks
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.trace_events import TraceEvent
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit import native_vectors
from gradplane.switch.jit.entry_points import ARRIVE
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.externs import Externs
from gradplane.switch.jit.traffic_manager import Traffic
from gradplane.switch.machine.model import Model, Pass, SwitchPacket
from gradplane.switch.runtime.packet_passes import Arrival

PIPELINE = Layout(
    {"parse": ("headers", "meta"), "work": ("headers", "meta"), "deparse": ("headers",)}
)
PLACES = {"parse": "the parser", "work": "the control", "deparse": "the deparser"}
LOST = "it is lost"


class ToyModel(Model[Blocks]):
    """The interpreter's."""

    def compiled(self, kind: Callable[..., Statements]) -> Blocks:
        return Blocks(self.block_compiler(kind), self.program.package, PIPELINE)

    def new_pass(self, pipeline: Blocks, events: list[TraceEvent] | None) -> _Pass:
        return _Pass(self, pipeline, events)

    @property
    def parser(self) -> ir.Parser:
        return self.program.package.parser("parse")

    def parsed(self, arrival: Arrival) -> list[Any]:
        values = self._plain.start()
        self._plain.run("parse", SwitchPacket(arrival.packet), values)
        return [values["headers"], values["meta"]]


class _Pass(Pass[None]):
    def __init__(self, model: ToyModel, blocks: Blocks, events: list[TraceEvent] | None) -> None:
        super().__init__(model, events)
        self.blocks = blocks

    def ingress(self, arrival: Arrival) -> None:
        packet, values = SwitchPacket(arrival.packet, self.events), self.blocks.start()
        self.blocks.put(values, "meta", in_port=arrival.port)
        self.blocks.run("parse", packet, values)
        self.blocks.run("work", packet, values)
        if self.blocks.get(values, "meta", "lost"):
            self.drop(LOST)
            return
        self.blocks.run("deparse", packet, values)
        self.send(self.blocks.get(values, "meta", "out_port"), packet.output())

    def egress(self, departure: None) -> None:
        raise AssertionError("nothing is queued")


class ToyTraffic(Traffic):
    """The same as machine code."""

    meta_size = 0
    drops = {"lost": LOST}

    def __init__(self, unit: Unit, program: ir.Program, externs: Externs, passes: int) -> None:
        super().__init__(unit, program, externs, passes)
        self.pipeline = NativeBlocks(self, program.package, PIPELINE)

    def memory(self) -> dict[str, int]:
        return {"packet": self.pipeline.context.size}

    def blocks(self) -> None:
        self.pipeline.write()

    def arrive(self) -> None:
        f, pipeline = self.module.function("arrive", "void", ARRIVE), self.pipeline
        self.start_pass(f)
        c, end = f.word("packet"), f.label()
        pipeline.context.begin(f, c, "%data", "%size")
        pipeline.put(f, c, "meta", in_port="%port")
        pipeline.run(f, "parse", c, end)
        pipeline.run(f, "work", c, end)
        with f.when(f.compare("ne", "i64", pipeline.get(f, c, "meta", "lost"), 0)):
            self.count_drop(f, "lost")
            f.go(end)
        target = native_vectors.reserve(f, "out", pipeline.room(f, c))
        size = pipeline.deparse(f, c, target, end)
        self.send(f, pipeline.get(f, c, "meta", "out_port"), size)
        f.at(end)
        f.ret()
