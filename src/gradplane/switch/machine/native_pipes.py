"""The pipes of a chip as machine code: the tables, externs and registers of the pipe that runs."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.externs import (
    ALL_PIPES,
    ALL_REGISTERS,
    PARSER,
    PIPE,
    REGISTERS,
    RUNNING_PIPE,
    Externs,
    pipe_words,
)
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.table_layout import DIRECT
from gradplane.switch.machine.weaving import Path
from gradplane.switch.runtime.valuesets import PORTS_A_PARSER


class NativePipes:
    """The pipes of a path. words: the positions of the state words that each may have of its own;
    they follow each other."""

    def __init__(self, path: Path, program: ir.Program, externs: Externs) -> None:
        self._path = path
        self._externs = externs
        self._has_value_sets = bool(program.value_sets)
        externs.pipes_have_registers = bool(externs.register_places)
        module = externs.unit.module
        own = [module.word(name) for name in pipe_words(program, externs.tables.shapes.values())]
        self.words = range(own[0], own[-1] + 1)
        assert list(self.words) == own, own

    def call(
        self, f: Function, port: Operand, function: str, args: Sequence[tuple[str, Operand]]
    ) -> None:
        """Call a function of the pipeline of the pipe that a port belongs to, with the pipe's
        tables and registers; its name follows the pipeline's.

        The functions are not inlined: state words do not change while one of them runs."""
        path = self._path
        number = f.binary("lshr", "i64", port, path.pipe_bits)
        pipe = f.binary("urem", "i64", number, len(path.pipes))
        self._enter(f, pipe)
        f.store("i64", pipe, f.word_address(PIPE), 8)
        if self._has_value_sets:
            local = f.binary("and", "i64", port, (1 << path.pipe_bits) - 1)
            parser = f.binary("udiv", "i64", local, PORTS_A_PARSER)
            f.store("i64", parser, f.word_address(PARSER), 8)
        if self._externs.pipes_have_registers:
            place = f.binary("mul", "i64", pipe, self._externs.register_bytes)
            f.store("ptr", f.add(f.word(ALL_REGISTERS), place), f.word_address(REGISTERS), 8)
        names = [pipeline.name for pipeline in path.pipelines]
        if len(names) == 1:
            f.call("void", names[0] + function, *args)
            return
        end, labels = f.label(), [f.label() for _ in names]
        f.choose("i64", pipe, end, [(i, labels[number]) for i, number in enumerate(path.pipes)])
        for name, label in zip(names, labels, strict=True):
            f.at(label)
            f.call("void", name + function, *args)
            f.go(end)
        f.at(end)

    def _enter(self, f: Function, pipe: Operand) -> None:
        """Put the pipe's words in place, if the pipes have tables or externs of their own."""
        words = f.word(ALL_PIPES, fixed=False)
        differ = f.compare("ne", "ptr", words, "null")
        other = f.compare("ne", "i64", f.word(RUNNING_PIPE, "i64", fixed=False), pipe)
        with f.when(f.binary("and", "i1", differ, other)):
            size = 8 * len(self.words)
            own = f.add(words, f.binary("mul", "i64", pipe, size))
            f.copy(f.word_address(DIRECT), own, size)
            f.store("i64", pipe, f.word_address(RUNNING_PIPE), 8)
