"""The device config of a pipeline push: P4 source, in a form that needs no files at the switch.

Three forms are taken:
    plain P4 source             its #includes are the shipped files only (core.p4, v1model.p4, ...)
    {"source": ..., "file": ..., "defines": {...}}      JSON, as `device_config` makes it; `source`
                                may hold #line directives, `file` is its name in messages
    BMv2's JSON                 as p4c writes it; names and ids are the pushed P4Info's

Several programs of a chip are {"programs": {NAME: JSON of the second form, ...}, "pipe_scopes":
{NAME: [PIPE, ...], ...}}, as `device_config_of_several` makes it.

Each may be wrapped in a p4.tmp.P4DeviceConfig message, as clients for PI send it (p4runtime_lib).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from gradplane.switch.p4runtime.status_errors import invalid

if TYPE_CHECKING:
    from gradplane.switch.syntax.preprocess import Piece

_NAME, _JSON_NAME = "pushed.p4", "pushed.json"
_LINE = re.compile(r'#line (\d+) "((?:[^"\\]|\\.)*)"$')
_BMV2_KEYS = ("parsers", "pipelines", "deparsers", "header_types")
_TAKEN = 'expected P4 source, BMv2\'s JSON, or JSON with "source", "file" and "defines"'


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a program; `file` names it in messages, and ends in .json for BMv2's JSON.

    p4info: the one pushed with it, a serialized message, which has the names and ids for BMv2's
    JSON.
    """

    text: str
    file: str = _NAME
    defines: Mapping[str, str] = field(default_factory=dict)
    p4info: bytes | None = None

    @property
    def compiled(self) -> bool:
        """True if it is BMv2's JSON."""
        return self.file.endswith(".json")

    def lines(self) -> dict[str, list[str]]:
        """Return the lines of each file that the text was made of, as far as #line names them."""
        found: dict[str, list[str]] = {}
        if self.compiled:
            return {self.file: self.text.split("\n")}
        name, number = self.file, 1
        for line in self.text.split("\n"):
            marker = _LINE.match(line)
            if marker:
                number, name = int(marker[1]), json.loads(f'"{marker[2]}"')
                continue
            lines = found.setdefault(name, [])
            lines.extend([""] * (number - len(lines)))
            lines[number - 1] = _overlaid(lines[number - 1], line)
            number += 1
        return found


def device_config(
    path: str | Path,
    include_dirs: Iterable[str | Path] = (),
    defines: Mapping[str, str] | Sequence[str] | None = None,
) -> bytes:
    """Return the device config to push so that a switch on any machine runs the program in `path`.

    Includes and macros are expanded here; BMv2's JSON is pushed as it is. Raises CompileError where
    they cannot be.
    """
    if str(path).endswith(".json"):
        return Path(path).read_bytes()
    from gradplane.switch.syntax.lexer import whole_strings
    from gradplane.switch.syntax.preprocess import preprocess

    pieces, _ = preprocess(path, include_dirs, defines or {})
    config = {"source": _joined(whole_strings(pieces)), "file": str(path), "defines": {}}
    return json.dumps(config).encode()


def device_config_of_several(
    paths: Sequence[Path],
    include_dirs: Iterable[str | Path],
    defines: Sequence[str],
    pipe_scopes: Mapping[str, Sequence[int]],
) -> bytes:
    """Return the device config to push so that a chip's pipes run these programs, which are known
    by their files' names. pipe_scopes: the pipes of each. Raises CompileError."""
    folders = list(include_dirs)
    programs = {path.stem: json.loads(device_config(path, folders, defines)) for path in paths}
    return json.dumps({"programs": programs, "pipe_scopes": pipe_scopes}).encode()


