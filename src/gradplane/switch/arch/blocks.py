"""The blocks of a pipeline, and the values that pass from one to the next, in the interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradplane.switch.interp.blocks import Block, control_block, parser_block
from gradplane.switch.interp.interpreter_values import Env, copier, maker
from gradplane.switch.interp.packet import Packet
from gradplane.switch.interp.statements import Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields, Type

Values = dict[str, Any]
"""The values of the blocks' parameters, by the names of a Layout."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A pipeline's blocks in order: a parser, controls, and a deparser at the end.

    blocks: by package parameter, the names of the values that a block's parameters stand for. The
    same name is the same value, which one block takes on from another. other_parsers: those that
    may run in the parser's place.
    """

    blocks: Mapping[str, tuple[str, ...]]
    other_parsers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, tuple[str, ...]]:
        """The values of each block, also of the other parsers."""
        return {**self.other_parsers, **self.blocks}

    @property
    def parser(self) -> str:
        return next(iter(self.blocks))

    @property
    def parsers(self) -> list[str]:
        return [self.parser, *self.other_parsers]

    @property
    def controls(self) -> list[str]:
        """The blocks between the parser and the deparser."""
        return [*self.blocks][1:-1]

    @property
    def deparser(self) -> str:
        return [*self.blocks][-1]

    def types(self, package: ir.Package) -> dict[str, Type]:
        """Return the types of the values in a program."""
        types = {}
        for name, values in self.all.items():
            block = package.args[name]
            assert isinstance(block, ir.Parser | ir.Control), block
            for value, param in zip(values, block.params, strict=True):
                types[value] = param.var.type
        return types


class Blocks:
    """A pipeline's blocks, compiled for the interpreter."""

    def __init__(self, compiler: Statements, package: ir.Package, layout: Layout) -> None:
        self._values = layout.all
        self._blocks: dict[str, Block] = {
            name: parser_block(package.parser(name), compiler) for name in layout.parsers
        }
        for name in (*layout.controls, layout.deparser):
            self._blocks[name] = control_block(package.control(name), compiler)
        types = layout.types(package)
        self._makers = {name: maker(t) for name, t in types.items()}
        self._copiers = {name: copier(t) for name, t in types.items()}
        self._fields = {name: Metadata(t) for name, t in types.items() if isinstance(t, Fields)}
        self._env: Env = compiler.frame.new()

    def start(self, names: Iterable[str] | None = None) -> Values:
        """Return new values, of these names or of all; every bit is zero."""
        return {name: self._makers[name]() for name in names or self._makers}

    def copy(self, values: Values) -> Values:
        return {name: self._copiers[name](value) for name, value in values.items()}

    def run(self, name: str, packet: Packet, values: Values) -> Any:
        """Run a block on its values; a parser returns its error's code."""
        env, block, names = self._env, self._blocks[name], self._values[name]
        env[0] = packet
        for slot, value in zip(block.slots, names, strict=True):
            env[slot] = values[value]
        result = block.run(env)
        for slot, value in zip(block.slots, names, strict=True):
            values[value] = env[slot]
        return result

    def arguments(self, name: str, values: Values) -> list[Any]:
        """Return the values that a block's parameters stand for, in order."""
        return [values[value] for value in self._values[name]]

    def parameters(self, name: str) -> list[Any]:
        """Return the values of a block's parameters while it runs, in order."""
        return [self._env[slot] for slot in self._blocks[name].slots]

    def put(self, values: Values, struct: str, **fields: int) -> None:
        """Set fields of a struct. A program may bring a struct of its own, or none: fields that it
        lacks are skipped."""
        if struct in self._fields:
            self._fields[struct].put(values[struct], **fields)

    def get(self, values: Values, struct: str, field: str) -> int:
        """Return a field of a struct, 0 if it lacks it or no block takes it."""
        known = self._fields.get(struct)
        return 0 if known is None else known.get(values[struct], field)


class Metadata:
    """The positions of a struct's fields, by name."""

    def __init__(self, t: Fields) -> None:
        self._index = {f.name: i for i, f in enumerate(t.fields)}

    def put(self, fields: list[Any], **values: int) -> None:
        for name, value in values.items():
            if name in self._index:
                fields[self._index[name]] = value

    def get(self, fields: list[Any], name: str) -> int:
        return int(fields[self._index[name]]) if name in self._index else 0
