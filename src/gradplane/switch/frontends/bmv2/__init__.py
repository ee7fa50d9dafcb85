"""The intermediate representation from BMv2's JSON, as p4c and gradplane's own back end write it.

The format is p4lang/behavioral-model's docs/JSON_format.md, for v1model. A JSON file names header
instances, fields and nodes of a graph; what it computes has the meaning that simple_switch gives
it. `layout` makes types and variables of the instances, `expressions` gives numbers of any size a
width, `control_flow` makes nested statements of graphs and jumps; the other modules translate the
sections that they are named after. P4Info, where there is one, adds what the JSON leaves out: ids,
optional keys, units of counters, types of digests, headers of packet-ins (`control_plane`).

p4c and the tools around it write the P4Info beside a JSON file under several names:
router.p4info.txtpb, router.p4.p4info.txt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError

from gradplane._p4runtime import p4i
from gradplane.switch.frontends.bmv2.items import Item
from gradplane.switch.frontends.bmv2.program import Reader
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.verify import IRError, verify
from gradplane.switch.source import CompileError, InternalCompilerError, Span, refuse

__all__ = ["is_bmv2_json", "p4info_beside", "parsed_p4info", "read_program"]

_KEYS = ("header_types", "headers", "parsers", "pipelines")


def is_bmv2_json(document: Any) -> bool:
    """Return whether a JSON document is BMv2's."""
    return isinstance(document, dict) and any(key in document for key in _KEYS)


def parsed_p4info(data: bytes | None) -> p4i.P4Info | None:
    """Return a serialized P4Info; None for None."""
    return None if data is None else p4i.P4Info.FromString(data)


def p4info_beside(path: Path, read: dict[str, str | None]) -> p4i.P4Info | None:
    """Return the P4Info beside a JSON file, None if there is none.

    read: takes the files that were looked for. Raises CompileError for one that cannot be read.
    """
    for candidate in candidates(path):
        if candidate.is_file():
            content = candidate.read_text("utf-8-sig", errors="replace")
            read[str(candidate)] = content
            return read_p4info(candidate)
        read[str(candidate)] = None
    return None


def read_program(text: str, file: str, p4info: p4i.P4Info | None = None) -> ir.Program:
    """Return the program of a BMv2 JSON file.

    file: its name, for messages. p4info: the program's, if there is one; its names and ids become
    the program's. Raises CompileError, with the place in the JSON, for what cannot be read.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise refuse(Span(file, 1, 1, 2), f"this is not valid JSON: {error}") from error
    root = Item(document, file, text=text)
    if not is_bmv2_json(document):
        raise root.refuse("this is not BMv2's JSON: it has none of " + ", ".join(_KEYS))
    try:
        program = Reader(root, p4info).program()
        verify(program)
        return program
    except CompileError:
        raise
    except IRError as error:
        raise root.refuse(f"the program contradicts itself: {error.problems[0]}") from error
    except RecursionError:
        raise root.refuse("the program is nested too deeply to be read") from None
    except Exception as error:
        text = f"internal error of the reader: {error!r}"
        hint = "the file is not as p4c writes it, or this is a bug: please report it, with the file"
        found = root.refuse(text, hint)
        raise InternalCompilerError(found.diagnostics, found.lines) from error


# -- files of P4Info --------------------------------------------------------------------------


_NAMES = ("{}.p4info", "{}.p4.p4info", "{}_p4info")
_SUFFIXES = (".txtpb", ".txt", ".bin", ".json")


def candidates(path: Path) -> Iterator[Path]:
    """Yield the files that may have the P4Info of a JSON file."""
    for name in _NAMES:
        for suffix in _SUFFIXES:
            yield path.with_name(name.format(path.stem) + suffix)


def read_p4info(path: Path) -> p4i.P4Info:
    """Return the P4Info in a file, in the form that its suffix says. Raises CompileError."""
    found = p4i.P4Info()
    try:
        if path.suffix == ".bin":
            found.ParseFromString(path.read_bytes())
        elif path.suffix == ".json":
            json_format.Parse(path.read_text("utf-8"), found)
        else:
            text_format.Parse(path.read_text("utf-8"), found)
    except (
        OSError,
        ValueError,
        RecursionError,
        DecodeError,
        json_format.ParseError,
        text_format.ParseError,
    ) as error:
        text = f"this is no P4Info that can be read: {error}"
        raise refuse(Span(str(path), 1, 1, 2), text) from error
    return found
