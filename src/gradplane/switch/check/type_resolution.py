"""Resolve types as written to types."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from gradplane.switch.check.checker_types import (
    ANY,
    MAX_WIDTH,
    BlockType,
    ExternType,
    ParamType,
    TypeVar,
    compile_time_only,
    innermost,
    padded,
    substitute,
)
from gradplane.switch.check.context import Context, TypeParam
from gradplane.switch.ir.dispatch import by_class
from gradplane.switch.ir.ops import limits
from gradplane.switch.ir.types import (
    BOOL,
    ERROR,
    INTEGER,
    MATCH_KIND,
    STRING,
    VOID,
    Array,
    Bits,
    Enum,
    Field,
    Fields,
    Header,
    List,
    NewType,
    SerEnum,
    Stack,
    String,
    Struct,
    Tuple,
    Type,
    Union,
    Varbit,
    Void,
    make_array,
    parts,
)
from gradplane.switch.source import Span
from gradplane.switch.syntax import ast

_BODILESS = (ast.FunctionDecl, ast.ParserTypeDecl, ast.ControlTypeDecl, ast.PackageTypeDecl)
_PLAIN = {"bool": BOOL, "error": ERROR, "match_kind": MATCH_KIND, "string": STRING, "void": VOID}
MAX_ARRAY = 1 << 12
MAX_FIELDS = 1 << 14  # limit on a struct's fields, nested structs and arrays included


class TypeResolver:
    """Resolves TypeRefs in the checker's current scope; each declared type is made once."""

    def __init__(self, checker: Context) -> None:
        self.c = checker
        self._variables: dict[ast.Decl, tuple[TypeVar, ...]] = {}
        self._specialised: dict[tuple[ast.Decl | Type, ...], Type] = {}
        self._serial = itertools.count()

    # -- type variables ------------------------------------------------------------------------

    def fresh(self, name: str) -> TypeVar:
        return TypeVar(name, next(self._serial))

    def variables(self, decl: ast.Decl) -> tuple[TypeVar, ...]:
        """Return the type variables of a generic declaration, made at first use."""
        if decl not in self._variables:
            names: list[str] = getattr(decl, "type_params", [])
            self._variables[decl] = tuple(self.fresh(n) for n in names)
        return self._variables[decl]

    def declare_variables(self, decl: ast.Decl) -> None:
        for var in self.variables(decl):
            self.c.scopes.declare(TypeParam(name=var.name, var=var, span=decl.span))

    # -- references ----------------------------------------------------------------------------

    def resolve(self, ref: ast.TypeRef) -> Type:
        if ref.type is None:
            ref.type = _REFERENCES[type(ref)](self, ref)
            if isinstance(ref.type, Tuple | Fields | Array) and leaves(ref.type) > MAX_FIELDS:
                self.c.error(ref, f"this type has more than {MAX_FIELDS} fields in all")
                ref.type = ANY
        return ref.type

    def _tuple(self, ref: ast.TupleTypeRef) -> Type:
        return Tuple(tuple(self._tuple_element(a) for a in ref.args))

    def _tuple_element(self, ref: ast.TypeRef) -> Type:
        t = self.value_type(ref)
        if t != MATCH_KIND and not _allowed_field("struct", t):
            self.c.error(ref, f"a tuple cannot have an element of type {t}")
        return t

    def value_type(self, ref: ast.TypeRef) -> Type:
        """Resolve the type of a variable, field or element."""
        t = self.resolve(ref)
        if isinstance(innermost(t), Void | BlockType | ExternType):
            self.c.error(ref, f"{t} cannot be the type of a value")
            return ANY
        return t

    def _base(self, ref: ast.BaseTypeRef) -> Type:
        if ref.name in _PLAIN:
            return _PLAIN[ref.name]
        if ref.name == "int" and ref.width is None:
            return INTEGER
        width = 1 if ref.width is None else self.c.constant_int(ref.width, "a width")
        if width is None:
            return ANY
        least = 0 if ref.name != "int" else 1
        if not least <= width <= MAX_WIDTH:
            self.c.error(
                ref, f"width {width} of {ref.name} is out of range", f"{least} to {MAX_WIDTH}"
            )
            return ANY
        return Varbit(width) if ref.name == "varbit" else Bits(width, ref.name == "int")

    def _array(self, ref: ast.ArrayTypeRef) -> Type:
        element = self.resolve(ref.element)
        what = "a stack" if isinstance(element, Header | Union) else "an array"
        size = self.c.constant_int(ref.size, f"{what}'s size")
        if not _allowed_element(element):
            self.c.error(ref, f"an array cannot have elements of type {element}", _ELEMENTS)
            return ANY
        if size is None or element == ANY:
            return ANY
        if isinstance(element, Stack):
            self.c.warn(ref, "mismatch", "P4_16 has no stacks of header stacks")
        stack = isinstance(element, Header | Union)  # whose size P4_16 says is positive
        if not stack <= size <= MAX_ARRAY:
            least = "must be positive" if stack else "must be 0 or more"
            why = least if size < 1 else f"can be {MAX_ARRAY} at most"
            self.c.error(ref.size, f"{what}'s size {why}, not {size}")
            return ANY
        return make_array(element, size)

    def _named(self, ref: ast.NamedTypeRef) -> Type:
        found = self.c.scopes.find(ref.name, ref.dot)
        if not found:
            self.c.error(ref, f"type {ref.name} is not declared", self.c.scopes.nearest(ref.name))
            return ANY
        decl = found[0]
        if isinstance(decl, TypeParam):
            if ref.args:
                self.c.error(ref, f"{ref.name} is a type parameter: it takes no type arguments")
            return decl.var
        declared = self.declared(decl)
        if declared is None:
            self.c.error(ref, f"{ref.name} is not a type", f"it is declared at {decl.span}")
            return ANY
        return self._specialise(ref, decl, declared)

    def _specialise(self, ref: ast.NamedTypeRef, decl: ast.Decl, declared: Type) -> Type:
        variables = self.variables(decl)
        if not ref.args:
            if variables and isinstance(declared, Fields):
                self.c.error(ref, f"{ref.name} needs {len(variables)} type arguments")
                return ANY
            return declared
        args = [self.resolve(a) for a in ref.args]
        if len(args) != len(variables):
            self.c.error(ref, f"{ref.name} has {len(variables)} type parameters, {len(args)} given")
            return ANY
        if not isinstance(declared, BlockType):
            for a, given in zip(args, ref.args, strict=True):
                if isinstance(declared, ExternType) and isinstance(a, Void):
                    continue  # its methods give nothing, as RegisterAction<T, I, void>
                if isinstance(a, Void | BlockType | ExternType):
                    self.c.error(given, f"{a} cannot be a type argument of {ref.name}")
                    return ANY
        key: tuple[ast.Decl | Type, ...] = (decl, *args)
        if key not in self._specialised:
            t = substitute(declared, dict(zip(variables, args, strict=True)))
            if isinstance(t, Fields) and isinstance(decl, ast.StructDecl):
                for f in t.fields:
                    self._check_field(decl, f.type, ref)
            self._specialised[key] = t
        return self._specialised[key]

    # -- declarations --------------------------------------------------------------------------

    def declared(self, decl: ast.Decl) -> Type | None:
        """Return the type that a declaration makes, with its type variables, or None."""
        if decl.denoted is None:
            decl.denoted = self._make(decl)
        return decl.denoted

    def _make(self, decl: ast.Decl) -> Type | None:
        match decl:
            case ast.StructDecl():
                return self._struct(decl)
            case ast.EnumDecl():
                return self._enum(decl)
            case ast.TypedefDecl():
                return self._typedef(decl)
            case ast.ExternDecl():
                return ExternType(decl, self.variables(decl))
            case ast.ParserTypeDecl() | ast.ParserDecl():
                return BlockType("parser", decl.name, self.params(decl), decl)
            case ast.ControlTypeDecl() | ast.ControlDecl():
                return BlockType("control", decl.name, self.params(decl), decl)
            case ast.PackageTypeDecl():
                return BlockType("package", decl.name, self.params(decl), decl)
        return None

    def params(self, decl: ast.Decl) -> tuple[ParamType, ...]:
        """Return the parameters of a declaration, its type parameters in scope."""
        with self.c.scopes.nested():
            self.declare_variables(decl)
            params: list[ast.Param] = getattr(decl, "params", [])
            if isinstance(decl, _BODILESS) and getattr(decl, "body", None) is None:
                self._check_distinct(decl.name, [(p.name, p.name_span or p.span) for p in params])
            constructor = isinstance(decl, ast.FunctionDecl) and decl.result is None
            if not constructor and not isinstance(decl, ast.PackageTypeDecl):
                self._no_blocks(params)
            return tuple(self.param(p) for p in params)

    def _no_blocks(self, params: Sequence[ast.Param]) -> None:
        """Report blocks as parameters of anything but constructors (7.2.12)."""
        for p in params:
            t = self.param(p).type
            if isinstance(t, BlockType):
                self.c.error(
                    p, f"parameter {p.name} cannot be a {t.kind}: only constructors take one"
                )

    def param(self, p: ast.Param) -> ParamType:
        if p.type is None:
            p.type = self.resolve(p.ref)
            if isinstance(p.type, Void):
                self.c.error(p.ref, f"parameter {p.name} cannot be void")
                p.type = ANY
            self._direction(p, p.type)
            if isinstance(p.type, ExternType) and set(p.type.args) & {*self.variables(p.type.decl)}:
                self.c.error(p.ref, f"{p.type.name} needs {len(p.type.args)} type arguments")
                p.type = ANY
            self.c.annotations(p)
        optional = any(a.name == "optional" for a in p.annotations)
        if optional and p.default is not None:
            self.c.error(p, f"parameter {p.name} is @optional: it cannot have a default value")
        return ParamType(p.name, p.direction, p.type, optional, p.default, p)

    def _direction(self, p: ast.Param, t: Type) -> None:
        """Check directions: objects, int and string are passed without one (6.8)."""
        if p.direction and isinstance(t, ExternType):
            what = f"{t} cannot be a parameter with direction {p.direction}"
            self.c.error(p, what, "extern objects are passed without direction")
        elif p.direction and t in (INTEGER, STRING):
            what = f"parameter {p.name} of type {t} must be known at compile time"
            self.c.error(p, what, "give it a width" if t == INTEGER else "")

    def _typedef(self, decl: ast.TypedefDecl) -> Type:
        underlying = self.resolve(decl.ref)
        if underlying in (VOID, STRING, MATCH_KIND):
            self.c.error(decl.ref, f"{underlying} cannot be given another name")
            return ANY
        if not decl.new:
            return underlying
        if not isinstance(underlying, Bits | NewType) and underlying not in (BOOL, ANY):
            self.c.error(
                decl.ref,
                f"type {decl.name} cannot be based on {underlying}",
                "allowed are bit, int, bool and another `type`",
            )
            return ANY
        return NewType(decl.name, underlying, self.c.annotations(decl))

    def _enum(self, decl: ast.EnumDecl) -> Type:
        self._check_distinct(decl.name, [(name, span) for name, _, span in decl.members])
        if decl.underlying is None:
            return Enum(decl.name, tuple(name for name, _, _ in decl.members))
        underlying = self.resolve(decl.underlying)
        while isinstance(underlying, NewType):
            underlying = underlying.underlying
        if not isinstance(underlying, Bits):
            self.c.error(decl.underlying, f"an enum's type must be bit or int, not {underlying}")
            return ANY
        values: dict[str, int] = {}
        enum = SerEnum(decl.name, underlying, values)
        decl.denoted = enum  # the value of a member may refer to earlier ones
        for name, expr, span in decl.members:
            values[name] = self._enum_value(decl, underlying, name, expr, span)
        return enum

    def _enum_value(
        self, decl: ast.EnumDecl, t: Bits, name: str, expr: ast.Expr | None, span: Span
    ) -> int:
        if expr is None:
            self.c.reporter.error(span, f"member {name} of enum {decl.name} needs a value")
            return 0
        if self.c.exprs.check(expr) == INTEGER and expr.const is not None:
            low, high = limits(t)
            if not low <= expr.const <= high:
                self.c.error(expr, f"{expr.const} does not fit {t}", f"{low} to {high}")
                return 0
        self.c.exprs.coerce(expr, t, f"the value of {name}")
        value = self.c.constant_int(expr, f"the value of {name}")
        return 0 if value is None else value

    def _struct(self, decl: ast.StructDecl) -> Type:
        kind = {"struct": Struct, "header": Header, "header_union": Union}[decl.kind]
        self._check_distinct(decl.name, [(f.name, f.name_span or f.span) for f in decl.fields])
        with self.c.scopes.nested():
            self.declare_variables(decl)
            fields = tuple(self._field(decl, f) for f in decl.fields)
        if sum(leaves(f.type) for f in fields) > MAX_FIELDS:
            self.c.error(decl, f"{decl.name} has more than {MAX_FIELDS} fields in all")
            return ANY
        annotations = self.c.annotations(decl)
        if kind is Header:
            fields = padded(fields, annotations)
        return kind(decl.name, fields, annotations, self.variables(decl))

    def _field(self, decl: ast.StructDecl, f: ast.FieldDecl) -> Field:
        t = self.value_type(f.ref)
        self._check_field(decl, t, f.ref)
        return Field(f.name, t, self.c.annotations(f))

    def _check_field(self, decl: ast.StructDecl, t: Type, place: ast.Node) -> None:
        if not _allowed_field(decl.kind, t):
            allowed = _ALLOWED[decl.kind]
            self.c.error(place, f"a {decl.kind} cannot have a field of type {t}", allowed)

    def _check_distinct(self, owner: str, names: list[tuple[str, Span]]) -> None:
        seen: dict[str, Span] = {}
        for name, span in names:
            if name in seen:
                self.c.reporter.error(
                    span, f"{name} is declared twice in {owner}", f"first at {seen[name]}"
                )
            seen.setdefault(name, span)


