"""Change the package in one small place, run the nearest tests, and see whether they notice.

    python scripts/mutants.py --count 20 --seed 1 [--only PATTERN]  a sample, e.g. --only 'codecs/*'
    python scripts/mutants.py --mutant 'codecs/bits.py:41:12 *'     by name, or a pattern of names
    python scripts/mutants.py --list --only PATTERN                 names only
    python scripts/mutants.py --count 500 --out FILE                append verdicts; again: go on
    python scripts/mutants.py --summary FILE                        count them by room

A mutant changes an operator, the bound of a comparison, a condition, a constant by one, or the
order of two arguments; or it leaves out a statement, an assignment to a field, a check, or a field
of a copy. Texts, annotations, code for type checkers, decorators, log lines and what only makes
things faster are not changed. The tests of a module run nearest first: those named after it, those
that import it, those of its folder, those of its room. They run in a temporary copy of the tree
with a cache of its own; nothing is changed in place.

The tests of a mutant may use SECONDS of processor time, with all processes that they start, so that
the verdict does not depend on what else the machine does. Tests that wait for ever end after five
times as long on the clock.

A mutant is caught if a test fails that passes without it, which is tried at once; a test that fails
in any case is left out from then on. It survived if all passed. Else the time was over.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import fnmatch
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/gradplane")
SECONDS = 120
CLOCK = 5
"""Seconds on the clock for each of processor time, for tests that wait for ever."""
POLL = 0.5
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradplane"
LEFT_OUT = (
    "switch/garbage_pause.py",
    "switch/disk_cache.py",
    "switch/program_cache.py",
    "*_cache.py",
)
"""Modules that only make things faster."""
QUIET_CALLS = re.compile(
    r"^(log|logger|logging|print|warnings|gc|console|progress)\b|\.(join|flush)$"
)
"""Calls whose loss changes no result."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
CACHES = re.compile(r"cache|memo|hint|slots|__all__", re.IGNORECASE)

BINARY = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*", ast.Mod: "//", ast.LShift: ">>",
    ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "&", ast.Div: "*",
}  # fmt: skip
COMPARE = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
MACHINE = {
    "add": "sub", "sub": "add", "and": "or", "or": "and", "eq": "ne", "ne": "eq", "ult": "ule",
    "ule": "ult", "ugt": "uge", "uge": "ugt", "slt": "sle", "sle": "slt", "shl": "lshr",
    "lshr": "shl", "zext": "sext", "sext": "zext",
}  # fmt: skip
"""LLVM's operators, which the engine writes as texts."""
SYMBOL = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.LShift: "<<",
    ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Div: "/",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change: the characters `start` to `end` of a module's text become `text`."""

    module: str  # relative to the package
    line: int
    column: int
    kind: str
    start: int
    end: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line}:{self.column} {self.kind}"

    def applied(self, source: str) -> str:
        """Return the module's text with the change."""
        return source[: self.start] + self.text + source[self.end :]

    def diff(self, source: str) -> str:
        """Return the change as a unified diff."""
        old, new = source.splitlines(), self.applied(source).splitlines()
        return "\n".join(difflib.unified_diff(old, new, self.module, self.kind, "", "", 1, ""))


# -- making mutants -------------------------------------------------------------------------------


