"""Make a program's tests: the search, the files, and the report of coverage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from gradplane._whole_files import write_whole
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.stf.tester import Clock
from gradplane.switch.switch import Switch
from gradplane.switch.testgen.explorer import Explorer, Found, Limits, Progress
from gradplane.switch.testgen.made_tests import (
    MadeTest,
    Maker,
    covered_lines,
    in_order,
    json_form,
    ranges,
    stf_text,
)
from gradplane.switch.testgen.ptf_tests import ptf_text
from gradplane.switch.testgen.runs import Goal

FORMATS = ("stf", "ptf", "json")
SHOWN = 40  # places that are listed of a kind


@dataclass(frozen=True)
class Generated:
    """The tests of a program, and what a search has found. unsteady: tests that were left out, as
    other packets leave each time."""

    tests: list[MadeTest]
    found: Found
    unsteady: int


def generate(program: ir.Program, limits: Limits, progress: Progress | None = None) -> Generated:
    """Make tests of a program. Raises SwitchError for one that cannot have any."""
    if program.user_extern_calls:
        name = program.user_extern_calls[0].name
        raise SwitchError(f"{name} is a user-defined extern: no test can be made of what it does")
    explorer = Explorer(Switch(program, engine="interpreter", clock=Clock()), limits)
    found = explorer.explore(progress)
    switches = []
    for seed, start in ((0, 0), (1, 1 << 50)):
        clock = Clock()
        switches.append((Switch(program, engine="interpreter", seed=seed, clock=clock), clock))
        clock.now = start
    maker = Maker(switches)
    return Generated(maker.tests(found.runs, found.goals.all), found, maker.unsteady)


def write(made: Generated, program: Path, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write tests as files; return them."""
    folder.mkdir(parents=True, exist_ok=True)
    stem, count, texts = program.stem, len(made.tests), {}
    if "stf" in formats:
        for test in made.tests:
            name = f"{stem}-{test.number:0{len(str(count))}}.stf"
            texts[name] = stf_text(
                test, f"Test {test.number} of {count} of {program.name}; covers:"
            )
    if "ptf" in formats:
        module = "".join(c if c.isalnum() else "_" for c in stem)
        texts[f"{module}_tests.py"] = ptf_text(made.tests, program.name)
    if "json" in formats:
        form = {"program": program.name, "tests": [json_form(test) for test in made.tests]}
        texts[f"{stem}.json"] = json.dumps(form, indent=1) + "\n"
    for name, text in texts.items():
        write_whole(folder / name, text)
    return [folder / name for name in texts]


# -- the report -----------------------------------------------------------------------------------


def report_json(made: Generated) -> dict[str, Any]:
    """Return what the report says as plain data: the tests with the lines that each covers first,
    then every place by what is known of it."""
    found = made.found
    never = found.unreachable - found.covered
    missed = found.goals.all - found.covered - never
    return {
        "runs": found.tried,
        "seconds": round(found.seconds, 1),
        "tests": [
            {"number": test.number, "packets": len(test.packets), "covers": [*covered_lines(test)]}
            for test in made.tests
        ],
        "left_out": made.unsteady,
        "covered": _places_json(found.covered & found.goals.all),
        "unreachable": _places_json(never),
        "not_covered": [
            {**place, "why": _why(found, goal)}
            for goal, place in zip(sorted(missed, key=in_order), _places_json(missed), strict=True)
        ],
    }


def _places_json(goals: set[Goal]) -> list[dict[str, Any]]:
    return [
        {"file": place.file, "line": place.line, "what": _said(kind, outcome)}
        for kind, place, outcome in sorted(goals, key=in_order)
    ]


def report(made: Generated) -> str:
    """Return what the tests cover, and the places that they do not."""
    return "\n".join(_report(made)) + "\n"