_REFERENCES: dict[type[ast.TypeRef], Callable[..., Type]] = by_class(
    ast.TypeRef,
    {
        ast.BaseTypeRef: TypeResolver._base,
        ast.NamedTypeRef: TypeResolver._named,
        ast.ArrayTypeRef: TypeResolver._array,
        ast.TupleTypeRef: TypeResolver._tuple,
        ast.ListTypeRef: lambda types, ref: List(types.value_type(ref.element)),
        ast.DontCareTypeRef: lambda types, ref: types.fresh("_"),
    },
)


_ALLOWED = {
    "struct": "allowed are all types whose values exist at run time",
    "header": "allowed are bit, int, bool, varbit, serializable enums, and structs and arrays of "
    "those without varbit",
    "header_union": "allowed are headers",
}


def _allowed_field(kind: str, t: Type) -> bool:
    if t == ANY or isinstance(t, TypeVar):
        return True
    if kind == "header_union":
        return isinstance(t, Header)
    if kind == "struct":
        return not (isinstance(t, String | Void) or t == INTEGER or compile_time_only(t))
    return _in_header(t)


def leaves(t: Type) -> int:
    """Count fields, down to numbers."""
    return _leaves(t, {})


def _leaves(t: Type, known: dict[int, int]) -> int:
    """Count fields; `known` holds the counts of types by identity, as types may recur."""
    if id(t) not in known:
        count = t.size if isinstance(t, Array) else 1
        if isinstance(t, Array | Fields | Tuple):
            count *= sum(_leaves(part, known) for part in parts(t))
        known[id(t)] = count
    return known[id(t)]


_ELEMENTS = (
    "allowed are bit, int, bool, varbit, enums, structs, headers, header unions, arrays and externs"
)


def _allowed_element(t: Type) -> bool:
    """Return whether arrays of a type exist (draft specification, 7.2.9: type nesting rules)."""
    if isinstance(t, ExternType):
        return True
    refused = t == ERROR or isinstance(t, Tuple | List | BlockType)
    return not refused and _allowed_field("struct", t)


def _in_header(t: Type) -> bool:
    match t:
        case Array(element=element) if not isinstance(t, Stack):
            return _in_header(element) and not isinstance(element, Varbit)
        case Struct(fields=fields):
            return all(_in_header(f.type) and not isinstance(f.type, Varbit) for f in fields)
        case NewType(underlying=underlying):
            return _in_header(underlying)
        case TypeVar():
            return True
    return isinstance(t, Bits | Varbit | SerEnum) or t in (BOOL, ANY)