class Maker(ast.NodeVisitor):
    """Gathers the mutants of a module."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source
        self.found: list[Mutant] = []
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._bytes = [line.encode() for line in source.splitlines(keepends=True)]

    # what is left alone

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Skip the annotation; fields of classes and constants have values."""
        if node.value is not None and not CACHES.search(ast.unparse(node.target)):
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip texts."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Leave the check out; the error's text is not changed."""
        if node.exc is not None:
            self._add(node, "check left out", "pass")

    def visit_Assert(self, node: ast.Assert) -> None:
        """Skip what only an error in the package itself reaches."""

    def visit_If(self, node: ast.If) -> None:
        """Negate the condition; skip code for type checkers."""
        if "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.orelse:
                self.visit(statement)
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """Leave the condition: without it loops do not end."""
        for statement in node.body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Change the body and the defaults only."""
        if node.name in ("__repr__", "__str__", "__hash__"):
            return
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Change the body only."""
        for statement in node.body:
            self.visit(statement)

    # expressions

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Change the operator of numbers and sets; `+` and `%` of texts and lists stay."""
        parts = (node.left, node.right)
        if any(isinstance(part, (ast.List, ast.Tuple)) or _is_text(part) for part in parts):
            return
        if not (isinstance(node.op, ast.BitOr) and any(map(_is_type, parts))):
            self._swap(*parts, node.op, BINARY.get(type(node.op)), "operator")
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Change each comparison."""
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self._swap(left, right, operator, COMPARE[type(operator)], "comparison")
            self._leave_out_elements(operator, right)
            left = right
        self.generic_visit(node)

    def _leave_out_elements(self, operator: ast.cmpop, right: ast.expr) -> None:
        """Leave each element of a short list out that a value is looked for in."""
        if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, ast.Tuple):
            for left_out in right.elts:
                kept = "".join(f"{self._text(e)}, " for e in right.elts if e is not left_out)
                self._add(right, f"element {ast.unparse(left_out)} left out", f"({kept})")

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Change the first `and` to `or`, or the other way round."""
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self._between(node.values[0], node.values[1], word, other, "and or")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Leave a `not` out."""
        if isinstance(node.op, ast.Not):
            self._add(node, "not left out", f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Negate the condition."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change a number by one, and a truth value to the other."""
        if isinstance(node.value, bool):
            self._add(node, "truth value", str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, "constant", f"({self._text(node)} + 1)")

    def visit_keyword(self, node: ast.keyword) -> None:
        """Skip `strict`, which only an error in the package itself reaches."""
        if node.arg != "strict":
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Swap the first two arguments; leave a field of a copy out."""
        if QUIET_CALLS.search(ast.unparse(node.func)):
            return
        plain = [a for a in node.args[:2] if isinstance(a, (ast.Name, ast.Attribute))]
        if len(plain) == 2 and self._text(plain[0]) != self._text(plain[1]):
            swapped = f"{self._text(plain[1])}, {self._text(plain[0])}"
            self._add_range(plain[0], plain[1], "arguments swapped", swapped)
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and first.value in MACHINE:
            self._add(first, f"machine operator {first.value}", f'"{MACHINE[first.value]}"')
        if ast.unparse(node.func).endswith("replace") and node.keywords:
            self._leave_out_keywords(node)
        self.generic_visit(node)

    def _leave_out_keywords(self, node: ast.Call) -> None:
        for left_out in node.keywords:
            parts = [*node.args, *(word for word in node.keywords if word is not left_out)]
            inside = ", ".join(map(self._text, parts))
            text = f"{self._text(node.func)}({inside})"
            self._add(node, f"field {left_out.arg} of a copy left out", text)

    # statements

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave a call out; skip texts."""
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call) and not QUIET_CALLS.search(
            ast.unparse(node.value.func)
        ):
            self._add(node, "call left out", "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Leave it out."""
        if not _is_text(node.value) and not isinstance(node.value, ast.JoinedStr):
            self._add(node, "statement left out", "pass")
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Leave an assignment to a field or an element out."""
        target = node.targets[0]
        if CACHES.search(ast.unparse(target)):
            return
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            self._add(node, "assignment left out", "pass")
        self.visit(node.value)

    # positions

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, (ast.Compare, ast.UnaryOp)):  # these are changed by themselves
            self._add(test, "condition", f"(not ({self._text(test)}))")

    def _swap(
        self, left: ast.expr, right: ast.expr, operator: ast.AST, new: str | None, kind: str
    ) -> None:
        if new is not None:
            self._between(left, right, SYMBOL[type(operator)], new, kind)

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str, kind: str) -> None:
        """Replace the operator that stands between two expressions."""
        start, end = self._end(left), self._start(right)
        gap = self.source[start:end]
        at = re.search(r"\s+".join(map(re.escape, old.split())), gap)
        if at is not None and "#" not in gap:
            line, column = self._place(start + at.start())
            begin = start + at.start()
            stop = start + at.end()
            self.found.append(
                Mutant(self.module, line, column, f"{kind} {old} {new}", begin, stop, new)
            )

    def _add(self, node: ast.AST, kind: str, text: str) -> None:
        self._add_range(node, node, kind, text)

    def _add_range(self, first: ast.AST, last: ast.AST, kind: str, text: str) -> None:
        start, end = self._start(first), self._end(last)
        line, column = self._place(start)
        self.found.append(Mutant(self.module, line, column, kind, start, end, text))

    def _start(self, node: ast.AST) -> int:
        return self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _offset(self, line: int, column: int) -> int:
        return self._lines[line - 1] + len(self._bytes[line - 1][:column].decode())

    def _place(self, offset: int) -> tuple[int, int]:
        line = self.source.count("\n", 0, offset) + 1
        return line, offset - self._lines[line - 1] + 1

    def _text(self, node: ast.AST) -> str:
        return self.source[self._start(node) : self._end(node)]


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _is_type(node: ast.expr) -> bool:
    """Return whether an expression is a type, as in an alias of several."""
    text = ast.unparse(node)
    return text[:1].isupper() or text in ("None", "int", "str", "bytes", "bool", "float")


def mutants(root: Path, only: str) -> list[Mutant]:
    """Return all mutants of the modules whose path within the package matches a pattern."""
    found: list[Mutant] = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        module = path.relative_to(root / PACKAGE).as_posix()
        if _matches(module, only.split(",")) and not _matches(module, LEFT_OUT):
            source = path.read_text("utf-8")
            maker = Maker(module, source)
            maker.visit(ast.parse(source))
            found += maker.found
    return found


def _matches(module: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatch(module, pattern) for pattern in patterns)


def sample(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Choose mutants, of each kind of change as many as of another, as far as there are so many."""
    rng = random.Random(seed)
    kinds = defaultdict(list)
    for mutant in found:
        kinds[mutant.kind.split()[0]].append(mutant)
    chosen: list[Mutant] = []
    while kinds and len(chosen) < count:
        kind = rng.choice(sorted(kinds))
        chosen.append(kinds[kind].pop(rng.randrange(len(kinds[kind]))))
        if not kinds[kind]:
            del kinds[kind]
    return chosen


# -- running tests --------------------------------------------------------------------------------


def nearest_tests(root: Path, module: str) -> list[list[str]]:
    """Return groups of test files for a module, the nearest group first; no file is in two."""
    path, tests = Path(module), root / "tests"
    dotted = ".".join(("gradplane", *path.with_suffix("").parts)).removesuffix(".__init__")
    files = {file: file.read_text("utf-8") for file in sorted(tests.rglob("test_*.py"))}
    named = [
        file for file in files
        if file.stem == f"test_{path.stem.strip('_')}" and path.parts[0] in file.parts
    ]  # fmt: skip
    pattern = re.compile(
        rf"{re.escape(dotted)}\b|from {re.escape(dotted.rpartition('.')[0])} import"
        rf" [^\n]*\b{path.stem}\b"
    )
    groups: list[Iterable[Path]] = [named, [f for f, text in files.items() if pattern.search(text)]]
    folder = path.parent
    while folder != Path("."):
        inside = tests / folder
        groups.append(f for f in files if f.parent == inside)
        groups.append(f for f in files if inside in f.parents)
        folder = folder.parent
    groups.append(f for f in files if f.parent == tests / "switch" and path.parts[0] == "switch")
    seen: set[Path] = set()
    made = []
    for group in groups:
        fresh = [file for file in group if file not in seen]
        seen.update(fresh)
        if fresh:
            made.append([file.relative_to(root).as_posix() for file in fresh])
    return made


@dataclass(frozen=True)
class Verdict:
    """The fate of a mutant: "caught", "survived" or "time over"."""

    name: str
    verdict: str
    by: str  # the test that failed
    cpu: float  # seconds of processor time
    wall: float  # seconds on the clock

    @property
    def room(self) -> str:
        """Return the module's room; in the switch, its stage."""
        folders = Path(self.name.partition(":")[0]).parts[:-1]
        return "/".join(folders[: 2 if folders[:1] == ("switch",) else 1]) or "."


class Budget:
    """The time that is left for some tests: of the processor, and on the clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._cpu, self._start = seconds, _children_cpu(), time.monotonic()
        self._seen = 0.0

    def spent(self) -> tuple[float, float]:
        """Return the processor time, of killed processes as last seen, and that on the clock."""
        return max(self._seen, _children_cpu() - self._cpu), time.monotonic() - self._start

    def over(self, running: float) -> bool:
        """Return whether it is used up; `running` is the processor time of what still runs."""
        self._seen = max(self._seen, _children_cpu() - self._cpu + running)
        return self._seen > self._seconds or self.spent()[1] > self._seconds * CLOCK


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tree(root: int) -> dict[int, float]:
    """Return a process and its descendants, with the processor time of each and of those of its
    children that ended; what was started and left behind counts by its session."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, tuple[int, int, float]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
            cpu = sum(map(int, fields[11:15])) / ticks
            parents[int(stat.parent.name)] = int(fields[1]), int(fields[3]), cpu
    found = {root} & parents.keys()
    while more := {
        pid for pid, (parent, session, _) in parents.items()
        if pid not in found and (parent in found or session == root)
    }:  # fmt: skip
        found |= more
    return {pid: parents[pid][2] for pid in found}


def run(command: Sequence[str], budget: Budget, **options: Any) -> tuple[int | None, str]:
    """Run a command within a budget; return the exit status, None if the time was over, and what
    was printed. No process of it is left."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out,
        subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **options
        ) as process,
    ):
        code = None
        try:
            while code is None and not budget.over(sum(tree(process.pid).values())):
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(POLL)
        finally:
            _end(process.pid)
            _end(process.pid)  # what was started meanwhile
        out.seek(0)
        return code, out.read()


def _end(root: int) -> None:
    for pid in tree(root):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Copy:
    """A temporary copy of the tree, in which mutants are made."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "tree"
        self._cache = folder / "cache"
        self._fails_anyway: dict[str, bool] = {}
        self._written = int(time.time())
        skipped = shutil.ignore_patterns(".git", ".venv", "site", "*.egg-info")
        shutil.copytree(root, self.root, symlinks=True, ignore=skipped)
        if (CACHE / "kernels").is_dir():
            shutil.copytree(CACHE / "kernels", self._cache / "gradplane/kernels")

    def judge(self, mutant: Mutant, seconds: float, tests: Sequence[str] = ()) -> Verdict:
        """Run some tests with the mutant in place; by default the nearest ones."""
        path = self.root / PACKAGE / mutant.module
        source, status = path.read_text("utf-8"), path.stat()
        groups = [tests] if tests else nearest_tests(self.root, mutant.module)
        cpu = wall = 0.0
        while True:
            budget = Budget(seconds)
            self._write(path, mutant.applied(source))
            self._forget(mutant.module)
            try:
                failed, over = self._first_failure(groups, budget)
            finally:
                path.write_text(source, "utf-8")
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
                self._forget(mutant.module)
            cpu, wall = (sum(pair) for pair in zip((cpu, wall), budget.spent(), strict=True))
            if not failed or not self._fails_in_any_case(failed):
                verdict = "caught" if failed else "time over" if over else "survived"
                return Verdict(mutant.name, verdict, failed, round(cpu, 1), round(wall, 1))

    def _write(self, path: Path, text: str) -> None:
        """Write a module; each time a second later, which is what bytecode files know it by."""
        path.write_text(text, "utf-8")
        self._written += 1
        os.utime(path, (self._written, self._written))

    def _forget(self, module: str) -> None:
        """Remove what is cached, but for machine code, whose name says all that it depends on."""
        for kind in (self._cache / "gradplane").glob("*"):
            if kind.name not in ("kernels", "jit") or module.startswith(("_ker", "switch/jit")):
                shutil.rmtree(kind) if kind.is_dir() else kind.unlink()

    def _first_failure(self, groups: Iterable[Sequence[str]], budget: Budget) -> tuple[str, bool]:
        """Return the first test that fails, if one does, and whether the time was over before."""
        left_out = {test for test, fails in self._fails_anyway.items() if fails}
        for group in groups:
            if tests := [test for test in group if test not in left_out]:
                code, out = self._pytest(tests, budget, *map(_left_out, left_out))
                if code is None:
                    return "", True
                if code not in (0, 5):
                    return next(iter(_FAILED.findall(out)), group[0]), False
        return "", False

    def _fails_in_any_case(self, test: str) -> bool:
        if test not in self._fails_anyway:
            code, _ = self._pytest([test], Budget(SECONDS))
            self._fails_anyway[test] = code not in (0, 4, 5)  # 4: there is no test of this name
            if self._fails_anyway[test]:
                print(f"{test} fails without any mutant: it is left out")
        return self._fails_anyway[test]

    def _pytest(self, tests: Sequence[str], budget: Budget, *more: str) -> tuple[int | None, str]:
        environment = {
            **os.environ, "PYTHONPATH": str(self.root / "src"), "XDG_CACHE_HOME": str(self._cache)
        }  # fmt: skip
        options = ["-q", "-x", "-n", "0", "--no-header", *more]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        return run(command, budget, cwd=self.root, env=environment)


def _left_out(test: str) -> str:
    return f"--deselect={test}" if "::" in test else f"--ignore={test}"


# -- verdicts -------------------------------------------------------------------------------------


def recorded(path: Path) -> dict[str, Verdict]:
    """Return the verdicts in a file by mutant, the last of each; half a line, of a run that was
    killed, is not one."""
    found = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        with suppress(json.JSONDecodeError):
            verdict = Verdict(**json.loads(line))
            found[verdict.name] = verdict
    return found


def append(path: Path, verdict: Verdict) -> None:
    """Write a verdict at the end of a file, in a line of its own."""
    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        half_a_line = file.read()[-1:] not in ("", "\n")
        file.write("\n" * half_a_line + json.dumps(asdict(verdict)) + "\n")


def summary(verdicts: Iterable[Verdict]) -> str:
    """Return how many mutants were caught, by room, and those that were not."""
    verdicts = sorted(verdicts, key=lambda each: (each.verdict, each.name))
    kinds = ("caught", "survived", "time over")
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for each in verdicts:
        rooms[each.room][each.verdict] += 1
    whole = sum(rooms.values(), Counter())
    lines = ["".join(f"{title:>11}" for title in ("mutants", *kinds)) + "  room"]
    for room, counts in [*sorted(rooms.items()), ("all", whole)]:
        numbers = (counts.total(), *(counts[kind] for kind in kinds))
        lines.append("".join(f"{number:>11}" for number in numbers) + f"  {room}")
    lines += [f"{each.verdict}: {each.name}" for each in verdicts if each.verdict != "caught"]
    return "\n".join(lines)


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="modules, as 'codecs/*,planner/*'"
    )
    parser.add_argument("--mutant", metavar="NAME", help="those of this name or pattern")
    parser.add_argument("--list", action="store_true", help="print the names of all")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of processor time for a mutant's tests"
    )
    parser.add_argument("--tests", nargs="*", default=(), metavar="TEST", help="run these only")
    parser.add_argument(
        "--out", type=Path, metavar="FILE",
        help="append each verdict there, a line of JSON; do not try again what is there",
    )  # fmt: skip
    parser.add_argument("--retry", action="store_true", help="try those again whose time was over")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="count the verdicts of a file")
    given = parser.parse_args()
    if given.summary is not None:
        print(summary(recorded(given.summary).values()))
        return 0
    found = mutants(ROOT, given.only)
    if given.list:
        print("\n".join(mutant.name for mutant in found))
        return 0
    chosen = sample(found, given.count, given.seed)
    if given.mutant:
        chosen = [mutant for mutant in found if fnmatch.fnmatch(mutant.name, given.mutant)]
    known = recorded(given.out) if given.out else {}
    done = {n: v for n, v in known.items() if not (given.retry and v.verdict == "time over")}
    verdicts = {m.name: done[m.name] for m in chosen if m.name in done}
    with tempfile.TemporaryDirectory(prefix="gradplane-mutants-") as folder:
        copy = Copy(ROOT, Path(folder))
        for mutant in chosen:
            if mutant.name not in done:
                verdict = copy.judge(mutant, given.seconds, given.tests)
                verdicts[mutant.name] = verdict
                if given.out:
                    append(given.out, verdict)
                _show(verdict, mutant)
    print(summary(verdicts.values()))
    return 0


def _show(verdict: Verdict, mutant: Mutant) -> None:
    spent = f"{verdict.cpu:>6} s of {verdict.wall:>6} s"
    print(f"{verdict.verdict:<9} {spent}  {verdict.name}  {verdict.by}")
    if verdict.verdict != "caught":
        print(mutant.diff((ROOT / PACKAGE / mutant.module).read_text("utf-8")))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
