"""A v1model program from its sections."""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4i

from gradplane.switch.frontends.bmv2.checksums import checksum_control
from gradplane.switch.frontends.bmv2.control_plane import (
    HIDDEN,
    ControlPlane,
    impossible_widths,
)
from gradplane.switch.frontends.bmv2.externs import Externs
from gradplane.switch.frontends.bmv2.items import MAX_WIDTH, Item, span_of
from gradplane.switch.frontends.bmv2.layout import Layout, Scope
from gradplane.switch.frontends.bmv2.parsers import ParserReader
from gradplane.switch.frontends.bmv2.pipelines import PipelineReader
from gradplane.switch.frontends.bmv2.primitives import Primitives
from gradplane.switch.ir import nodes as ir
from gradplane.switch.source import Span

VERSION = 2  # of the format; simple_switch takes no other
_PIPELINES = {"ig": "ingress", "eg": "egress"}
_CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)


class Reader:
    """Makes the program of a document."""

    def __init__(self, root: Item, p4info: p4i.P4Info | None) -> None:
        self._root = root
        _check_version(root)
        for place in () if p4info is None else impossible_widths(p4info, "P4Info"):
            raise root.refuse(f"{place}: expected a width of 0 to {MAX_WIDTH} bits")
        self._plane = ControlPlane(p4info)
        self._layout = Layout(root)
        self._externs = Externs(root, self._layout, self._plane)

    def program(self) -> ir.Program:
        """Return the program."""
        root, layout = self._root, self._layout
        parser = ParserReader(root, Scope(layout, "p", 3), self._externs, self._plane)
        blocks: dict[str, ir.Parser | ir.Control] = {"p": parser.parser()}
        blocks["vr"] = checksum_control(root, True, Scope(layout, "vr", 2), self._externs)
        pipelines = [self._pipeline(block) for block in _PIPELINES]
        for block, reader in zip(_PIPELINES, pipelines, strict=True):
            blocks[block] = reader.control()
        blocks["ck"] = checksum_control(root, False, Scope(layout, "ck", 2), self._externs)
        blocks["dep"] = self._deparser()
        actions = _by_name(a for r in pipelines for a in r.tables.actions)
        types, enums = self._plane.declared_types()
        return ir.Program(
            ir.Package(
                "V1Switch", {**blocks}, span=Span(root.file, 1, 1, 2), parameters=tuple(blocks)
            ),
            self._errors(),
            [t for r in pipelines for t in r.tables.tables],
            list(actions.values()),
            self._externs.all,
            parser.value_sets,
            types,
            enums,
            self._plane.controller_headers(),
        )

    def _pipeline(self, block: str) -> PipelineReader:
        name = _PIPELINES[block]
        for item in self._root.elements("pipelines"):
            if item["name"].text == name:
                self._externs.add_profiles(item)
                scope = Scope(self._layout, block, 3)
                return PipelineReader(self._root, item, scope, self._externs, self._plane)
        raise self._root["pipelines"].refuse(f"there is no pipeline {name}")

    def _deparser(self) -> ir.Control:
        found = self._root.elements("deparsers")
        if len(found) != 1:
            raise self._root["deparsers"].refuse(f"expected one deparser, found {len(found)}")
        (item,) = found
        scope = Scope(self._layout, "dep", 1)
        code = Primitives(scope, self._externs)
        body = [s for p in item.elements("primitives") for s in code.statements(p)]
        body += [ir.Emit(scope.instance(name)) for name in item["order"]]
        params = [ir.Param(p.name, "in", p) for p in scope.params]
        return ir.Control(item["name"].text, params, scope.locals, body, span_of(item))

    def _errors(self) -> list[str]:
        """Return the errors' names by code; earlier p4c counted from 1.

        Those of core.p4 that the JSON does not have get the codes that BMv2 gives them.
        """
        found: dict[int, str] = {}
        for item in self._root.elements("errors"):
            name, code = item.parts(2)
            if not 0 <= code.number < 1 << 16:
                raise code.refuse("expected a code of 0 to 65535")
            if code.number in found or name.text in found.values():
                raise item.refuse("another error has this name or this code")
            found[code.number] = name.text
        missing = (name for name in _CORE_ERRORS if name not in [*found.values()])
        found |= dict(enumerate([*missing], start=max(found, default=-1) + 1))
        return [found.get(code, f"error_{code}") for code in range(max(found) + 1)]


def _by_name(actions: Iterable[ir.Action]) -> dict[str, ir.Action]:
    """Return one action of each name; one that controllers see before one that is hidden."""
    found: dict[str, ir.Action] = {}
    for action in actions:
        if action.name not in found or HIDDEN in found[action.name].annotations:
            found[action.name] = action
    return found


def _check_version(root: Item) -> None:
    meta = root.get("__meta__")
    version = None if meta is None else meta.get("version")
    if version is not None:
        major, minor = version.parts(2)
        if major.number != VERSION:
            text = f"format version {major.number}.{minor.number}: {VERSION}.x is supported"
            raise version.refuse(text)
