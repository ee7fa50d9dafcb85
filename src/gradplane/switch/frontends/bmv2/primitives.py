"""BMv2's primitives as statements: assignments, headers, and simple_switch's externs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gradplane.switch.bmv2_names import CLONES, MARKED, PARAMETER_COUNTS
from gradplane.switch.frontends.bmv2.arithmetic import cast, constant
from gradplane.switch.frontends.bmv2.expressions import Expressions
from gradplane.switch.frontends.bmv2.externs import Externs, make_list
from gradplane.switch.frontends.bmv2.items import Item, span_of, unwrapped
from gradplane.switch.frontends.bmv2.layout import STANDARD, Scope
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import STRING, Bits, Field, Header, Stack, Struct, Type, Varbit

_CLONES = {name: kind for kind, name in CLONES.items()}
_ARITHMETIC = {
    "add": "+", "subtract": "-", "bit_and": "&", "bit_or": "|", "bit_xor": "^",
    "shift_left": "<<", "shift_right": ">>",
}  # fmt: skip
_IN_PLACE = {"add_to_field": "+", "subtract_from_field": "-"}

Handler = Callable[[list[Item]], list[ir.Stmt]]


class PrimitiveReader:
    """Translates the primitives of one block, in an action with these parameters."""

    def __init__(self, scope: Scope, externs: Externs, parameters: Sequence[ir.Var] = ()) -> None:
        self.scope = scope
        self.code = Expressions(scope, parameters)
        self._externs = externs
        self._handlers: Mapping[str, Handler] = {
            "assign": self._assign,
            "modify_field": self._assign,
            "assign_VL": self._assign_varbit,
            "assign_header": self._assign_whole,
            "copy_header": self._assign_whole,
            "assign_union": self._assign_whole,
            "assign_header_stack": self._assign_whole,
            "assign_union_stack": self._assign_whole,
            "add_header": self._validity(True),
            "add_header_fast": self._valid_as_it_is,
            "remove_header": self._validity(False),
            "push": self._moved(ir.Push),
            "pop": self._moved(ir.Pop),
            "exit": lambda parameters: [ir.Exit()],
            "no_op": lambda parameters: [],
            "drop": self._drop,
            "mark_to_drop": self._drop,
            "truncate": self._truncate,
            "register_read": self._register_read,
            "register_write": self._register_write,
            "count": self._count,
            "execute_meter": self._execute_meter,
            "modify_field_rng_uniform": self._random,
            "modify_field_with_hash_based_offset": self._hash,
            "generate_digest": self._digest,
            "resubmit": self._again("resubmit"),
            "recirculate": self._again("recirculate"),
            "assert": lambda p: [_call("assert", ("in", self.code.truth(p[0])))],
            "assume": lambda p: [_call("assume", ("in", self.code.truth(p[0])))],
            "log_msg": self._log,
        }

    def statements(self, item: Item) -> list[ir.Stmt]:
        """Return what a primitive does."""
        name, parameters = item["op"].text, item.elements("parameters")
        if name in _CLONES:
            found = self._clone(_CLONES[name], item["parameters"].parts(2))
        elif name in _ARITHMETIC or name in _IN_PLACE:
            found = self._arithmetic(item, name, parameters)
        elif name in self._handlers:
            count = PARAMETER_COUNTS[name]
            if len(parameters) != count:
                text = f"{name} takes {count} parameters, found {len(parameters)}"
                raise item.refuse(text)
            found = self._handlers[name](parameters)
        else:
            raise item["op"].refuse(f"primitive {name} is not supported")
        span = span_of(item)
        for stmt in found:
            stmt.span = span
        return found

    # -- assignments ----------------------------------------------------------------------------

    def assigned(self, target: ir.LValue, value: Item) -> ir.Stmt:
        """Return the assignment of a number, cut to the target's width."""
        t = target.type
        if not isinstance(t, Bits):
            raise value.refuse(f"a {t} cannot be assigned a number")
        return ir.Assign(target, cast(self.code.low(value, t.width), t))

    def _assign(self, parameters: list[Item]) -> list[ir.Stmt]:
        target, value = parameters
        return [self.assigned(self.code.places.field(target), value)]

    def _arithmetic(self, item: Item, name: str, parameters: list[Item]) -> list[ir.Stmt]:
        """Assign an operator's result to a field, as the primitives of P4_14 do."""
        op = (_ARITHMETIC | _IN_PLACE)[name]
        target, *operands = parameters
        left, right = operands if name in _ARITHMETIC else (target, *operands)
        value = {"op": op, "left": left.value, "right": right.value}
        whole = Item({"type": "expression", "value": value}, item.file, item, "parameters")
        return [self.assigned(self.code.places.field(target), whole)]

    def _assign_varbit(self, parameters: list[Item]) -> list[ir.Stmt]:
        target, source = (self.code.places.field(p) for p in parameters)
        if not isinstance(target.type, Varbit) or target.type != source.type:
            text = f"expected two fields of the same variable length, not {target.type}"
            raise parameters[0].refuse(f"{text} and {source.type}")
        return [ir.Assign(target, source)]

    def _assign_whole(self, parameters: list[Item]) -> list[ir.Stmt]:
        layout = self.scope.layout
        names = [unwrapped(p) for p in parameters]
        texts = [n["value"].value for n in names]
        if all(isinstance(t, str) and layout.is_metadata(t) for t in texts):
            return self._assign_metadata(parameters[0], *texts)
        target, source = (self.code.places.header(p) for p in parameters)
        if target.type != source.type:
            text = f"cannot assign a {source.type} to a {target.type}"
            raise parameters[0].refuse(text)
        return [ir.Assign(target, source)]

    def _assign_metadata(self, item: Item, target: str, source: str) -> list[ir.Stmt]:
        """Assign a metadata instance, which is a struct, to another field by field."""
        found: list[ir.Stmt] = []
        for name, field in self.scope.layout.metadata_fields(target):
            places = [
                self.scope.field(Item([n, field], item.file, item, "value")) for n in (name, source)
            ]
            assert isinstance(places[0], ir.LValue), places
            found.append(ir.Assign(places[0], places[1]))
        return found

    # -- headers --------------------------------------------------------------------------------

    def _validity(self, valid: bool) -> Handler:
        def handler(parameters: list[Item]) -> list[ir.Stmt]:
            target = self.code.places.header(parameters[0])
            if not isinstance(target.type, Header):
                raise parameters[0].refuse(f"a {target.type} is no header")
            return [ir.SetValid(target, valid)]

        return handler

    def _valid_as_it_is(self, parameters: list[Item]) -> list[ir.Stmt]:
        """Make a header valid without clearing its fields."""
        target = self.code.places.header(parameters[0])
        if not isinstance(target.type, Header):
            raise parameters[0].refuse(f"a {target.type} is no header")
        fields = enumerate(target.type.fields)
        parts: list[ir.Expr] = [ir.FieldOf(f.type, target, i, f.name) for i, f in fields]
        return [ir.Assign(target, ir.Make(target.type, parts))]

    def _moved(self, kind: type[ir.Push | ir.Pop]) -> Handler:
        def handler(parameters: list[Item]) -> list[ir.Stmt]:
            stack, count = self.code.places.header(parameters[0]), self.code.number(parameters[1])
            if not isinstance(stack.type, Stack) or not isinstance(count, ir.Const):
                raise parameters[0].refuse("expected a stack and a constant number of headers")
            return [kind(stack, int(count.value))]

        return handler

    # -- arrays ---------------------------------------------------------------------------------

    def _truncate(self, parameters: list[Item]) -> list[ir.Stmt]:
        return [_call("truncate", ("in", cast(self.code.index(parameters[0]), Bits(32))))]

    def _register_read(self, parameters: list[Item]) -> list[ir.Stmt]:
        target, array, index = parameters
        register = self._externs.instance("register", array["value"])
        at = self.code.index(index)
        return self._result(target, register.type_args[0], "read", lambda to: [
            ("out", to), ("in", at)], register)  # fmt: skip

    def _register_write(self, parameters: list[Item]) -> list[ir.Stmt]:
        array, index, value = parameters
        register = self._externs.instance("register", array["value"])
        t = register.type_args[0]
        assert isinstance(t, Bits), t
        written = ("in", cast(self.code.low(value, t.width), t))
        return [_call("write", ("in", self.code.index(index)), written, instance=register)]

    def _count(self, parameters: list[Item]) -> list[ir.Stmt]:
        counter = self._externs.instance("counter", parameters[0]["value"])
        return [_call("count", ("in", self.code.index(parameters[1])), instance=counter)]

    def _execute_meter(self, parameters: list[Item]) -> list[ir.Stmt]:
        array, index, target = parameters
        meter = self._externs.instance("meter", array["value"])
        return [
            _call(
                "execute_meter",
                ("in", self.code.index(index)),
                ("out", self.code.places.field(target)),
                instance=meter,
            )
        ]

    def _result(
        self,
        target: Item,
        t: Type,
        name: str,
        args: Callable[[ir.LValue], list[tuple[str, ir.Expr]]],
        instance: ir.ExternInstance | None = None,
    ) -> list[ir.Stmt]:
        """Return a call whose result is of type `t`, by way of a variable where it must be."""
        place = self.code.places.field(target)
        if place.type == t:
            return [_call(name, *args(place), instance=instance)]
        made = self.scope.temporary("result", t)
        call = _call(name, *args(made), instance=instance)
        return [call, ir.Assign(place, cast(made, place.type))]

    # -- numbers --------------------------------------------------------------------------------

    def _random(self, parameters: list[Item]) -> list[ir.Stmt]:
        target, low, high = parameters
        bounds = [self.code.index(p) for p in (low, high)]
        width = max(b.type.width for b in bounds if isinstance(b.type, Bits))
        limits = [("in", cast(b, Bits(width))) for b in bounds]
        return self._result(target, Bits(width), "random", lambda to: [("out", to), *limits])

    def _hash(self, parameters: list[Item]) -> list[ir.Stmt]:
        target, base, calculation, size = parameters
        algorithm, inputs, _ = self._externs.calculation(calculation["value"], self.scope)
        args = [
            ("out", self.code.places.field(target)),
            ("in", ir.Const(STRING, algorithm)),
            ("in", self.code.index(base)),
            ("in", inputs),
            ("in", self.code.index(size)),
        ]
        call = _call("hash", *args)
        call.calculation = calculation["value"].text
        return [call]

    # -- the packet's path ----------------------------------------------------------------------

    def _drop(self, parameters: list[Item]) -> list[ir.Stmt]:
        """Drop by way of the standard metadata, or mark the copy that the primitive is given."""
        name = parameters[0]["value"] if parameters else None
        if name is None or name.text == STANDARD:
            return [_call("mark_to_drop", ("inout", self.scope.params[2]))]
        if not self.scope.layout.is_metadata(name.text):
            raise name.refuse(f"expected {STANDARD} or a copy of it")
        return self._mark_copy(name)

    def _mark_copy(self, name: Item) -> list[ir.Stmt]:
        """Mark a metadata instance, whose fields are variables, by way of a struct of two."""
        t = Struct("dropped", tuple(Field(n, self._marked(name, n).type) for n in MARKED))
        made = self.scope.temporary("dropped", t)
        found: list[ir.Stmt] = [_call("mark_to_drop", ("inout", made))]
        for index, field in enumerate(t.fields):
            value = ir.FieldOf(field.type, made, index, field.name)
            found.append(ir.Assign(self._marked(name, field.name), value))
        return found

    def _marked(self, name: Item, field: str) -> ir.LValue:
        layout = self.scope.layout
        if (name.text, field) not in layout.metadata_fields(name.text):
            raise name.refuse(f"{name.text} is no copy of {STANDARD}: it has no field {field}")
        place = self.scope.field(Item([name.text, field], name.file, name, "value"))
        assert isinstance(place, ir.LValue), place
        return place

    def _clone(self, kind: str, parameters: list[Item]) -> list[ir.Stmt]:
        session, listed = parameters
        kept = self._externs.field_list(listed, self.scope)
        args = [("in", ir.Const(STRING, kind)), ("in", cast(self.code.index(session), Bits(32)))]
        return [_call("clone3", *args, ("in", kept))]

    def _again(self, name: str) -> Handler:
        def handler(parameters: list[Item]) -> list[ir.Stmt]:
            if self.code.number(parameters[0]).type and _is_zero(self.code, parameters[0]):
                return []  # simple_switch takes list 0 for no call
            return [_call(name, ("in", self._externs.field_list(parameters[0], self.scope)))]

        return handler

    # -- messages -------------------------------------------------------------------------------

    def _digest(self, parameters: list[Item]) -> list[ir.Stmt]:
        receiver, number = parameters
        data, described = self._externs.digest(number, self.scope)
        call = _call("digest", ("in", cast(self.code.index(receiver), Bits(32))), ("in", data))
        call.type_args, call.declared_type_args = [data.type], [described]
        return [call]

    def _log(self, parameters: list[Item]) -> list[ir.Stmt]:
        form, values = parameters
        listed = [] if values["value"].value == {} else values.elements("value")  # p4c's form
        parts = [self.code.number(v) for v in listed]
        text = ir.Const(STRING, form["value"].text)
        if not parts:
            return [_call("log_msg", ("in", text))]
        return [_call("log_msg", ("in", text), ("in", make_list(parts)))]


def _call(
    name: str, *args: tuple[str, ir.Expr], instance: ir.ExternInstance | None = None
) -> ir.CallExtern:
    return ir.CallExtern(instance, name, [e for _, e in args], [d for d, _ in args])


def _is_zero(code: Expressions, item: Item) -> bool:
    found = code.number(item)
    return isinstance(found, ir.Const) and found.value == constant(found.type, 0).value
