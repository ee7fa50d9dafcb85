"""The mutants that are made, and those that are not."""

import ast
import os
import sys
from pathlib import Path

import mutants
import pytest

SOURCE = '''"""A text: 1 + 1."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from other import thing

Kind = int | None


@cached(maxsize=3)
def limit(a: "int | None", b, low=2) -> bool:
    """Return 3."""
    if a in (b, low):
        raise ValueError(f"{a + 1} is not {b - 1}")
    log.debug("seen", a)
    store.put(a, b)
    self.kept = a
    twin = replace(a, x=a, y=b)
    return low <= a and not b
'''


def made() -> dict[str, str]:
    """Return the changed line of each mutant, by its kind."""
    maker = mutants.Maker("m.py", SOURCE)
    maker.visit(ast.parse(SOURCE))
    found = {}
    for mutant in maker.found:
        changed = mutant.applied(SOURCE)
        ast.parse(changed)
        found[mutant.kind] = changed.splitlines()[mutant.line - 1].strip()
    return found


def test_each_kind_of_change_is_made_where_it_changes_something() -> None:
    assert made() == {
        "constant": 'def limit(a: "int | None", b, low=(2 + 1)) -> bool:',
        "comparison in not in": "if a not in (b, low):",
        "element b left out": "if a in (low, ):",
        "element low left out": "if a in (b, ):",
        "check left out": "pass",
        "call left out": "pass",
        "arguments swapped": "store.put(b, a)",
        "assignment left out": "pass",
        "field x of a copy left out": "twin = replace(a, y=b)",
        "field y of a copy left out": "twin = replace(a, x=a)",
        "and or and or": "return low <= a or not b",
        "comparison <= <": "return low < a and not b",
        "not left out": "return low <= a and (b)",
    }


def test_a_sample_is_the_same_for_a_seed_and_has_no_mutant_twice() -> None:
    maker = mutants.Maker("m.py", SOURCE)
    maker.visit(ast.parse(SOURCE))
    first = mutants.sample(maker.found, 8, seed=1)
    assert first == mutants.sample(maker.found, 8, seed=1)
    assert len({mutant.name for mutant in first}) == 8
    assert len(mutants.sample(maker.found, 1000, seed=2)) == len(maker.found)


def test_tests_are_ended_by_their_processor_time_with_the_processes_that_they_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mutants, "CLOCK", 60)  # on a busy machine the clock is ahead
    spin = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    budget = mutants.Budget(0.7)
    assert mutants.run([sys.executable, "-c", spin], budget) == (None, "")
    cpu, wall = budget.spent()
    assert cpu > 0.7
    assert wall < 0.7 * mutants.CLOCK


def test_tests_that_wait_for_ever_are_ended_by_the_clock() -> None:
    budget = mutants.Budget(0.3)
    wait = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    code, out = mutants.run([sys.executable, "-Sc", wait], budget)
    assert code is None
    assert budget.spent()[0] < 0.3
    with pytest.raises(ProcessLookupError):
        os.kill(int(out), 0)


def test_what_ends_by_itself_has_its_status_and_what_it_printed() -> None:
    command = [sys.executable, "-c", "print('two failed'); raise SystemExit(3)"]
    assert mutants.run(command, mutants.Budget(30)) == (3, "two failed\n")


def test_verdicts_are_appended_and_read_back_after_a_run_that_was_killed(tmp_path: Path) -> None:
    file = tmp_path / "verdicts"
    slow = mutants.Verdict("codecs/thc.py:3:4 constant", "time over", "", 120.2, 130.0)
    caught = mutants.Verdict("switch/ir/walk.py:3:4 condition", "caught", "t::a", 3.0, 4.5)
    mutants.append(file, slow)
    with file.open("a") as half:
        half.write('{"name": "codecs/th')
    mutants.append(file, caught)
    assert list(mutants.recorded(file).values()) == [slow, caught]
    mutants.append(file, mutants.Verdict(slow.name, "survived", "", 300.0, 310.0))
    assert (
        mutants.summary(mutants.recorded(file).values())
        == """\
    mutants     caught   survived  time over  room
          1          0          1          0  codecs
          1          1          0          0  switch/ir
          2          1          1          0  all
survived: codecs/thc.py:3:4 constant"""
    )


def test_the_nearest_tests_come_first() -> None:
    groups = mutants.nearest_tests(mutants.ROOT, "controller/plan.py")
    assert groups[0] == ["tests/controller/test_plan.py"]
    files = [file for group in groups for file in group]
    assert len(files) == len(set(files))
    assert "tests/controller/test_controller.py" in files
