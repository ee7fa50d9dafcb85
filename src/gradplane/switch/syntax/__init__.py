"""The first stage of the compiler: from P4_16 source text to a syntax tree."""

from gradplane.switch.syntax.parser import parse_file, parse_text

__all__ = ["parse_file", "parse_text"]
