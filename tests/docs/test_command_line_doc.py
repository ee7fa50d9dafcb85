"""docs/command-line.md: errors are printed as they stand there, and its schema of summary.json is
that of runs."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gradplane.cli import main
from gradplane.runs.records.summary import Summary

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
FILES = re.findall(r"^```\w+ (wrong\.\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
_FIRST, *BLOCKS = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
EXAMPLES = [
    example for block in BLOCKS for example in re.split(r"^\$ gradplane ", block, flags=re.M)
]
SCHEMA = TEXT.partition("## summary.json")[2]


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e], ids=lambda e: e.splitlines()[0])
def test_an_error_is_as_it_stands_there(
    example: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line, _, expected = example.partition("\n")
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "dumb")
    with pytest.raises(SystemExit) as ended:
        main.main(line.split())
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2 if "Usage:" in expected else 1, "")
    assert err == expected


def rows() -> Iterator[tuple[str, str]]:
    """Yield each option of the table of what is printed, with each command that has it."""
    table = TEXT.partition("## What is printed")[2].partition("## ")[0]
    for options, commands in re.findall(r"^\| (`.*?) \| (`.*?) \|", table, re.MULTILINE):
        for option in re.findall(r"`([^`]+)`", options):
            yield from ((option, command) for command in re.findall(r"`([^`]+)`", commands))


@pytest.mark.parametrize(("option", "command"), list(rows()))
def test_a_command_has_the_option(
    option: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main.main([*(word for word in command.split() if word[0] != "-"), "--help"])
    assert re.search(rf"(?m)[ │,]{option}\b", capsys.readouterr().out)


def names() -> Iterator[str]:
    """Yield the keys of the page's table, in full: `.b` after `a.c` is `a.b`."""
    for cell in re.findall(r"^\| (`.*?) \|", SCHEMA, re.MULTILINE):
        first, *rest = re.findall(r"`([^`]+)`", cell)
        yield first
        for other in rest:
            yield first.rpartition(".")[0] + other if other.startswith(".") else other


PATTERNS = [
    re.compile(re.sub(r"[A-Z]+", r"[^.]+", re.escape(name.replace("[]", ""))) + r"(\..*)?")
    for name in names()
]


def keys(value: Any, name: str = "") -> Iterator[str]:
    """Yield the names of all values in a summary."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from keys(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, name)
    else:
        yield name


def test_the_schema_has_every_key_of_a_summary(
    small_run: Callable[..., Summary], lossy_run: Summary
) -> None:
    target = small_run("output.target_accuracy=0.01", "output.baseline=true")
    for run in (lossy_run, target):
        unknown = {k for k in keys(run.values) if not any(p.fullmatch(k) for p in PATTERNS)}
        assert not unknown
    other = re.compile(
        r"losses_injected|loss_lists|jobs.\.(device|lost)|switches.*(compression|counters)|background|clocks|restarted"
    )
    unmet = [p.pattern for p in PATTERNS if not any(p.fullmatch(k) for k in keys(target.values))]
    assert not [pattern for pattern in unmet if not other.match(pattern)]
