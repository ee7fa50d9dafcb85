"""The first stage of the compiler: P4_16 source text to a syntax tree. May import: ir."""

from gradplane.switch.syntax.parser import parse_file, parse_text

__all__ = ["parse_file", "parse_text"]
