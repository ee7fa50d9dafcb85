"""The parts of a chip that a control protocol configures, beside a program's objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields


class PipelineFacts(NamedTuple):
    """A pipeline: its instance's name, its ingress parser's, the metadata of its ports, its
    controls, "ingress" and "egress", and the pipes that run it.

    port_key: the parser's parameter with the intrinsic metadata. port_metadata: their type, None if
    the program does not read them.
    """

    name: str
    ingress_parser: str
    port_key: str
    port_metadata: Fields | None
    controls: Mapping[str, ir.Control]
    pipes: tuple[int, ...]


class DeviceFacts(NamedTuple):
    """A chip that a program runs on.

    family: the prefix of its fixed tables ("tf1"). sku: its name. pipes: how many. ports: port
    numbers are below this many in all pipes together. recirculation: the ports of each pipe that
    lead back to it, by their numbers in the pipe. label: what names begin with, if the program is
    one of several.
    """

    family: str
    sku: str
    pipes: int
    stages: int
    ports: int
    pipe_bits: int
    cpu_port: int
    recirculation: Sequence[int]
    port_metadata_bytes: int
    pipelines: tuple[PipelineFacts, ...]
    label: str = ""

    def full_name(self, name: str) -> str:
        """Return the name that the chip's compiler gives an object: its pipeline's comes first."""
        if self.label or len(self.pipelines) > 1:
            return name.removeprefix(self.label)
        return f"{self.pipelines[0].name}.{name}"

    def own_name(self, name: str) -> str:
        """Return a name without its pipeline's."""
        for pipeline in self.pipelines if self.label or len(self.pipelines) > 1 else ():
            name = name.removeprefix(f"{pipeline.name}.")
        return name.removeprefix(self.label)

    def pipeline_of(self, pipe: int) -> PipelineFacts:
        """Return the pipeline that a pipe runs."""
        return next(pipeline for pipeline in self.pipelines if pipe in pipeline.pipes)

    def pipes_of(self, name: str) -> tuple[int, ...]:
        """Return the pipes in which packets reach a table or extern: those of its pipeline, whose
        name comes first in its own where there are several."""
        named = (p.pipes for p in self.pipelines if name.startswith(f"{p.name}."))
        every = tuple(sorted(pipe for pipeline in self.pipelines for pipe in pipeline.pipes))
        return next(named, every) if len(self.pipelines) > 1 else every