def _report(made: Generated) -> Iterator[str]:
    found, tests = made.found, made.tests
    packets = sum(len(test.packets) for test in tests)
    yield (
        f"{_many(len(tests), 'test')} with {_many(packets, 'packet')}, from "
        f"{_many(found.tried, 'run')} in {found.seconds:.1f} s"
    )
    yield from _table(found)
    for test in tests:
        texts = list(covered_lines(test))
        if texts:
            yield f"test {test.number}: " + "; ".join(
                _cut(text, 66 // len(texts)) for text in texts
            )
    never = found.unreachable - found.covered
    yield from _places("unreachable: no packet gets there, whatever the tables hold", never)
    yield from _missed(found, found.goals.all - found.covered - never)
    if made.unsteady:
        what = "other packets leave with other random numbers or at another time"
        yield f"{_many(made.unsteady, 'test')} left out: {what}"


def _table(found: Found) -> Iterator[str]:
    """Yield a line for each file: how much of it is covered."""
    yield f"{'':32}{'lines':>12}{'branches':>12}{'lookups':>12}"
    files = sorted({goal[1].file for goal in found.goals.all})
    for file in files:
        cells = []
        for kinds in (("line",), ("branch", "case"), ("table",)):
            goals = {g for g in found.goals.all if g[1].file == file and g[0] in kinds}
            keys = {g[1].line if g[0] == "line" else g for g in goals}
            missing = {g[1].line if g[0] == "line" else g for g in goals - found.covered}
            cells.append(f"{len(keys) - len(missing)} of {len(keys)}")
        yield f"{_tail(file, 31):32}" + "".join(f"{cell:>12}" for cell in cells)


def _places(heading: str, goals: set[Goal]) -> Iterator[str]:
    """Yield the places of goals: lines by file, then branches and lookups one by one."""
    if not goals:
        return
    yield f"{heading}:"
    for file in sorted({goal[1].file for goal in goals}):
        lines = {g[1].line for g in goals if g[0] == "line" and g[1].file == file}
        if lines:
            yield fill(
                f"{file}: {_lines(lines)}", 80, initial_indent="  ", subsequent_indent="    "
            )
    others = sorted((goal for goal in goals if goal[0] != "line"), key=in_order)
    for kind, place, outcome in others[:SHOWN]:
        yield f"  {place.file}:{place.line}: {_said(kind, outcome)}"
    if len(others) > SHOWN:
        yield f"  and {len(others) - SHOWN} more"


def _missed(found: Found, goals: set[Goal]) -> Iterator[str]:
    """Yield the goals that nothing else stands before, each with the reason and what is behind."""
    if not goals:
        return
    yield "not covered within the limits:"
    behind = {goal: found.goals.behind.get(goal, set()) & goals for goal in goals}
    hidden = {g for goal, inside in behind.items() for g in inside if goal not in behind[g]}
    for goal in sorted(goals - hidden, key=in_order):
        kind, place, outcome = goal
        lines = {g[1].line for g in behind[goal] if g[0] == "line" and g[1].file == place.file}
        after = f", and {_lines(lines)} behind it" if lines else ""
        yield f"  {place.file}:{place.line}: {_said(kind, outcome)}{after}"
        yield fill(_why(found, goal), 80, initial_indent="    ", subsequent_indent="    ")


def _why(found: Found, goal: Goal) -> str:
    """Return why the search has not reached a goal."""
    if goal not in found.refused:
        return "on no path that was tried does a packet or an entry decide it"
    why = found.refused[goal]
    if why.gave_up:
        return "z3 gave up looking for a packet"
    others = sorted(why.contradicts, key=in_order)
    if not others:
        return "excluded on each path that was tried, whatever the packets and entries hold"
    texts = [f"line {place.line} ({_said(kind, outcome)})" for kind, place, outcome in others[:3]]
    return "excluded where packets go by " + ", ".join(texts) + (", ..." if others[3:] else "")


def _lines(lines: set[int]) -> str:
    return f"{'line' if len(lines) == 1 else 'lines'} {ranges(lines)}"


def _said(kind: str, outcome: str) -> str:
    if kind == "line":
        return "the statement"
    if kind == "branch":
        return f"the condition is {outcome}"
    if kind == "case":
        return f"the case {outcome}"
    return f"the lookup finds {outcome.replace('hit ', 'action ').replace('miss', 'no entry')}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 4] + " ..."


def _tail(text: str, width: int) -> str:
    return text if len(text) <= width else "..." + text[3 - width :]
