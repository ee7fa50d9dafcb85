"""Header instances, stacks, unions and metadata fields as types and variables.

The blocks share three values, as in v1model: a struct of all headers, stacks and unions, a struct
of all metadata fields (`scalars.tmp`), and the standard metadata. What only one block uses is a
local variable there.

The blocks that use each header instance and each metadata field.

BMv2 has one set of instances for a packet's whole path. An instance that only one block uses
becomes a local variable of that block, which the engines keep in registers where they can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from gradplane.switch.frontends.bmv2.items import Item
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    BOOL,
    Annotation,
    Bits,
    Field,
    Fields,
    Header,
    Stack,
    Struct,
    Type,
    Union,
    Varbit,
)

BLOCKS = ("p", "ig", "eg")  # the blocks that have local variables
SHARED = "shared"
_PIPELINES = {"ingress": "ig", "egress": "eg"}

Reference = tuple[str, str]
"""An instance, stack or union and "", or a header instance and a field."""


class Uses:
    """Collects the blocks that refer to an instance; `blocks` has them by reference."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.blocks: defaultdict[Reference, set[str]] = defaultdict(set)
        self._calculations = _named(document, "calculations", "name")
        self._learn_lists = _named(document, "learn_lists", "id")
        self._meters = _named(document, "meter_arrays", "name")
        self._actions = _named(document, "actions", "id")
        self._walk(document.get("parsers"), "p")
        for pipeline in _objects(document.get("pipelines")):
            self._pipeline(pipeline, _PIPELINES.get(str(pipeline.get("name")), SHARED))
        for section in ("checksums", "deparsers", "field_lists"):
            self._walk(document.get(section), SHARED)
        for checksum in _objects(document.get("checksums")):
            self._note(checksum.get("target"), SHARED)
            self._walk(_found(self._calculations, checksum.get("calculation")), SHARED)
        for deparser in _objects(document.get("deparsers")):
            self._walk_names(deparser.get("order"), SHARED)

    def _pipeline(self, pipeline: dict[str, Any], block: str) -> None:
        self._walk(pipeline.get("conditionals"), block)
        self._walk(pipeline.get("action_profiles"), block)
        actions: dict[Any, None] = {}
        for table in _objects(pipeline.get("tables")):
            for key in _objects(table.get("key")):
                self._note(key.get("target"), block)
            meter = _found(self._meters, table.get("direct_meters"))
            if meter is not None:
                self._note(meter.get("result_target"), block)
            actions |= dict.fromkeys(_hashables(table.get("action_ids")))
            default = table.get("default_entry")
            if isinstance(default, dict):
                actions |= dict.fromkeys(_hashables([default.get("action_id")]))
            if "action_ids" not in table:
                names = set(_hashables(table.get("actions")))
                actions |= {
                    i: None for i, a in self._actions.items() if str(a.get("name")) in names
                }
        for call in _objects(pipeline.get("action_calls")):
            actions |= dict.fromkeys(_hashables([call.get("action_id")]))
        for action in actions:
            self._walk(self._actions.get(action), block)

    def _walk_names(self, value: Any, block: str) -> None:
        for name in value if isinstance(value, list) else ():
            self._note(name, block)

    def _walk(self, value: Any, block: str) -> None:
        pending = [value]
        while pending:
            here = pending.pop()
            if isinstance(here, list):
                pending += here
            elif isinstance(here, dict):
                self._object(here, block)
                pending += [v for v in here.values() if isinstance(v, dict | list)]

    def _object(self, here: dict[str, Any], block: str) -> None:
        kind, value = here.get("type"), here.get("value")
        if kind == "calculation" and isinstance(value, str):
            self._walk(self._calculations.get(value), block)
        elif isinstance(kind, str) and value is not None and kind not in ("hexstr", "string"):
            self._note(value, block)
        if here.get("op") == "generate_digest":
            for parameter in _objects(here.get("parameters"))[1:]:
                text = parameter.get("value")
                if isinstance(text, str):
                    try:
                        self._walk(self._learn_lists.get(int(text, 16)), block)
                    except ValueError:
                        continue

    def _note(self, value: Any, block: str) -> None:
        if isinstance(value, str):
            self.blocks[value, ""].add(block)
        elif isinstance(value, list) and value and isinstance(value[0], str):
            name = value[1] if len(value) > 1 and isinstance(value[1], str) else ""
            self.blocks[value[0], name].add(block)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _named(document: dict[str, Any], section: str, key: str) -> dict[Any, dict[str, Any]]:
    found = _objects(document.get(section))
    return {v[key]: v for v in found if isinstance(v.get(key), str | int)}


