"""Change the package in one small place, run the nearest tests, and see whether they notice.

    python scripts/mutants.py --count 20 --seed 1 [--only PATTERN]  a sample, e.g. --only 'codecs/*'
    python scripts/mutants.py --mutant 'codecs/bits.py:41:12 *'     by name, or a pattern of names
    python scripts/mutants.py --list --only PATTERN                 names only

A mutant changes an operator, the bound of a comparison, a condition, a constant by one, or the
order of two arguments; or it leaves out a statement, an assignment to a field, a check, or a field
of a copy. Texts, annotations, code for type checkers, decorators, log lines and what only makes
things faster are not changed. The tests of a module run nearest first, at most SECONDS long: those
named after it, those that import it, those of its folder, those of its room. They run in a
temporary copy of the tree with a cache of its own; nothing is changed in place.

A mutant is caught if a test fails that passes without it (which is tried at the end); it survived
if all passed, or if the time was over (then it says so).
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
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/gradplane")
SECONDS = 120
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
    """Return the fate of a mutant: "caught", "survived" or "survived so far" (time was over)."""

    name: str
    verdict: str
    by: str
    seconds: float


class Copy:
    """A temporary copy of the tree, in which mutants are made."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "tree"
        self._cache = folder / "cache"
        skipped = shutil.ignore_patterns(".git", ".venv", "site", "*.egg-info")
        shutil.copytree(root, self.root, symlinks=True, ignore=skipped)

    def judge(self, mutant: Mutant, seconds: float, tests: Sequence[str] = ()) -> Verdict:
        """Run some tests with the mutant in place; by default the nearest ones."""
        path = self.root / PACKAGE / mutant.module
        source = path.read_text("utf-8")
        path.write_text(mutant.applied(source), "utf-8")
        self._forget_kernels(mutant, source)
        start = time.monotonic()
        try:
            groups = [tests] if tests else nearest_tests(self.root, mutant.module)
            failed, over = self._first_failure(groups, start + seconds)
        finally:
            path.write_text(source, "utf-8")
            self._forget_kernels(mutant, source)
        spent = time.monotonic() - start
        verdict = "caught" if failed else "survived so far" if over else "survived"
        return Verdict(mutant.name, verdict, failed, round(spent, 1))

    def _first_failure(self, groups: Iterable[Sequence[str]], deadline: float) -> tuple[str, bool]:
        """Return the first test that fails, if one does, and whether the time was over before."""
        for group in groups:
            code, out = self._pytest(group, deadline - time.monotonic())
            if code is None:
                return "", True
            if code not in (0, 5):
                return next(iter(_FAILED.findall(out)), group[0]), False
        return "", False

    def failing(self, tests: Sequence[str]) -> set[str]:
        """Return those of some tests that fail without any mutant, too: they say nothing."""
        if not tests:
            return set()
        code, out = self._pytest(sorted(set(tests)), SECONDS * len(tests), stop=False)
        return set(tests) & set(_FAILED.findall(out)) if code != 0 else set()

    def _pytest(
        self, tests: Sequence[str], seconds: float, stop: bool = True
    ) -> tuple[int | None, str]:
        """Return the exit status, None if the time was over, and what was printed."""
        shutil.rmtree(self._cache, ignore_errors=True)
        environment = {
            **os.environ, "PYTHONPATH": str(self.root / "src"), "XDG_CACHE_HOME": str(self._cache),
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        options = ["-q", "-n", "0", "--no-header", *(["-x"] if stop else [])]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        with subprocess.Popen(
            command, cwd=self.root, env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                out, _ = process.communicate(timeout=max(seconds, 1))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return None, ""
            return process.returncode, out

    def _forget_kernels(self, mutant: Mutant, source: str) -> None:
        """Remove Numba's kept kernels, which may have a changed function inside."""
        if "numba" in source or "njit" in source:
            for kept in (self.root / PACKAGE).rglob("*.nb[ci]"):
                kept.unlink()


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
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of tests for a mutant")
    parser.add_argument("--tests", nargs="*", default=(), metavar="TEST", help="run these only")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write verdicts there (JSON)")
    given = parser.parse_args()
    found = mutants(ROOT, given.only)
    if given.list:
        print("\n".join(mutant.name for mutant in found))
        return 0
    chosen = sample(found, given.count, given.seed)
    if given.mutant:
        chosen = [mutant for mutant in found if fnmatch.fnmatch(mutant.name, given.mutant)]
    with tempfile.TemporaryDirectory(prefix="gradplane-mutants-") as folder:
        copy = Copy(ROOT, Path(folder))
        verdicts = list(_judged(copy, chosen, given.seconds, given.tests))
        failing = copy.failing([v.by for v in verdicts if v.by])
    for verdict in verdicts:
        if verdict.by in failing:
            print(f"not caught by {verdict.by}, which fails in any case: {verdict.name}")
    verdicts = [v for v in verdicts if v.by not in failing]
    caught = sum(v.verdict == "caught" for v in verdicts)
    print(f"{len(verdicts)} mutants, {caught} caught, {len(verdicts) - caught} survived")
    if given.out is not None:
        given.out.write_text(json.dumps([vars(v) for v in verdicts], indent=1), "utf-8")
    return 0


def _judged(
    copy: Copy, chosen: Sequence[Mutant], seconds: float, tests: Sequence[str]
) -> Iterator[Verdict]:
    for mutant in chosen:
        source = (copy.root / PACKAGE / mutant.module).read_text("utf-8")
        verdict = copy.judge(mutant, seconds, tests)
        print(f"{verdict.verdict:<16} {verdict.seconds:>6} s  {verdict.name}  {verdict.by}")
        if verdict.verdict != "caught":
            print(mutant.diff(source))
        sys.stdout.flush()
        yield verdict


if __name__ == "__main__":
    sys.exit(main())
