"""The P4Info that lies beside a BMv2 JSON file.

p4c and the tools around it write it under several names: router.p4info.txtpb, router.p4.p4info.txt.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError

from gradplane.switch.source import Span, refuse

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
