"""Control-plane names of table keys that have no @name.

They are p4c's: @name on fields is applied, isValid() becomes `$valid$`.
"""

from __future__ import annotations

import re

from gradplane.switch.ir.types import Annotations, Fields
from gradplane.switch.syntax import ast

Lines = dict[str, list[str]]  # of each source file, by its name

_LITERAL = re.compile(r"(?:\d+[ws])?(0[xXbBoOdD])?[0-9a-fA-F_]+")
_BASES = {"0x": hex, "0b": bin, "0o": oct}


def key_name(e: ast.Expr, lines: Lines) -> str | None:
    """Return the name of a key's expression; None if it is too complex and needs a @name."""
    match e:
        case ast.Name(name=name, dot=dot):
            return ("." if dot else "") + name
        case ast.IntLit():
            return _number(e, lines)
        case ast.Member(base=base, name=name):
            return _member(key_name(base, lines), _field_name(base, name))
        case ast.Call(callee=ast.Member(base=base, name="isValid"), args=[]):
            return _joined(key_name(base, lines), "{}.$valid$")
        case ast.Index(base=base, index=index):
            return _joined(key_name(base, lines), "{}[{}]", key_name(index, lines))
        case ast.Slice(base=base, hi=ast.Expr() as hi, lo=lo):
            bounds = key_name(hi, lines), key_name(lo, lines)
            return _joined(key_name(base, lines), "{}[{}:{}]", *bounds)
        case ast.Binary(op="&", left=left, right=right):
            return _joined(key_name(left, lines), "{} & {}", key_name(right, lines))
    return None


def _joined(first: str | None, form: str, *more: str | None) -> str | None:
    parts = (first, *more)
    return None if None in parts else form.format(*parts)


def _member(base: str | None, name: str) -> str | None:
    return name[1:] if name.startswith(".") else _joined(base, "{}.{}", name)


def _field_name(base: ast.Expr, name: str) -> str:
    """Return a field's name, from its @name if it has one."""
    at = base.type.index(name) if isinstance(base.type, Fields) else None
    if at is None or not isinstance(base.type, Fields):
        return name
    return given_name(base.type.fields[at].annotations) or name


def given_name(annotations: Annotations) -> str:
    """Return the text of @name; empty if there is none."""
    for a in annotations:
        if a.name == "name" and a.values and isinstance(a.values[0], str):
            return a.values[0]
    return ""


def _number(e: ast.IntLit, lines: Lines) -> str:
    """Return a number in the base it was written in, without width and underscores."""
    source = lines.get(e.span.file, [])
    line = source[e.span.line - 1] if 0 < e.span.line <= len(source) else ""
    found = _LITERAL.fullmatch(line[e.span.column - 1 : e.span.end - 1])
    base = (found[1] or "").lower() if found else ""
    return _BASES.get(base, str)(e.value)
