"""The tree of what one packet can meet under any table content: lookups, and what leaves then."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator

import z3

from gradplane.switch.runtime.packet_passes import Output
from gradplane.switch.switch import Switch
from gradplane.switch.testgen.explorer import Runner
from gradplane.switch.testgen.runs import Given, Inputs, Run
from gradplane.switch.testgen.solving import Solver
from gradplane.switch.testgen.symbols import PacketBits, Symbol

MOST = 500  # runs
SHOWN = 28  # digits of a packet
_DATA = re.compile(r"e(\d+)\.(\d+)\.(\d+)")
Tree = dict[str, "Tree"]


def outcome_tree(switch: Switch, port: int, packet: bytes) -> str:
    """Return the tree as text. Digits that depend on action data are `*`; a port that action data
    gives is the name of the parameter."""
    runner = Runner(switch)
    runner.recorder.fixed = True
    solver = Solver(switch.architecture.ports, 0)
    tree: Tree = {}
    seen: set[Hashable] = set()
    left, runs = [Inputs((Given(port, packet),))], 0
    while left and runs < MOST:
        inputs = left.pop()
        run, outputs = runner.run(inputs)
        runs += 1
        branch = tree
        for place, text in run.decisions:
            branch = branch.setdefault(f"{text}    [{place.file}:{place.line}]", {})
        for text in _leaving(run, runner, outputs[0]):
            branch.setdefault(text, {})
        left += _beside(run, solver, seen)
    lines = [f"port {port}, {len(packet)} bytes", *_lines(tree, "")]
    if left:
        lines.append(f"and more: {MOST} runs are over")
    return "\n".join(lines) + "\n"


def _beside(run: Run, solver: Solver, seen: set[Hashable]) -> Iterator[Inputs]:
    """Yield inputs for the ways beside a path that no run has taken."""
    signature: Hashable = ()
    for index, branch in enumerate(run.path):
        for way in branch.others:
            beside = (signature, way.goal, way.choice)
            if beside not in seen:
                seen.add(beside)
                inputs = solver.turned(run, index, way).inputs
                if inputs is not None:
                    yield inputs
        if branch.goal is not None:
            signature = hash((signature, branch.goal))
            seen.add((signature, "taken"))


def _leaving(run: Run, runner: Runner, outputs: list[Output]) -> Iterator[str]:
    """Yield a text for each packet that leaves, or one that says that none does."""
    if not outputs:
        yield "dropped"
    for port, data in outputs:
        bits = runner.recorder.bits.get(data)
        where = _by_data(run, runner, port)
        yield f"leaves by {where}: {len(data)} bytes {_digits(data, bits)}"


def _by_data(run: Run, runner: Runner, port: int) -> str:
    """Return a port as text: its number, or the parameters that give it."""
    if isinstance(port, Symbol):
        names = _names(z3.simplify(port.term), runner, run)
        if names:
            return " and ".join(sorted(names))
    return f"port {int(port)}"


def _names(term: z3.ExprRef, runner: Runner, run: Run) -> set[str]:
    """Return the parameters that a term depends on."""
    found = set()
    for number, action, param in _DATA.findall(term.sexpr()):
        for table, name in runner.recorder.data_names.items():
            if table == (int(number), int(action), int(param)):
                found.add(name)
    return found


def _digits(data: bytes, bits: PacketBits | None) -> str:
    digits = list(data.hex())
    at = 0
    for width, piece in bits.pieces if bits is not None else ():
        if piece is not None and not z3.is_bv_value(z3.simplify(piece)):
            for digit in range(at // 4, (at + width + 3) // 4):
                digits[digit] = "*"
        at += width
    text = "".join(digits)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def _lines(tree: Tree, indent: str) -> Iterator[str]:
    for i, (text, below) in enumerate(tree.items()):
        last = i == len(tree) - 1
        yield f"{indent}{'└─ ' if last else '├─ '}{text}"
        yield from _lines(below, indent + ("   " if last else "│  "))
