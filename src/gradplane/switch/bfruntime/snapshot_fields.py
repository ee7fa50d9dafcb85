"""The fields that a snapshot captures: those of a control's parameters, by name.

Names are those of the Tofino back end of p4c: the parameter's, then the fields' with dots; an
element of a header stack has $ and its index. Headers of the first parameter have `$valid`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradplane.switch.arch.device_facts import PipelineFacts
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Fields, Header, Stack, Type

_Read = Callable[[Any], int | None]
_HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class SnapshotField:
    """A field of so many bits. read: returns its value, from that of the control's parameters;
    None if it is in an invalid header."""

    id: int
    name: str
    width: int
    read: _Read


def snapshot_fields(
    pipelines: Sequence[PipelineFacts],
) -> dict[tuple[str, str], list[SnapshotField]]:
    """Return the fields by pipeline and gress. Fields of one name have one id in all of them."""
    ids: dict[str, int] = {}
    return {
        (pipeline.name, gress): [
            SnapshotField(ids.setdefault(name, len(ids) + 1), name, width, read)
            for name, width, read in _of_control(control)
        ]
        for pipeline in pipelines
        for gress, control in pipeline.controls.items()
    }


def values_of(fields: Sequence[SnapshotField], parameters: Any) -> Mapping[str, int]:
    """Return the values of fields, by name, but for those in invalid headers."""
    found = ((f.name, f.read(parameters)) for f in fields)
    return {name: value for name, value in found if value is not None}


def _of_control(control: ir.Control) -> Iterator[tuple[str, int, _Read]]:
    for i, param in enumerate(control.params):
        for name, width, read in _leaves(param.var.type, param.name, with_validity=not i):
            yield name, width, _after(i, read)


def _leaves(t: Type, name: str, with_validity: bool) -> Iterator[tuple[str, int, _Read]]:
    """Yield the numbers within a type: names, widths, and how they are read."""
    match t:
        case Bits(width=width):
            yield name, width, _unsigned(width)
        case Header():
            if with_validity:
                yield f"{name}.$valid", 1, lambda header: int(header.valid)
            for i, f in enumerate(t.fields):
                for inner, width, read in _leaves(f.type, f"{name}.{f.name}", False):
                    yield inner, width, _in_header(i, read)
        case Fields():
            for i, f in enumerate(t.fields):
                if not any(a.name == _HIDDEN for a in f.annotations):
                    for inner, width, read in _leaves(f.type, f"{name}.{f.name}", with_validity):
                        yield inner, width, _after(i, read)
        case Stack():
            for i in range(t.size):
                for inner, width, read in _leaves(t.element, f"{name}${i}", with_validity):
                    yield inner, width, _in_stack(i, read)


def _unsigned(width: int) -> _Read:
    mask = (1 << width) - 1
    return lambda value: int(value) & mask


def _after(i: int, read: _Read) -> _Read:
    return lambda values: read(values[i])


def _in_header(i: int, read: _Read) -> _Read:
    return lambda header: read(header.fields[i]) if header.valid else None


def _in_stack(i: int, read: _Read) -> _Read:
    return lambda stack: read(stack.items[i])
