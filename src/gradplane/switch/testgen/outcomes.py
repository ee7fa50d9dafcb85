"""The tree of what one packet can meet under any table content: lookups, and what leaves then."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Hashable, Iterator, Sequence

import z3

from gradplane.switch.runtime.packet_passes import TOO_MANY_PASSES, Output
from gradplane.switch.switch import Switch
from gradplane.switch.testgen.explorer import Runner
from gradplane.switch.testgen.runs import Decision, Given, Inputs, Run
from gradplane.switch.testgen.solving import Solver
from gradplane.switch.testgen.symbols import PacketBits, Symbol, Term

MOST = 500  # runs
SECONDS = 60.0  # of processor time
PASSES = 64  # of one packet
SHOWN = 128  # digits of a packet
LAST = 1000  # the rank of what leaves
_DATA = re.compile(r"e(\d+)\.(\d+)\.(\d+)")
Tree = dict[tuple[int, str], "Tree"]
"""The outcomes that follow each outcome, by its rank among those of the same, and its text."""


def outcome_tree(switch: Switch, port: int, packet: bytes) -> str:
    """Return the tree as text. Digits that depend on action data are `*`; a port that action data
    gives is the name of the parameter."""
    runner = Runner(switch)
    runner.recorder.fixed = True
    runner.passes.limit(PASSES)
    solver = Solver(switch.architecture.ports, 0, runner.recorder.sums)
    tree: Tree = {}
    seen: set[Hashable] = set()
    left, runs, began = deque([Inputs((Given(port, packet),))]), 0, time.process_time()
    while left and runs < MOST and time.process_time() - began < SECONDS:
        inputs = left.popleft()
        run, outputs = runner.run(inputs)
        runs += 1
        branch = tree
        for one in run.decisions:
            if (text := _decided(one, runner)) is not None:
                branch = branch.setdefault((one.rank, text), {})
        for text in _leaving(runner, outputs[0]):
            branch.setdefault((LAST, text), {})
        left += _beside(run, solver, seen)
    lines = [f"port {port}, {len(packet)} bytes", *_lines(tree, "")]
    if any("*" in line for line in lines):
        lines.append("*: a digit that depends on the data of an entry's action")
    if left:
        over = f"{MOST} runs" if runs == MOST else f"{SECONDS:.0f} s of processor time"
        lines.append(f"and more: {over} are over")
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


def _decided(one: Decision, runner: Runner) -> str | None:
    """Return a decision as text; None for one that follows from those above it."""
    names = "" if one.term is None else _names(one.term, runner)
    if one.term is not None and not names and "{}" not in one.text:
        return None
    place = f"    [{one.place.file}:{one.place.line}]" if one.place.line else ""
    return one.text.replace("{}", names or "0") + place


def _leaving(runner: Runner, outputs: Sequence[Output]) -> Iterator[str]:
    """Yield a text for each packet that leaves, or one that says why none does."""
    reasons = runner.switch.state.drops
    if TOO_MANY_PASSES in reasons:
        yield f"and so on: {PASSES} passes are over"
    elif not outputs and runner.recorder.followed:
        yield f"dropped: {', '.join(reasons)}" if reasons else "dropped"
    for port, data in outputs:
        bits = runner.recorder.bits.get(data)
        names = _names(port.term, runner) if isinstance(port, Symbol) else ""
        yield f"leaves by {names or f'port {int(port)}'}: {len(data)} bytes {_digits(data, bits)}"


def _names(term: Term, runner: Runner) -> str:
    """Return the parameters of actions that a term depends on; "" without."""
    term, found = z3.simplify(term), set()
    for number, action, param in _DATA.findall(term.sexpr()):
        for table, name in runner.recorder.data_names.items():
            if table == (int(number), int(action), int(param)):
                found.add(name)
    return " and ".join(sorted(found))


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
    for i, ((_, text), below) in enumerate(sorted(tree.items(), key=lambda one: one[0][0])):
        last = i == len(tree) - 1
        yield f"{indent}{'└─ ' if last else '├─ '}{text}"
        yield from _lines(below, indent + ("   " if last else "│  "))
