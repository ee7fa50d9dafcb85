"""The pragma `stage` of tables: the stage where a table, or a number of its entries, shall be.

`@stage(4, 1024) @stage(6)` asks for 1024 entries in stage 4 and the rest in stage 6. As for the
chip's compiler, a table is in no stage before the one asked for, and in a later one if it must.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gradplane.fit.chip_resources import ChipResources, Overrun
from gradplane.fit.logical_tables import LogicalTable
from gradplane.fit.table_formats import size_of
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Annotation
from gradplane.switch.source import NOWHERE, Span

NAME = "stage"
FLAGS = {"immediate", "noimmediate"}
WAY_OUT = "write @stage(number), or @stage(number, entries), or leave the pragma out"


@dataclass(frozen=True, slots=True)
class AskedStage:
    """A stage that a table asks for; entries: how many there, 0 for all that are left."""

    stage: int
    entries: int
    span: Span


class _Wrong(Exception):
    """What is wrong with a pragma."""


def asked_stages(table: ir.Table | None, chip: ChipResources) -> list[AskedStage]:
    """Return the stages that a table asks for, the first one first; pragmas that are wrong ask for
    nothing."""
    found = []
    for pragma in _pragmas(table):
        try:
            found.append(_read(pragma, chip))
        except _Wrong:
            continue
    return sorted(found, key=lambda asked: asked.stage)


def wrong_stages(tables: Iterable[LogicalTable], chip: ChipResources) -> Iterator[Overrun]:
    """Yield what is wrong with the pragmas of tables, with their lines."""
    for table in dict.fromkeys(t.table for t in tables if t.table is not None):
        for pragma in _pragmas(table):
            try:
                _read(pragma, chip)
            except _Wrong as wrong:
                yield Overrun("stages", str(wrong), pragma.span or table.span, WAY_OUT)
        asked = asked_stages(table, chip)
        placed = sum(one.entries for one in asked)
        if placed > size_of(table):
            what = f"@stage places {placed} entries of {table.name}, its size is {size_of(table)}"
            way_out = "place fewer entries, or make the table larger"
            yield Overrun("stages", what, asked[-1].span, way_out)


def _pragmas(table: ir.Table | None) -> list[Annotation]:
    return [a for a in table.annotations if a.name == NAME] if table is not None else []


def _read(pragma: Annotation, chip: ChipResources) -> AskedStage:
    """Return what a pragma asks for; its flags, of where action data is, change no estimate."""
    text = pragma.body.replace("- ", "-").replace(" ,", ",")
    given = f"@{NAME}({text})"
    stages = f"{chip.title} has stages 0 to {chip.stages - 1}"
    match _values(text):
        case [int(stage), int(entries), *flags]:
            pass
        case [int(stage), *flags]:
            entries = 0
        case _:
            raise _Wrong(f"{given} does not begin with the number of a stage: {stages}")
    if not 0 <= stage < chip.stages:
        raise _Wrong(f"{given} names no stage: {stages}")
    if entries < 0:
        raise _Wrong(f"{given} asks for fewer than 0 entries")
    if not set(flags) <= FLAGS:
        allowed = 'a stage, a number of entries, "immediate" and "noimmediate"'
        raise _Wrong(f"{given} has other values than {allowed}")
    return AskedStage(stage, entries, pragma.span or NOWHERE)


def _values(text: str) -> list[int | str]:
    """Return the values in the text of a pragma; those of `@pragma stage 4 1024` have no commas."""
    return [_value(word) for word in text.replace(",", " ").split()]


def _value(word: str) -> int | str:
    try:
        return int(word, 0)
    except ValueError:
        return word.strip('"')
