"""The planner's three input files: the model, the compression, the system (Espresso, Fig. 6).

Each is TOML; a shipped one is named without its folder and suffix. Times are in seconds, sizes in
values (float32) or bytes, bandwidths in Gbit/s, latencies in microseconds. Shipped models are
computed (`architectures`); `python -m gradplane.planner.inputs NAME` prints one as a file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gradplane import _suggestions
from gradplane._toml_documents import Document, DocumentError, explain, inline, read
from gradplane.planner.architectures import ARCHITECTURES

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False, description="seconds")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PlannerError(Exception):
    """A plan that cannot be made; the message has a line for each thing that is wrong."""


class InputTable(BaseModel):
    """A table with the declared keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Gradient(InputTable):
    """A tensor of the model: its number of float32 values, and the time of its computation."""

    name: str
    values: int = Field(ge=1)
    compute: Seconds


class Model(InputTable):
    """A model: its tensors in backward order, and the time of the forward propagation."""

    name: str
    forward: Seconds = 0.0
    tensors: tuple[Gradient, ...] = Field(min_length=1, strict=False)


class Curve(InputTable):
    """Times of a codec on one device at growing sizes, linear between them and beyond."""

    values: tuple[Positive, ...] = Field(min_length=2, strict=False)
    compress: tuple[Seconds, ...] = Field(strict=False)
    decompress: tuple[Seconds, ...] = Field(strict=False)

    @model_validator(mode="after")
    def _complete(self) -> Curve:
        if not len(self.values) == len(self.compress) == len(self.decompress):
            raise ValueError("values, compress and decompress must be equally long")
        if any(b <= a for a, b in zip(self.values, self.values[1:], strict=False)):
            raise ValueError("values must grow")
        return self


class Compression(InputTable):
    """A codec: compressed bytes a byte, bytes that every message has besides, times by device.

    sums: whether a switch may add its codes; sum_bits, code_bits: their widths up and down.
    parameters: of the codec, with which it has this ratio. padded: whether it encodes whole
    blocks of 1024 values, as a Hadamard transform needs powers of two; see THC's version 2.
    """

    codec: str
    parameters: dict[str, bool | int | float | str] = Field(default_factory=dict, strict=False)
    ratio: float = Field(gt=0, le=1)
    header: int = Field(default=0, ge=0)
    padded: bool = False
    sums: bool = False
    code_bits: int = Field(default=4, ge=1, le=32)
    sum_bits: int = Field(default=8, ge=1, le=32)
    gpu: Curve
    cpu: Curve


class Network(InputTable):
    """A network: the bandwidth of each of its members, and the latency of one message."""

    gbit: Positive = Field(description="Gbit/s")
    latency_us: float = Field(ge=0, allow_inf_nan=False, description="microseconds")


class SwitchAbility(InputTable):
    """The abilities of the switches between the machines.

    They run one program: thc.p4 sums, tos_compress.p4 compresses. add: what they can sum. slots and
    payload bound the bytes in flight; passes is how often a packet of codes crosses the pipeline,
    whose bandwidth is recirculation_gbit. fabric_gbit: of the links between edge switches, where it
    is not that of the machines' links. tos_ratio: bytes a byte after the edge switches' compression
    of marked values, which has no host time, at an error bound of 2^-tos_bound.
    """

    add: tuple[str, ...] = Field(default=(), strict=False)
    slots: int = Field(default=512, ge=1)
    payload: int = Field(default=1024, ge=1)
    passes: int = Field(default=8, ge=1)
    recirculation_gbit: Positive = 100.0
    rack_machines: int = Field(default=64, ge=1)
    fabric_gbit: Positive | None = None
    tos_ratio: float | None = Field(default=None, gt=0, le=1)
    tos_bound: Literal[6, 8, 10] = 10

    @property
    def edges(self) -> bool:
        """Whether each machine has an edge switch before the links between switches."""
        return self.fabric_gbit is not None or self.tos_ratio is not None

    @model_validator(mode="after")
    def _one_program(self) -> SwitchAbility:
        if self.add and self.tos_ratio is not None:
            raise ValueError(
                "add and tos_ratio: switches run one program, thc.p4 to add or tos_compress.p4 to"
                " compress: leave out one, and plan with each of both systems"
            )
        return self


class Framing(InputTable):
    """The bytes that a network of packets carries besides the values.

    payload: of a message, in one packet. packet: beside each payload. acknowledgement: of a packet,
    in the other direction, where it meets the next packets of an exchange.
    message: at the start of each message. piece: beside each compressed piece in it. sums: in
    a packet of a switch that adds; aggregation: beside them. marked: values' bytes in a packet that
    edge switches compress; marked_packet: beside them; shim: what compression adds. Where a system
    has a framing, packets between machines are stored and forwarded, too.
    """

    payload: int = Field(ge=1)
    packet: int = Field(ge=0)
    acknowledgement: int = Field(ge=0)
    message: int = Field(ge=0)
    piece: int = Field(ge=0)
    sums: int = Field(default=1024, ge=1)
    aggregation: int = Field(default=66, ge=0)
    marked: int = Field(default=1024, ge=4)
    marked_packet: int = Field(default=58, ge=0)
    shim: int = Field(default=4, ge=0)