def parse_several(data: bytes) -> tuple[dict[str, bytes], dict[str, list[int]]] | None:
    """Return the device configs of several programs, by name, and their pipes; None if the config
    is of one. Raises RpcError INVALID_ARGUMENT."""
    try:
        config = json.loads(data)
    except (ValueError, RecursionError):
        return None
    programs = config.get("programs") if isinstance(config, dict) else None
    if not isinstance(programs, dict) or not programs:
        return None
    scopes = config.get("pipe_scopes", {})
    lists = isinstance(scopes, dict) and all(isinstance(pipes, list) for pipes in scopes.values())
    if not lists or not all(type(pipe) is int for pipes in scopes.values() for pipe in pipes):
        what = f"pipe_scopes: expected lists of pipes by name, not {scopes!r}"
        raise invalid(what)
    return {name: json.dumps(one).encode() for name, one in programs.items()}, scopes


def parse_device_config(data: bytes, p4info: bytes | None = None) -> Source:
    """Return the program in a pushed device config.

    p4info: the P4Info that came with it, a serialized message.
    Raises RpcError INVALID_ARGUMENT if there is none.
    """
    try:
        text = _unwrapped(data).decode()
    except UnicodeDecodeError as error:
        raise invalid(f"the device config is binary data ({error}); {_TAKEN}") from error
    if text.lstrip()[:1] != "{":
        return Source(text)
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise invalid(f"the device config is not valid JSON: {error}; {_TAKEN}") from error
    if isinstance(config, dict) and any(key in config for key in _BMV2_KEYS):
        return Source(text, _JSON_NAME, p4info=p4info)
    return _from_json(config)


def _unwrapped(data: bytes) -> bytes:
    """Return the device_data of a p4.tmp.P4DeviceConfig, or `data` where it is none.

    message P4DeviceConfig { bool reassign = 1; Extras extras = 2; bytes device_data = 3; }

    No text starts with the tag of any of its fields, which are control characters.
    """
    if data[:1] not in (b"\x08", b"\x12", b"\x1a"):
        return data
    try:
        fields = _p4_device_config().FromString(data)
    except DecodeError:
        return data
    device_data: bytes = fields.device_data
    return device_data or data


@cache
def _p4_device_config() -> type[Any]:
    """Make the message's class, in a pool of its own: clients may have the original beside it."""
    file = FileDescriptorProto(name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3")
    message = file.message_type.add(name="P4DeviceConfig")
    field = FieldDescriptorProto
    for number, name, kind in (
        (1, "reassign", field.TYPE_BOOL),
        (2, "extras", field.TYPE_BYTES),
        (3, "device_data", field.TYPE_BYTES),
    ):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool = DescriptorPool()
    pool.Add(file)
    found: type[Any] = GetMessageClass(pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig"))
    return found


def _from_json(config: dict[str, Any]) -> Source:
    unknown = sorted(set(config) - {"source", "file", "defines"})
    source, file = config.get("source"), config.get("file", _NAME)
    defines = config.get("defines", {})
    if unknown or not isinstance(source, str) or not isinstance(file, str):
        raise invalid(f"the device config has the keys {sorted(config)}; {_TAKEN}")
    if not isinstance(defines, dict):
        raise invalid(f"the device config's defines: {defines!r}; {_TAKEN}")
    return Source(source, file, {str(k): str(v) for k, v in defines.items()})


def _joined(pieces: Iterable[Piece]) -> str:
    """Join the pieces to one text, with #line where one does not follow the last directly."""
    out: list[str] = []
    here = ("", 0, 0)
    for piece in pieces:
        if here != (piece.file, piece.line, piece.column):
            out.append(f"\n#line {piece.line} {json.dumps(piece.file)}\n")
            out.append(" " * (piece.column - 1))
        out.append(piece.text)
        here = _after(piece)
    return "".join(out)


def _after(piece: Piece) -> tuple[str, int, int]:
    if piece.width is not None:
        return piece.file, piece.line, 0  # a macro's text and its use differ in length
    newlines = piece.text.count("\n")
    last = len(piece.text) - (piece.text.rfind("\n") + 1)
    return piece.file, piece.line + newlines, last + (1 if newlines else piece.column)


def _overlaid(below: str, above: str) -> str:
    """Combine two parts of a line: the first, and a later one with blanks before it."""
    start = len(above) - len(above.lstrip())
    return below[:start].ljust(start) + above[start:] if below else above
