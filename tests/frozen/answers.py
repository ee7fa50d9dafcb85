"""Compare what the switch's interfaces and the command line answer with what they answered before.

    python tests/frozen/answers.py --check [PATH ...]    run tests, compare with answers.json
    python tests/frozen/answers.py --write [PATH ...]    run tests twice, write answers.json
    python tests/frozen/answers.py --diff PATH [--only TEXT] [--ref REF]   show what changed

PATH is a file or folder of tests, by default those that ask a service or the command line. The
tests run with the plugin recorder.py. A digest is of all records of a test at one interface: of
their sequence; where two runs differ in it, of the bag or of the set of records; where these
differ, too, the test has none there.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from artefacts import last_written, worktree
from recorder import FILE, ROOT

DIGESTS = Path(__file__).with_name("answers.json")
TESTS = (
    "tests/switch/commands", "tests/switch/p4runtime", "tests/switch/bfruntime",
    "tests/switch/externs/test_user_externs_files.py", "tests/switch/stf/test_stf_command.py",
    "tests/switch/frontends/test_forms_of_p4c.py", "tests/cli/test_cli.py",
    "tests/controller/test_bfruntime_connection.py", "tests/controller/test_compression.py",
    "tests/controller/test_controller.py", "tests/fit/test_report.py", "tests/planner/test_plan.py",
)  # fmt: skip
FORMS = ("sequence", "bag", "set")
"""How the records of a test are compared, from the strictest on."""

Records = dict[str, dict[str, list[str]]]
Digests = dict[str, dict[str, str]]


def recorded(paths: Sequence[str], tree: Path = ROOT, seed: str = "0") -> Records:
    """Run tests of a tree with the recorder, and return their records."""
    here = Path(__file__).parent.relative_to(ROOT)
    with tempfile.TemporaryDirectory(prefix="gradplane-frozen-") as folder:
        file = Path(folder) / "answers.json"
        folders = (tree / "src", tree / here)
        environment = {
            **os.environ, FILE: str(file), "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "recorder", *paths]
        subprocess.run(command, cwd=tree, env=environment, stdout=sys.stderr, check=False)
        found: Records = json.loads(file.read_text("utf-8"))
        return found


def digest(records: Sequence[str], form: str) -> str:
    """Return the digest of a test's records at one interface, with the form's name."""
    ordered = {"sequence": list, "bag": sorted, "set": lambda given: sorted(set(given))}
    text = json.dumps(ordered[form](records))
    return f"{form} {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def agreed(first: Records, second: Records) -> Digests:
    """Return the digests of the tests in the strictest form in which two runs agree."""
    made: Digests = {}
    for test in sorted(first.keys() & second.keys()):
        one, other = first[test], second[test]
        for interface in sorted(one.keys() | other.keys()):
            found = _form(one.get(interface, []), other.get(interface, []))
            made.setdefault(test, {})[interface] = found
    return made


def _form(one: Sequence[str], other: Sequence[str]) -> str:
    for form in FORMS:
        if digest(one, form) == digest(other, form):
            return digest(one, form)
    return "changes from run to run"


def changed(records: Records, expected: Digests) -> list[str]:
    """Return the tests, with the interfaces, whose answers are others than before. Tests that are
    new or gone are none: tests come, go and change."""
    lines = []
    for test in sorted(records.keys() & expected.keys()):
        names = [name for name in expected[test] if _differs(records[test], name, expected[test])]
        if names:
            lines.append(f"{test}: {', '.join(names)}")
    return lines


def _differs(records: dict[str, list[str]], interface: str, expected: dict[str, str]) -> bool:
    form = expected[interface].split()[0]
    if form not in FORMS:
        return False
    return digest(records.get(interface, []), form) != expected[interface]


def frozen() -> Digests:
    """Return the committed digests."""
    found: Digests = json.loads(DIGESTS.read_text("utf-8"))
    return found


def write(digests: Digests) -> None:
    """Write the digests, a line a test."""
    lines = [f"{json.dumps(test)}: {json.dumps(of)}" for test, of in sorted(digests.items())]
    DIGESTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def check(paths: Sequence[str]) -> int:
    """Compare the answers with the committed digests; return the exit status.

    Tests that differ run once more: under load, a time-out may make a difference.
    """
    expected = frozen()
    records = recorded(paths)
    lines = changed(records, expected)
    if lines:
        print(f"{len(lines)} differ; once more:", *lines, sep="\n", flush=True)
        again = set(changed(recorded(paths, seed="1"), expected))
        lines = [line for line in lines if line in again]
    print("".join(f"changed: {line}\n" for line in lines), end="")
    new = len(records.keys() - expected.keys())
    print(
        f"{len(records)} tests, {new} not frozen yet, {len(lines)} changed; --diff shows a change"
    )
    return 1 if lines else 0


def diff(paths: Sequence[str], only: str, ref: str | None) -> int:
    """Print how the answers to tests differ from those of a commit; by default, of the one that
    wrote the first digest that differs."""
    new = recorded(paths)
    with worktree(ref or _written(new, only)) as tree:
        old = recorded(paths, tree)
    for test in sorted(old.keys() | new.keys()):
        if only in test:
            before, now = (_lines(records.get(test, {})) for records in (old, new))
            lines = difflib.unified_diff(before, now, f"{test} before", f"{test} now", lineterm="")
            print("".join(f"{line}\n" for line in lines), end="")
    return 0


def _written(records: Records, only: str) -> str:
    """Return the commit that wrote the digests from which these records differ."""
    expected = frozen()
    for line in changed({test: of for test, of in records.items() if only in test}, expected):
        test, interface = line.partition(": ")[0], line.partition(": ")[2].split(", ")[0]
        search = ["git", "-C", str(ROOT), "log", f"-S{expected[test][interface]}", "--format=%H"]
        found = subprocess.run([*search, "--", str(DIGESTS)], stdout=subprocess.PIPE, text=True)
        return found.stdout.split()[-1]
    return last_written(DIGESTS)


def _lines(records: dict[str, list[str]]) -> list[str]:
    texts = [f"{name}: {text}" for name, kept in sorted(records.items()) for text in kept]
    return [line for text in texts for line in text.splitlines()]


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="compare with the committed digests")
    action.add_argument("--write", action="store_true", help="write the digests")
    action.add_argument("--diff", action="store_true", help="show what changed since a commit")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="tests; default: those of services"
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="tests of --diff with this name")
    parser.add_argument(
        "--ref", help="the commit of --diff; default: the one that wrote the digests that differ"
    )
    given = parser.parse_args()
    os.chdir(ROOT)
    paths = given.paths or TESTS
    if given.check:
        return check(paths)
    if given.diff:
        return diff(paths, given.only, given.ref)
    found = agreed(recorded(paths), recorded(paths, seed="1"))
    write({**(frozen() if given.paths and DIGESTS.exists() else {}), **found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