class System(InputTable):
    """The system: machines, GPUs a machine, the links inside and between them, the switches."""

    name: str
    machines: int = Field(ge=1)
    gpus: int = Field(ge=1)
    intra: Network
    inter: Network
    servers: int = Field(default=0, ge=0)
    switch: SwitchAbility | None = None
    framing: Framing | None = None

    @property
    def links_gbit(self) -> dict[str, float]:
        """The bandwidths of the links inside and between machines, and between edge switches."""
        fabric = self.switch.fabric_gbit if self.switch else None
        links = {"intra": self.intra.gbit, "inter": self.inter.gbit}
        return links if fabric is None else links | {"fabric": fabric}


Input = TypeVar("Input", Model, Compression, System)
_FOLDERS: dict[type[InputTable], str] = {Compression: "codecs", System: "systems"}


def shipped(kind: type[Input]) -> list[str]:
    """Return the names of the shipped inputs of a kind."""
    if kind is Model:
        return sorted(ARCHITECTURES)
    return sorted(file.name.removesuffix(".toml") for file in _folder(kind).iterdir())


def load(kind: type[Input], source: str | Path) -> Input:
    """Read an input file, or a shipped one by its name.

    Raises PlannerError, with a line for each thing that is wrong: file, line, key, what is allowed.
    """
    file: Path | Traversable = Path(source)
    if Path(source).suffix == ".py":
        raise PlannerError(
            f"{source}: a {kind.__name__.lower()} is a TOML file of sizes and times here"
            f" (docs/planner.md); shipped are {', '.join(shipped(kind))}"
        )
    if not Path(source).is_file():
        names = shipped(kind)
        if str(source) not in names:
            hint = _suggestions.hint(str(source), names, _suggestions.quoted)
            raise PlannerError(
                f"{source}: no such file, and no shipped {kind.__name__.lower()}: {hint}"
            )
        if kind is Model:
            return kind.model_validate(_computed(str(source)))
        file = _folder(kind) / f"{source}.toml"
    try:
        document = read(file)
    except DocumentError as error:
        raise PlannerError(str(error)) from None
    try:
        found = kind.model_validate(document.values)
    except ValidationError as error:
        raise PlannerError(explain(document, kind, error)) from None
    if isinstance(found, Compression):
        _check_codec(document, found)
    return found


def _computed(name: str) -> dict[str, Any]:
    """Return the values of a shipped model, times with the digits that a file has."""
    tensors = ARCHITECTURES[name].tensors()
    rows = [{"name": n, "values": v, "compute": float(f"{s:.3e}")} for n, v, s in tensors]
    forward = float(f"{sum(seconds for *_, seconds in tensors) / 2:.3e}")
    return {"name": name, "forward": forward, "tensors": rows}


def _check_codec(document: Document, compression: Compression) -> None:
    """Raise PlannerError for a codec that does not exist, or has no such parameters."""
    from gradplane import codecs

    try:
        codecs.get(compression.codec, **compression.parameters)
    except codecs.CodecError as error:
        keys = ("codec",) if compression.codec not in codecs.names() else ("parameters",)
        raise PlannerError(f"{document.place(keys)}: {error}") from None


def load_job(
    model: str | Path, codec: str | Path, system: str | Path
) -> tuple[Model, Compression, System]:
    """Read the three files of a job. Raises PlannerError with what is wrong in all of them."""
    wrong: list[str] = []
    found = _tried(Model, model, wrong), _tried(Compression, codec, wrong)
    last = _tried(System, system, wrong)
    if found[0] is None or found[1] is None or last is None:
        raise PlannerError("\n".join(wrong))
    return found[0], found[1], last


def _tried(kind: type[Input], source: str | Path, wrong: list[str]) -> Input | None:
    try:
        return load(kind, source)
    except PlannerError as error:
        wrong.append(str(error))
        return None


def _folder(kind: type[InputTable]) -> Traversable:
    return resources.files("gradplane.planner") / "data" / _FOLDERS[kind]


def model_text(model: Model, *comments: str) -> str:
    """Return the file of a model."""
    lines = [
        *(f"# {comment}" for comment in comments),
        f"name = {inline(model.name)}",
        f"forward = {model.forward:.3e}",
        "tensors = [",
        *_rows(model.tensors),
        "]",
    ]
    return "\n".join(lines) + "\n"


def _rows(tensors: Iterable[Gradient]) -> Iterable[str]:
    for tensor in tensors:
        name = inline(tensor.name)
        yield f"  {{ name = {name}, values = {tensor.values}, compute = {tensor.compute:.3e} }},"


if __name__ == "__main__":
    print(model_text(load(Model, sys.argv[1]), *ARCHITECTURES[sys.argv[1]].comments()), end="")
