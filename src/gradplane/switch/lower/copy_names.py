"""Names of what a package's arguments make: they are those of the copies that p4c makes.

    V1Switch(..., I(register<bit<8>>(4), 3), ...)      I_0.t, I_0.r_0 for its parameter r

A block made with constructor arguments is a copy of its declaration there, from NAME_0 on, and is
named so in P4Info, as nothing else names it. Source: p4c, frontends/p4/specialize.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, count

from gradplane.switch.lower.shared_state import used_blocks
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.ast_walk import walk

_BLOCKS = ast.ParserDecl | ast.ControlDecl


def copy_names(
    declarations: Iterable[ast.Decl], nodes: Iterable[ast.Node]
) -> Mapping[ast.Node, str]:
    """Return the names of copies, and of instances made in place for them, by their constructor
    calls. `nodes`: all of the program's."""
    declarations, used = list(declarations), used_blocks(nodes)
    blocks = [d for d in declarations if isinstance(d, _BLOCKS)]
    taken = {d.name for d in declarations if not isinstance(d, ast.ConstDecl)}
    taken |= {param.name for block in blocks for param in block.ctor_params}
    # A package's copies are made before those within blocks that are copied themselves.
    later = {b for b in blocks if b not in used or b.ctor_params}
    found: dict[ast.Node, str] = {}
    for node in walk([d for d in declarations if d not in later]):
        if isinstance(node, ast.Instantiation | ast.Call) and _makes_copy(node):
            decl = node.info.decl
            named: dict[ast.Node, str] = {node: _fresh(decl.name, taken)}
            for param, arg in zip(decl.ctor_params, node.info.args, strict=True):
                if isinstance(arg, ast.Call):
                    named[arg] = _fresh(param.name, taken)
            if isinstance(node, ast.Call):  # an instantiation has a name of its own
                found |= named
    return found


def _makes_copy(node: ast.Instantiation | ast.Call) -> bool:
    """Return whether it makes a parser or control with arguments that are known at once."""
    info = node.info
    if not node.args or getattr(info, "kind", "") != "constructor":
        return False
    args = (arg for arg in info.args if arg is not None)
    known = all(arg.const is not None or isinstance(arg, ast.Call) for arg in args)
    return known and isinstance(info.decl, _BLOCKS)


def _fresh(name: str, taken: set[str]) -> str:
    """Return NAME, or NAME_0 and so on, whichever is not taken first, and take it."""
    base = re.sub(r"_[0-9]+$", "", name)
    numbered = (f"{base}_{number}" for number in count())
    found = next(n for n in chain([base], numbered) if n not in taken)
    taken.add(found)
    return found