def _found(known: dict[Any, dict[str, Any]], key: Any) -> dict[str, Any] | None:
    return known.get(key) if isinstance(key, str | int) else None


def _hashables(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from (v for v in value if isinstance(v, str | int))


STANDARD = "standard_metadata"
VALID = "$valid$"
_VALIDITY = {"add_header", "add_header_fast", "remove_header", "valid"}
_OLD_METADATA = "intrinsic_metadata"  # an instance of its own in JSON of P4_14's first compiler

Steps = tuple[int, ...]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Place:
    """An instance's place: the outermost instance, stack or union, and the way from there."""

    outer: str
    steps: Steps = ()


class Layout:
    """The types and places of everything that a JSON document names."""

    def __init__(self, root: Item) -> None:
        self._root = root
        self._numbers = count(1)
        uses = Uses(root.value)
        self._metadata = {
            h["name"].text: h for h in root.elements("headers") if h.is_true("metadata")
        }
        if "psa_ingress_input_metadata" in self._metadata:
            text = "this is a PSA program; JSON of v1model programs is supported"
            raise root["headers"].refuse(text, "use the P4 source")
        if STANDARD not in self._metadata:
            raise root["headers"].refuse(f"there is no metadata instance {STANDARD}")
        if _OLD_METADATA in self._metadata:
            hint = "compile the program with p4c, or --std p4_14"
            text = f"{_OLD_METADATA} is an instance of its own, as p4c-bm wrote it"
            raise self._metadata[_OLD_METADATA].refuse(text, hint)
        self._with_validity = _with_validity(root)
        self.headers = self._header_types()
        self.outer: dict[str, Type] = {}
        self.places: dict[str, Place] = {}
        self._lay_out_headers()
        self.aliases = self._aliases()
        self.standard = self._standard()
        shared = self._divide(uses)
        self.headers_type = Struct("headers", tuple(Field(n, self.outer[n]) for n in shared[0]))
        self._meta_fields = {reference: i for i, reference in enumerate(shared[1])}
        fields = (Field(".".join(r), self.field_type(*r)) for r in shared[1])
        self.meta_type = Struct("metadata", tuple(fields))

    def variable(self, name: str, t: Type) -> ir.Var:
        """Return a new variable."""
        return ir.Var(t, name, next(self._numbers))

    # -- types ----------------------------------------------------------------------------------

    def _header_types(self) -> dict[str, Fields]:
        """Return the types by name. Those of metadata instances alone are structs, unless the
        program asks for their validity."""
        headers = {
            h["header_type"].text
            for h in self._root.elements("headers")
            if not h.is_true("metadata") or h["name"].text in self._with_validity
        }
        found: dict[str, Fields] = {}
        for entry in self._root.elements("header_types"):
            name = entry["name"].text
            kind = Header if name in headers else Struct
            found[name] = kind(name, tuple(self._fields(entry)))
        return found

    def _fields(self, entry: Item) -> Iterable[Field]:
        fixed = 0
        fields = [list(field) for field in entry["fields"]]
        for field in fields:
            if len(field) < 2:
                raise entry["fields"].refuse("a field needs a name and a width")
            if field[1].value != "*":
                fixed += field[1].width
        for name, width, *rest in fields:
            if len(rest) > 1 and rest[1].value is True:
                raise name.refuse("saturating fields are not supported")
            if width.value == "*":
                if entry.get("length_exp") is not None:
                    text = "a length that belongs to the header type is not supported"
                    raise entry["length_exp"].refuse(text, "p4c gives it to extract_VL")
                longest = entry.get("max_length")
                size = 8 * longest.width - fixed if longest is not None else 0
                if size <= 0:
                    raise entry.refuse("max_length leaves no room for the field of variable length")
                yield Field(name.text, Varbit(size))
            else:
                signed = bool(rest) and bool(rest[0].value)
                yield Field(name.text, Bits(width.width, signed))

    def header_type(self, name: Item) -> Fields:
        """Return a header type by its name."""
        found = self.headers.get(name.text)
        if found is None:
            raise name.refuse(f"there is no header type {name.text}")
        return found

    # -- headers --------------------------------------------------------------------------------

    def _lay_out_headers(self) -> None:
        root = self._root
        entries = {h["id"].number: h for h in root.elements("headers")}
        members: set[int] = set()
        unions = self._unions(entries, members)
        for stack in root.elements("header_union_stacks"):
            self._stack(stack, "header_union_ids", unions)
        for number, (union, union_type) in unions.items():
            if union["name"].text not in self.places:
                self._outermost(union, union_type)
            place = self.places[union["name"].text]
            for index, member in enumerate(self._union_members[number]):
                self.places[member] = Place(place.outer, (*place.steps, index))
        singles = {i: (h, self.header_type(h["header_type"])) for i, h in entries.items()}
        for stack in root.elements("header_stacks"):
            members |= set(self._stack(stack, "header_ids", singles))
        for number, (header, t) in singles.items():
            if number not in members and not header.is_true("metadata"):
                self._outermost(header, t)

    def _outermost(self, item: Item, t: Type) -> None:
        name = item["name"].text
        self.outer[name] = t
        self.places[name] = Place(name)

    def _unions(self, entries: dict[int, Item], members: set[int]) -> dict[int, tuple[Item, Union]]:
        types: dict[str, Union] = {}
        for entry in self._root.elements("header_union_types"):
            pairs = [m.parts(2) for m in entry["headers"]]
            fields = tuple(Field(n.text, self.header_type(kind)) for n, kind in pairs)
            types[entry["name"].text] = Union(entry["name"].text, fields)
        found: dict[int, tuple[Item, Union]] = {}
        self._union_members: dict[int, list[str]] = {}
        for union in self._root.elements("header_unions"):
            kind = union["union_type"]
            if kind.text not in types:
                raise kind.refuse(f"there is no header union type {kind.text}")
            names = [_by_id(entries, i)["name"].text for i in union["header_ids"]]
            if len(names) != len(types[kind.text].fields):
                raise union["header_ids"].refuse(f"{kind.text} has another number of headers")
            members.update(i.number for i in union["header_ids"])
            found[union["id"].number] = (union, types[kind.text])
            self._union_members[union["id"].number] = names
        return found

    def _stack(
        self, stack: Item, ids: str, elements: Mapping[int, tuple[Item, Fields]]
    ) -> list[int]:
        numbers = [i.number for i in stack[ids]]
        if not numbers:
            raise stack[ids].refuse("a stack needs an element")
        _, t = _by_id(elements, next(iter(stack[ids])))
        self._outermost(stack, Stack(t, len(numbers)))
        for index, item in enumerate(stack[ids]):
            element, _ = _by_id(elements, item)
            self.places[element["name"].text] = Place(stack["name"].text, (index,))
        return numbers

    # -- metadata -------------------------------------------------------------------------------

    def _aliases(self) -> dict[str, tuple[str, str]]:
        found = {}
        for entry in self._root.elements("field_aliases"):
            name, target = entry.parts(2)
            header, field = target.parts(2)
            found[name.text] = (header.text, field.text)
        return found

    def _standard(self) -> Struct:
        """Return the type of the standard metadata, with the names that simple_switch uses."""
        names = {to: name for name, to in self.aliases.items()}
        fields = []
        for f in self._type_of_metadata(STANDARD).fields:
            alias = names.get((STANDARD, f.name))
            notes = (Annotation("alias", (alias,)),) if alias else ()
            fields.append(Field(f.name, f.type, notes))
        return Struct(STANDARD, tuple(fields))

    def _type_of_metadata(self, instance: str) -> Fields:
        return self.header_type(self._metadata[instance]["header_type"])

    def is_metadata(self, instance: str) -> bool:
        """Return whether an instance is one of metadata fields, without validity."""
        return instance in self._metadata and instance not in self._with_validity

    def field_type(self, instance: str, field: str) -> Type:
        """Return the type of a field that there is."""
        t = self._type_of_metadata(instance)
        index = t.index(field)
        assert index is not None, (instance, field)
        return t.fields[index].type

    def metadata_fields(self, instance: str) -> list[tuple[str, str]]:
        """Return references to all fields of an instance."""
        return [(instance, f.name) for f in self._type_of_metadata(instance).fields]

    # -- shared or local ------------------------------------------------------------------------

    def _divide(self, uses: Uses) -> tuple[list[str], list[tuple[str, str]]]:
        """Return the headers and the metadata fields that blocks share; `locals` has the rest."""
        for name, item in self._metadata.items():
            if name in self._with_validity:
                self._outermost(item, self._type_of_metadata(name))
        of_outer: dict[str, set[str]] = {name: set() for name in self.outer}
        for (name, _), blocks in uses.blocks.items():
            if name in self.places:
                of_outer[self.places[name].outer] |= blocks
        self.local_headers = {n: _only(b) for n, b in of_outer.items() if _only(b)}
        self.local_fields: dict[tuple[str, str], str] = {}
        shared: list[tuple[str, str]] = []
        for instance in self._metadata:
            if instance == STANDARD or instance in self._with_validity:
                continue
            whole = uses.blocks.get((instance, ""), set())
            for reference in self.metadata_fields(instance):
                blocks = uses.blocks.get(reference, set()) | whole
                if _only(blocks):
                    self.local_fields[reference] = _only(blocks)
                elif blocks:
                    shared.append(reference)
        return [n for n in self.outer if n not in self.local_headers], shared

    def meta_index(self, instance: str, field: str) -> int | None:
        """Return the position of a shared field in the metadata struct."""
        return self._meta_fields.get((instance, field))


class Scope:
    """The variables of one block: its parameters, and local ones as they are first met.

    values: the parameters that it has, a prefix of headers, metadata, standard metadata.
    """

    def __init__(self, layout: Layout, block: str, values: int) -> None:
        self.layout, self.block = layout, block
        types = (layout.headers_type, layout.meta_type, layout.standard)[:values]
        names = ("hdr", "meta", STANDARD)
        self.params = [layout.variable(n, t) for n, t in zip(names, types, strict=False)]
        self.locals: list[ir.Var] = []
        self._known: dict[tuple[str, str], ir.Var] = {}

    def temporary(self, name: str, t: Type) -> ir.Var:
        """Return a new local variable."""
        made = self.layout.variable(name, t)
        self.locals.append(made)
        return made

    def _local(self, reference: tuple[str, str], t: Type) -> ir.Var:
        if reference not in self._known:
            self._known[reference] = self.temporary(".".join(filter(None, reference)), t)
        return self._known[reference]

    def _param(self, at: int, item: Item) -> ir.Var:
        if at >= len(self.params):
            raise item.refuse("this block has no access to that value")
        return self.params[at]

    def instance(self, item: Item) -> ir.LValue:
        """Return a header, stack or union by its name."""
        name, layout = item.text, self.layout
        place = layout.places.get(name)
        if place is None:
            raise item.refuse(f"there is no header, stack or union {name}")
        t = layout.outer[place.outer]
        found: ir.LValue
        if layout.local_headers.get(place.outer) == self.block:
            found = self._local((place.outer, ""), t)
        else:
            base = self._param(0, item)
            index = layout.headers_type.index(place.outer)
            assert index is not None, place
            found = ir.FieldOf(t, base, index, place.outer)
        for step in place.steps:
            found = _inside(found, step)
        return found

    def field(self, item: Item) -> ir.Expr:
        """Return a field by the names of its instance and itself; `$valid$` is a bit."""
        header, field = item.parts(2)
        names = (header.text, field.text)
        names = self.layout.aliases.get(".".join(names), names)
        if names[0] == STANDARD:
            return _member(self._param(2, item), names[1], field)
        if self.layout.is_metadata(names[0]):
            return self._metadata(names, item)
        base = self.instance(header)
        if names[1] == VALID:
            return ir.Cast(Bits(1), ir.IsValid(BOOL, base))
        return _member(base, names[1], field)

    def _metadata(self, names: tuple[str, str], item: Item) -> ir.Expr:
        layout = self.layout
        if names not in layout.metadata_fields(names[0]):
            raise item.refuse(f"instance {names[0]} has no field {names[1]}")
        t = layout.field_type(*names)
        if layout.local_fields.get(names) == self.block:
            return self._local(names, t)
        index = layout.meta_index(*names)
        assert index is not None, names
        return ir.FieldOf(t, self._param(1, item), index, ".".join(names))


def _member(base: ir.LValue, name: str, item: Item) -> ir.LValue:
    t = base.type
    index = t.index(name) if isinstance(t, Fields) else None
    if index is None or not isinstance(t, Fields):
        raise item.refuse(f"{t} has no field {name}")
    return ir.FieldOf(t.fields[index].type, base, index, name)


def _inside(base: ir.LValue, step: int) -> ir.LValue:
    t = base.type
    if isinstance(t, Stack):
        return ir.ElementOf(t.element, base, ir.Const(Bits(32), step))
    assert isinstance(t, Fields), t
    return ir.FieldOf(t.fields[step].type, base, step, t.fields[step].name)


def _by_id(elements: Mapping[int, _T], item: Item) -> _T:
    found = elements.get(item.number)
    if found is None:
        raise item.refuse(f"there is no instance with id {item.number}")
    return found


def _only(blocks: set[str]) -> str:
    """Return the block that is the only one, if it has local variables; "" otherwise."""
    if len(blocks) == 1 and SHARED not in blocks:
        (block,) = blocks
        return block if block in BLOCKS else ""
    return ""


def _with_validity(root: Item) -> set[str]:
    """Return the metadata instances that are used as headers, which have validity."""
    metadata = {h["name"].text for h in root.elements("headers") if h.is_true("metadata")}
    headers = {h["header_type"].text for h in root.elements("headers") if not h.is_true("metadata")}
    found = {
        h["name"].text
        for h in root.elements("headers")
        if h.is_true("metadata") and h["header_type"].text in headers
    }
    pending = [root.value]
    while pending:
        here = pending.pop()
        if isinstance(here, list):
            if len(here) == 2 and here[1] == VALID and isinstance(here[0], str):
                found.add(here[0])
            pending += here
        elif isinstance(here, dict):
            if isinstance(here.get("op"), str) and here["op"] in _VALIDITY:
                found |= set(_operands(here))
            pending += here.values()
    return (found & metadata) - {STANDARD}


def _operands(here: dict[str, Any]) -> Iterator[str]:
    """Yield the headers that an expression or a primitive is about."""
    parameters = here.get("parameters")
    for operand in (here.get("right"), *(parameters if isinstance(parameters, list) else ())):
        is_header = isinstance(operand, dict) and operand.get("type") == "header"
        if is_header and isinstance(operand.get("value"), str):
            yield operand["value"]
