"""The first stage of the compiler: P4_16 source text to a syntax tree. May import: ir.

The parser (specification 1.2.5, appendix "P4 grammar") is recursive descent by hand: one class, in
layers, each in a file of its own: parser_stream (tokens, errors, scopes), parser_types,
parser_expressions, parser_statements (and tables), parser_declarations.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.lexer import tokenize
from gradplane.switch.syntax.macros import Defines
from gradplane.switch.syntax.parser_declarations import DeclarationParser
from gradplane.switch.syntax.preprocess import preprocess

__all__ = ["parse_file", "parse_text"]


def parse_file(
    path: str | Path,
    include_dirs: Iterable[str | Path] = (),
    defines: Defines | None = None,
    text: str | None = None,
) -> tuple[ast.Program, Reporter]:
    """Parse a P4_16 program; `text`, if given, replaces the content of the file.

    `defines` are {"NAME": value} or ["NAME=value", "NAME"]. core.p4 and v1model.p4 are found
    without an include directory, after `include_dirs`. The reporter holds the source lines and any
    warnings. Raises CompileError with every syntax error found.
    """
    pieces, reporter = preprocess(path, include_dirs, defines or (), text)
    tokens = tokenize(pieces, reporter)
    program = DeclarationParser(tokens, reporter).program()
    reporter.stop_on_errors()
    program.span = Span(str(path), 1, 1, 2)
    return program, reporter


def parse_text(
    text: str,
    name: str = "<text>",
    include_dirs: Iterable[str | Path] = (),
    defines: Defines | None = None,
) -> tuple[ast.Program, Reporter]:
    """Parse a program given as text; `name` is the file name that messages show."""
    return parse_file(name, include_dirs, defines, text)
