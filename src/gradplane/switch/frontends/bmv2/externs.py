"""Registers, counters, meters, action profiles, and the lists that calls refer to by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.bmv2_names import ARRAYS
from gradplane.switch.frontends.bmv2.arithmetic import constant
from gradplane.switch.frontends.bmv2.control_plane import ControlPlane
from gradplane.switch.frontends.bmv2.items import Item, span_of
from gradplane.switch.frontends.bmv2.layout import VALID, Layout, Scope
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Field, Struct, Type, bit_width

SELECTOR_BITS = 64  # of a selector's hash: BMv2 takes all of them


class Externs:
    """The extern instances of a program, and its calculations, field lists and digests."""

    def __init__(self, root: Item, layout: Layout, control_plane: ControlPlane) -> None:
        self._root, self._layout, self._control_plane = root, layout, control_plane
        self._known: dict[tuple[str, str], ir.ExternInstance] = {}
        self._profiles: dict[str, ir.ExternInstance] = {}
        self._selector_inputs: dict[str, Item] = {}
        self.direct: dict[str, dict[str, ir.ExternInstance]] = {"counter": {}, "meter": {}}
        self.meter_results: dict[ir.ExternInstance, Item] = {}
        self._calculations = {c["name"].text: c for c in root.elements("calculations")}
        self._field_lists = {f["id"].number: f for f in root.elements("field_lists")}
        self._learn_lists = {f["id"].number: f for f in root.elements("learn_lists")}
        for instance in root.elements("extern_instances"):
            text = f"extern {instance['type'].text} is not supported"
            raise instance["type"].refuse(text, "v1model's externs are")
        for kind, section in ARRAYS.items():
            for entry in root.elements(section):
                self._array(kind, entry)

    @property
    def all(self) -> list[ir.ExternInstance]:
        """All instances."""
        return [*self._known.values(), *self._profiles.values()]

    def _array(self, kind: str, entry: Item) -> None:
        name = entry["name"].text
        if entry.is_true("is_direct"):
            made = self._direct(kind, entry)
        else:
            args: dict[str, ir.Argument] = {"size": entry["size"].number}
            types: list[Type] = []
            if kind == "register":
                types = [self._cell(entry)]
            elif kind == "counter":
                args["unit"] = self._control_plane.counter_unit(name)
            else:
                args["unit"] = self._meter_type(entry)
            made = self._instance(kind, entry, types, args)
        self._known[made.kind, name] = made

    def _cell(self, entry: Item) -> Bits:
        """Return the type of a register's cells; only P4Info says whether they are signed."""
        cell = Bits(entry["bitwidth"].width)
        declared = self._control_plane.cell_types(entry["name"].text)
        if declared and bit_width(declared[0]) not in (None, cell.width):
            text = f"cells of {cell.width} bits have {bit_width(declared[0])} bits in the P4Info"
            raise entry["bitwidth"].refuse(text)
        signed = Bits(cell.width, True)
        return signed if signed in declared[:1] else cell

    def _direct(self, kind: str, entry: Item) -> ir.ExternInstance:
        name, types = entry["name"].text, list[Type]()
        if kind == "meter":
            unit = self._meter_type(entry)
            target = entry["result_target"]
            types = [Bits(32)]
        else:
            unit = self._control_plane.counter_unit(name)
        made = self._instance(f"direct_{kind}", entry, types, {"unit": unit})
        if kind == "meter":
            self.meter_results[made] = target
            self.direct["meter"][name] = made
        else:
            self.direct["counter"][entry["binding"].text] = made
        return made

    def _meter_type(self, entry: Item) -> str:
        if entry["type"].text not in ("packets", "bytes"):
            raise entry["type"].refuse("expected packets or bytes")
        return entry["type"].text

    def _instance(
        self, kind: str, entry: Item, types: list[Type], args: dict[str, ir.Argument]
    ) -> ir.ExternInstance:
        """Return an instance; args: the constructor's arguments by role (see ir.InstanceKind)."""
        name = entry["name"].text
        return ir.ExternInstance(
            kind,
            name,
            types,
            list(args.values()),
            self._control_plane.extern_annotations(kind, name),
            span_of(entry),
            self._control_plane.cell_types(name),
            kind=kind,
            roles=tuple(args),
        )

    def instance(self, kind: str, name: Item) -> ir.ExternInstance:
        """Return an array by its name."""
        found = self._known.get((kind, name.text))
        if found is None:
            raise name.refuse(f"there is no {kind} {name.text}")
        return found

    # -- action profiles ------------------------------------------------------------------------

    def add_profiles(self, pipeline: Item) -> None:
        """Add the action profiles of a pipeline."""
        for entry in pipeline.elements("action_profiles"):
            size: ir.Argument = entry["max_size"].size
            selector = entry.get("selector")
            name = entry["name"].text
            if selector is None:
                self._profiles[name] = self._instance("action_profile", entry, [], {"size": size})
                continue
            args: dict[str, ir.Argument] = {
                "algorithm": selector["algo"].text,
                "size": size,
                "width": SELECTOR_BITS,
            }
            self._profiles[name] = self._instance("action_selector", entry, [], args)
            self._selector_inputs[name] = selector["input"]

    def profile(self, name: Item) -> ir.ExternInstance:
        """Return an action profile or selector by its name."""
        if name.text not in self._profiles:
            raise name.refuse(f"there is no action profile {name.text}")
        return self._profiles[name.text]

    def selector_keys(self, profile: ir.ExternInstance, scope: Scope) -> list[ir.Key]:
        """Return the keys that a selector's hash is computed of."""
        inputs = self._selector_inputs.get(profile.name)
        keys = []
        for item in inputs or ():
            name = ".".join(p.text for p in item["value"]) if item.kind() == "field" else ""
            keys.append(ir.Key(name, self._input(item, scope), "selector"))
        return keys

    # -- lists ----------------------------------------------------------------------------------

    def calculation(self, name: Item, scope: Scope) -> tuple[str, ir.Make, bool]:
        """Return a calculation's algorithm and inputs, and whether the payload is one."""
        found = self._calculations.get(name.text)
        if found is None:
            raise name.refuse(f"there is no calculation {name.text}")
        inputs = list(found["input"])
        payload = [i for i in inputs if i.kind() == "payload"]
        if payload and (len(payload) > 1 or inputs[-1].kind() != "payload"):
            raise payload[0].refuse("the payload must be the last input")
        parts = [self._input(i, scope) for i in inputs if i.kind() != "payload"]
        return found["algo"].text, make_list(parts), bool(payload)

    def _input(self, item: Item, scope: Scope) -> ir.Expr:
        match item.kind():
            case "field":
                return scope.field(item["value"])
            case "header" | "header_stack" | "header_union":
                return scope.instance(item["value"])
            case "hexstr":
                width = item["bitwidth"].width
                return constant(Bits(width), item["value"].hexadecimal)
        raise item.refuse(f"a {item.kind()} is no input of a calculation")

    def field_list(self, number: Item, scope: Scope) -> ir.Make:
        """Return the metadata that a copy of the packet keeps."""
        listed = self._listed(number, self._field_lists)
        parts: list[ir.Expr] = []
        for item in [] if listed is None else listed["elements"]:
            if item.kind() != "field":
                raise item.refuse("expected a field of the metadata")
            parts.append(scope.field(item["value"]))
        return make_list(parts)

    def _listed(self, number: Item, known: dict[int, Item]) -> Item | None:
        """Return a list by its number; an unknown one is empty."""
        if number.kind() != "hexstr":
            raise number.refuse("expected the number of a list, a constant")
        return known.get(number["value"].hexadecimal)

    def digest(self, number: Item, scope: Scope) -> tuple[ir.Make, Type]:
        """Return a digest's data, and its type at the controller."""
        listed = self._listed(number, self._learn_lists)
        if listed is None:
            raise number.refuse("there is no such learn list")
        parts = [self._digest_part(i, scope) for i in listed["elements"]]
        name = listed["name"].text
        if self._control_plane.is_tuple_digest(name):
            data = make_list(parts)
            return data, data.type
        described = self._control_plane.digest_type(name, [e.type for e in parts])
        names = described or list(_field_names(listed))
        fields = tuple(Field(n, e.type) for n, e in zip(names, parts, strict=True))
        inside = Struct(name, fields)
        return ir.Make(inside, parts), inside

    def _digest_part(self, item: Item, scope: Scope) -> ir.Expr:
        if item.kind() == "field":
            return scope.field(item["value"])
        raise item.refuse("expected a field")


def make_list(parts: Sequence[ir.Expr]) -> ir.Make:
    """Return a list of values, which is a struct with the name of a tuple."""
    fields = tuple(Field(f"f{i}", e.type) for i, e in enumerate(parts))
    name = f"tuple<{', '.join(str(e.type) for e in parts)}>"
    return ir.Make(Struct(name, fields), list(parts))


def _field_names(listed: Item) -> Iterator[str]:
    """Yield names for the elements of a learn list: those of the fields, made distinct."""
    seen: set[str] = set()
    for at, item in enumerate(listed["elements"]):
        last = str(item["value"].value[-1]).rsplit(".", 1)[-1]
        name = f"f{at}" if last in seen or last == VALID else last
        seen.add(name)
        yield name
