"""The texts of packet paths: an architecture's path.p4, compiled.

Beside a text lies what it compiles to, path.lowered, so that a switch starts without compiling it.
After a change of a text or of the IR, this writes them again:

    python -m gradplane.switch.machine.path_texts
"""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.walk import expressions, nested, within

HERE = Path(__file__).parent
TEXT, LOWERED = "path.p4", "path.lowered"
NOTES = "notes"
"""The part of a packet's memory that calls of externs leave notes in for the path."""


@dataclass(frozen=True)
class PathText:
    """A compiled text: its controls by name. notes: stands for the notes of the packet that a block
    runs on, in blocks of the program."""

    controls: dict[str, ir.Control]
    notes: ir.Var | None

    def body(self, name: str) -> ir.Control:
        """Return the control that is the body of an extern."""
        return self.controls[name]


@cache
def path_text(folder: Path) -> PathText:
    """Return the text of the architecture in a folder."""
    kept = folder / LOWERED
    if kept.exists():
        stamp, _, content = kept.read_bytes().partition(b"\n")
        if stamp == _stamp(folder):
            found: PathText = pickle.loads(content)
            return found
    return lowered(folder)


def lowered(folder: Path) -> PathText:
    """Compile a text, whose extern functions are primitives."""
    # Imported late: the texts here are compiled already.
    from gradplane.switch.check.checker import check
    from gradplane.switch.lower.program import lower
    from gradplane.switch.syntax import ast, parse_file

    name, text = _shown_name(folder), (folder / TEXT).read_text("utf-8")
    tree, reporter = parse_file(name, [HERE], None, text)
    functions = (d for d in tree.declarations if isinstance(d, ast.FunctionDecl))
    primitives = {("", function.name): None for function in functions}
    program = lower(check(tree, reporter), reporter, primitives, True)
    controls = {c.name: c for c in program.package.args.values() if isinstance(c, ir.Control)}
    for control in controls.values():
        control.body = _without_copies(control.body)
        used = {e for stmt in nested(control.body) for e in variables_of(stmt)}
        control.locals = [var for var in control.locals if var in used]
    notes = (p.var for c in controls.values() for p in c.params if p.name == NOTES)
    found = next(notes, None)
    return PathText(controls, None if found is None else ir.Var(found.type, NOTES, -1))


def text_lines(folder: Path) -> dict[str, list[str]]:
    """Return the lines of a text, by the name that traces have for its file."""
    return {_shown_name(folder): (folder / TEXT).read_text("utf-8").split("\n")}


def _shown_name(folder: Path) -> str:
    return f"{folder.name}/{TEXT}"


def _stamp(folder: Path) -> bytes:
    """Return a line that changes with a text and with the nodes of the IR."""
    own = [(c, getattr(c, "__dataclass_fields__", None)) for c in vars(ir).values()]
    fields = [(c.__name__, list(f)) for c, f in own if isinstance(c, type) and f is not None]
    texts = [(f / name).read_bytes() for f, name in ((folder, TEXT), (HERE, "machine.p4"))]
    digest = hashlib.sha256(repr(fields).encode())
    for text in texts:
        digest.update(text)
    return digest.hexdigest().encode()


# -- calls without copies ---------------------------------------------------------------------


def _without_copies(stmts: Sequence[ir.Stmt]) -> list[ir.Stmt]:
    """Pass values to calls in place, which lowering copies in and out:

    a = p.hdr; run = run("p", inout a); p.hdr = a; code = run   ->   code = run("p", inout p.hdr)
    """
    uses = Counter(e for stmt in nested(stmts) for e in variables_of(stmt))
    return _in_place(stmts, uses)


def _in_place(stmts: Sequence[ir.Stmt], uses: Mapping[ir.Var, int]) -> list[ir.Stmt]:
    out: list[ir.Stmt] = []
    following = list(stmts)
    while following:
        stmt = following.pop(0)
        if isinstance(stmt, ir.CallExtern):
            stmt = dataclasses.replace(stmt, args=list(stmt.args))
            _pass_in_place(stmt, out, following)
            after = following[0] if following else None
            given = stmt.result
            once = isinstance(given, ir.Var) and uses[given] == 2
            if once and isinstance(after, ir.Assign) and after.value is given:
                stmt.result = after.target
                following.pop(0)
        out.append(_with_bodies(stmt, lambda body: _in_place(body, uses)))
    return out


def _pass_in_place(call: ir.CallExtern, before: list[ir.Stmt], after: list[ir.Stmt]) -> None:
    """Pass to a call what the assignments before it copy, and those after it copy back."""
    for i, direction in enumerate(call.directions):
        saved = call.args[i]
        if direction in ("inout", "out") and isinstance(saved, ir.Var):
            back = (s for s in after[: len(call.args)] if isinstance(s, ir.Assign))
            found = next((s for s in back if s.value is saved), None)
            copied = direction == "out" or any(
                isinstance(s, ir.Assign) and s.target is saved for s in before
            )
            if found is not None and copied:
                call.args[i] = found.target
                after.remove(found)
                before[:] = [
                    s for s in before if not (isinstance(s, ir.Assign) and s.target is saved)
                ]


def _with_bodies(stmt: ir.Stmt, change: Callable[[list[ir.Stmt]], list[ir.Stmt]]) -> ir.Stmt:
    """Change the bodies of a statement, in place: blocks are known by identity."""
    match stmt:
        case ir.If():
            return dataclasses.replace(stmt, then=change(stmt.then), other=change(stmt.other))
        case ir.Block() | ir.Loop():
            stmt.body = change(stmt.body)
    return stmt


def variables_of(stmt: ir.Stmt) -> Iterator[ir.Var]:
    """Yield the variables that a statement names, once for each time."""
    for e in expressions(stmt):
        yield from (part for part in within(e) if isinstance(part, ir.Var))


def main() -> None:
    """Write what the texts of this package compile to."""
    for text in (HERE.parent / "arch").glob(f"*/{TEXT}"):
        content = pickle.dumps(lowered(text.parent), 5)
        (text.parent / LOWERED).write_bytes(_stamp(text.parent) + b"\n" + content)


if __name__ == "__main__":
    # As others import it: what is pickled is a class of that module.
    from gradplane.switch.machine import path_texts

    path_texts.main()
