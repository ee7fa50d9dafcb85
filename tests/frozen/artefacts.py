"""Write and compare what the compiler makes of every P4 program of the tree, byte for byte.

    python tests/frozen/artefacts.py --check [--only PATTERN]   compare with artefacts.json
    python tests/frozen/artefacts.py --write [--only PATTERN]   write artefacts.json
    python tests/frozen/artefacts.py --show NAME                print a program's artefacts
    python tests/frozen/artefacts.py --diff NAME [--ref REF]    show what changed since REF

The artefacts of a program are the text of `gradplane p4 ir`, the warnings, P4Info, bf-rt.json,
BMv2's JSON and the P4Info that goes with it, each where its architecture has it, or the refusal's
text.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import fnmatch
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from p4_sources import ROOT, P4Source, sources

DIGESTS = Path(__file__).with_name("artefacts.json")
SHORT = 12  # characters of a digest
LISTED = 30  # names of new programs that a comparison prints
BMV2 = ("v1model", "psa")  # architectures that BMv2's JSON is written for

Artefacts = dict[str, str]
Digests = dict[str, dict[str, str]]


def artefacts(source: P4Source) -> Artefacts:
    """Return all artefacts of a program, by name. The cache of compiled programs is not used."""
    from gradplane.switch.source import CompileError

    made: Artefacts = {}
    try:
        for name, text in _stages(source):
            made[name] = _normalised(text)
    except CompileError as error:
        made["refusal"] = _normalised(str(error))
    return made


def _stages(source: P4Source) -> Iterator[tuple[str, str]]:
    """Yield the artefacts that a program has, with their names. Raises CompileError."""
    from gradplane.experiment import p4_programs
    from gradplane.switch.arch.registry import architecture
    from gradplane.switch.ir.printer import program_text

    compiled = _compiled(source, ())
    yield "ir", program_text(compiled.program, spaced=True)
    if compiled.warnings:
        lines = compiled.reporter.lines
        yield "warnings", "\n".join(warning.render(lines) for warning in compiled.warnings)
    name = architecture(None, compiled.program).name
    whole = pickle.dumps(compiled.program, 5)  # checking prepares a program in place
    p4_programs.check(compiled)
    yield "p4info", p4_programs.p4info(compiled.program)
    if name == "tna":
        yield "bf-rt", p4_programs.bfrt_info(compiled.program)
    elif name in BMV2:
        yield from _for_bmv2(source, dataclasses.replace(compiled, program=pickle.loads(whole)))


def _for_bmv2(source: P4Source, compiled: Any) -> Iterator[tuple[str, str]]:
    """Yield what BMv2 loads, and the P4Info that goes with it. compiled: without BMv2's macros."""
    from gradplane.experiment import p4_programs
    from gradplane.switch import backends

    macros = backends.macros("bmv2")
    read = "".join(filter(None, compiled.reporter.read.values()))
    if any(macro in read for macro in macros):
        compiled = _compiled(source, [f"{macro}={value}" for macro, value in macros.items()])
    yield "bmv2", p4_programs.compiled_for("bmv2", compiled)
    yield "bmv2 p4info", p4_programs.p4info(compiled.program, "bmv2")


def _compiled(source: P4Source, macros: Sequence[str]) -> Any:
    from gradplane._shipped_programs import INCLUDE_DIRS
    from gradplane.switch.compiler import compile_source

    file = Path(source.file)
    return compile_source(file, INCLUDE_DIRS, macros, source.text, library=True)


def _normalised(text: str) -> str:
    """Leave out the folders of absolute paths: the checkout, and the package's include files,
    which may move within it."""
    return re.sub(rf"{re.escape(str(ROOT))}/(?:[\w.-]+/)*", "", text)


def digests(chosen: Sequence[P4Source]) -> Digests:
    """Return the digests of the programs' artefacts."""
    return {
        source.name: {name: _digest(text) for name, text in artefacts(source).items()}
        for source in chosen
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:SHORT]


def frozen() -> Digests:
    """Return the committed digests."""
    found: Digests = json.loads(DIGESTS.read_text("utf-8"))
    return found


def differences(found: Digests, expected: Digests) -> list[str]:
    """Return a line for each program whose artefacts are others than `expected`. A program that
    is in one of the two only is no difference: tests come, go and change."""
    lines = []
    for name in sorted(found.keys() & expected.keys()):
        new, old = found[name], expected[name]
        changed = [kind for kind in sorted(new | old) if new.get(kind) != old.get(kind)]
        if changed:
            lines.append(f"{name}: {', '.join(changed)}")
    return lines


def write(digests: Digests) -> None:
    """Write the digests, a line a program."""
    lines = [f"{json.dumps(name)}: {json.dumps(of)}" for name, of in sorted(digests.items())]
    DIGESTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def check(chosen: Sequence[P4Source]) -> int:
    """Compare the programs with the committed digests; return the exit status."""
    found, expected = digests(chosen), frozen()
    lines = differences(found, expected)
    print("\n".join(f"changed: {line}" for line in lines))
    new = sorted(found.keys() - expected.keys())
    if new:
        print(f"not frozen yet ({len(new)}; --write does): {', '.join(new[:LISTED])}")
    print(f"{len(found)} programs, {len(lines)} changed; --diff NAME shows a change")
    return 1 if lines else 0


def diff(name: str, ref: str) -> int:
    """Print how a program's artefacts differ from those that the tree of `ref` makes of it."""
    with worktree(ref) as folder:
        old = shown(folder, name)
    new = shown(ROOT, name)
    lines = difflib.unified_diff(old, new, ref, "now", lineterm="")
    print("\n".join(lines) or f"{name}: no difference from {ref}")
    return 0


def shown(tree: Path, name: str) -> list[str]:
    """Return the lines of a program's artefacts, as the script and the package of `tree` make
    them."""
    script = tree / Path(__file__).relative_to(ROOT)
    command = [sys.executable, str(script), "--show", name]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    return ran.stdout.splitlines()


@contextmanager
def worktree(ref: str) -> Iterator[Path]:
    """Check a commit out into a temporary folder for the time of the block."""
    with tempfile.TemporaryDirectory(prefix="gradplane-frozen-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), ref], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def last_written(file: Path) -> str:
    """Return the commit that wrote a file last."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%H", "--", str(file)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return found or "HEAD"


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="compare with the committed digests")
    action.add_argument("--write", action="store_true", help="write the digests")
    action.add_argument("--show", metavar="NAME", help="print a program's artefacts")
    action.add_argument("--diff", metavar="NAME", help="compare a program with a commit's")
    parser.add_argument("--only", metavar="PATTERN", default="*", help='programs, as "*psa*"')
    parser.add_argument("--ref", help="the commit of --diff; default: the last that wrote digests")
    given = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))  # this tree's package, whichever is installed
    if given.diff:
        return diff(given.diff, given.ref or last_written(DIGESTS))
    pattern = given.show or given.only
    chosen = [s for s in sources() if s.name == pattern or fnmatch.fnmatch(s.name, pattern)]
    if not chosen:
        parser.error(f"no program is named {pattern}")
    if given.check:
        return check(chosen)
    if given.write:
        write({**(frozen() if given.only != "*" else {}), **digests(chosen)})
        return 0
    for source in chosen:
        for name, text in artefacts(source).items():
            print(f"=== {source.name}: {name}\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
