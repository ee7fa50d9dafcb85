"""The syntax tree of P4_16 (specification 1.2.5, appendix "P4 grammar").

The parser builds these nodes; the checker fills the few fields marked "set by check". Every node
carries its source span. Names are kept as written and resolved later, by the checker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradplane.switch.source import Span

if TYPE_CHECKING:
    from gradplane.switch.ir.types import Annotations, Type


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    span: Span


# -- annotations -------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Annotation(Node):
    """`@name`, `@name(body)` or `@name[...]`.

    `body` is the text between the brackets, tokens joined by single spaces. `exprs` holds the body
    as a list of expressions if it can be parsed as one, `pairs` as `key = value` pairs; otherwise
    both are None.
    """

    name: str
    body: str = ""
    exprs: list[Expr] | None = None
    pairs: dict[str, Expr] | None = None
    structured: bool = False
    pragma: bool = False  # `@pragma name body`


@dataclass(slots=True, eq=False, kw_only=True)
class Annotated(Node):
    """A node that can have annotations; `notes` are these with their values."""

    annotations: list[Annotation] = field(default_factory=list)
    notes: Annotations = field(default=(), init=False)  # set by check


# -- types as written --------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class TypeRef(Node):
    type: Type | None = field(default=None, init=False)  # set by check


@dataclass(slots=True, eq=False)
class BaseTypeRef(TypeRef):
    """bool, error, match_kind, string, void, int (no width), bit, bit<N>, int<N>, varbit<N>."""

    name: str
    width: Expr | None = None


@dataclass(slots=True, eq=False)
class NamedTypeRef(TypeRef):
    """A type name, `.Name` when `dot`, with type arguments when it is a specialised type."""

    name: str
    dot: bool = False
    args: list[TypeRef] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ArrayTypeRef(TypeRef):
    """`element[size]`: an array, or a stack where the elements are headers."""

    element: TypeRef
    size: Expr


@dataclass(slots=True, eq=False)
class TupleTypeRef(TypeRef):
    args: list[TypeRef]


@dataclass(slots=True, eq=False)
class ListTypeRef(TypeRef):
    element: TypeRef


@dataclass(slots=True, eq=False)
class DontCareTypeRef(TypeRef):
    """`_` as a type argument."""


# -- expressions -------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Expr(Node):
    type: Type | None = field(default=None, init=False)  # set by check
    const: Any = field(default=None, init=False)  # set by check: compile-time value, if known


@dataclass(slots=True, eq=False)
class IntLit(Expr):
    """`8w255`, `4s7`, `0x1F`: `width` None means arbitrary precision."""

    value: int
    width: int | None = None
    signed: bool = False
    base: int = 10


@dataclass(slots=True, eq=False)
class BoolLit(Expr):
    value: bool


@dataclass(slots=True, eq=False)
class StringLit(Expr):
    value: str


@dataclass(slots=True, eq=False)
class Name(Expr):
    """A variable, constant, function, ... or a type used as an expression prefix (`E.A`)."""

    name: str
    dot: bool = False
    decl: Any = field(default=None, init=False)  # set by check


@dataclass(slots=True, eq=False)
class TypeExpr(Expr):
    """A type where the grammar wants an expression: `error.NoMatch`, `C<bit<8>>(..)`, `T.apply`."""

    ref: TypeRef


@dataclass(slots=True, eq=False)
class Member(Expr):
    base: Expr
    name: str


@dataclass(slots=True, eq=False)
class Index(Expr):
    base: Expr
    index: Expr


@dataclass(slots=True, eq=False)
class Slice(Expr):
    """`base[hi:lo]`, or `base[lo +: width]` when `width` is given (then `hi` is None)."""

    base: Expr
    hi: Expr | None
    lo: Expr
    width: Expr | None = None


@dataclass(slots=True, eq=False)
class Unary(Expr):
    op: str  # "-" "+" "~" "!"
    operand: Expr


@dataclass(slots=True, eq=False)
class Binary(Expr):
    """Every infix operator, `++` `|+|` `|-|` `&&` `||` included."""

    op: str
    left: Expr
    right: Expr


@dataclass(slots=True, eq=False)
class Ternary(Expr):
    cond: Expr
    then: Expr
    other: Expr
    chained: bool = False  # `other` is such an expression without parentheses


@dataclass(slots=True, eq=False)
class Cast(Expr):
    """`(T) e`. through_int: of `(T) (int) e`, where e depends on the packet; set by check."""

    ref: TypeRef
    operand: Expr
    through_int: bool = field(default=False, init=False)


@dataclass(slots=True, eq=False)
class Argument(Node):
    """A call's argument: `e`, `name = e`, `_` (expr None), `...` (expr Dots)."""

    expr: Expr | None
    name: str | None = None


@dataclass(slots=True, eq=False)
class Call(Expr):
    """Function, method, action, constructor or `apply` call; also `type_args` between `<>`."""

    callee: Expr
    type_args: list[TypeRef]
    args: list[Argument]
    info: Any = field(default=None, init=False)  # set by check: the CallInfo of the call


@dataclass(slots=True, eq=False)
class ListExpr(Expr):
    """`{a, b}`, with `...` allowed as the last element (Dots)."""

    elements: list[Expr]


@dataclass(slots=True, eq=False)
class StructExpr(Expr):
    """`{a = x, b = y}`, with `...` as the last element when `dots`."""

    fields: list[tuple[str, Expr]]
    dots: bool = False


@dataclass(slots=True, eq=False)
class InvalidHeader(Expr):
    """`{#}`."""


@dataclass(slots=True, eq=False)
class Dots(Expr):
    """`...`: the default value."""


# Only inside keysets (select cases, table entries, switch labels, value sets):


@dataclass(slots=True, eq=False)
class Range(Expr):
    low: Expr
    high: Expr


@dataclass(slots=True, eq=False)
class Mask(Expr):
    value: Expr
    mask: Expr


@dataclass(slots=True, eq=False)
class DefaultKey(Expr):
    """`default` or `_` in a keyset."""


@dataclass(slots=True, eq=False)
class TupleKey(Expr):
    """`(k1, k2, ...)`: a keyset over several select expressions or table keys."""

    elements: list[Expr]


# -- statements --------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Stmt(Node):
    pass


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """`target op value`: op is "=", "+=", "|+|=", "<<=", ..."""

    target: Expr
    op: str
    value: Expr


@dataclass(slots=True, eq=False)
class CallStmt(Stmt):
    call: Call


@dataclass(slots=True, eq=False)
class Block(Stmt, Annotated):
    body: list[Stmt]  # VarDecl, ConstDecl and Instantiation are among them, as DeclStmt


@dataclass(slots=True, eq=False)
class DeclStmt(Stmt):
    decl: Decl  # VarDecl, ConstDecl, Instantiation


@dataclass(slots=True, eq=False)
class If(Stmt):
    cond: Expr
    then: Stmt
    other: Stmt | None = None


@dataclass(slots=True, eq=False)
class SwitchCase(Node):
    """One label; `body` None falls through to the next case's body."""

    label: Expr  # an expression, or DefaultKey
    body: Block | None


@dataclass(slots=True, eq=False)
class SwitchStmt(Stmt):
    subject: Expr
    cases: list[SwitchCase]


@dataclass(slots=True, eq=False)
class For(Stmt, Annotated):
    init: list[Stmt]
    cond: Expr
    update: list[Stmt]
    body: Stmt


@dataclass(slots=True, eq=False)
class ForIn(Stmt, Annotated):
    """`for (T x in collection)`."""

    var: VarDecl
    collection: Expr  # an expression, or Range
    body: Stmt


@dataclass(slots=True, eq=False)
class Break(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Continue(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Return(Stmt):
    value: Expr | None = None


@dataclass(slots=True, eq=False)
class Exit(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Empty(Stmt):
    pass


# -- declarations ------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Decl(Annotated):
    name: str
    name_span: Span | None = field(default=None, kw_only=True)  # the span of the name itself
    denoted: Type | None = field(default=None, init=False)  # set by check: the type it makes


@dataclass(slots=True, eq=False)
class Param(Decl):
    ref: TypeRef
    direction: str = ""  # "" | "in" | "out" | "inout"
    default: Expr | None = None
    type: Type | None = field(default=None, init=False)  # set by check


@dataclass(slots=True, eq=False)
class VarDecl(Decl):
    ref: TypeRef
    init: Expr | None = None
    type: Type | None = field(default=None, init=False)  # set by check


@dataclass(slots=True, eq=False)
class ConstDecl(Decl):
    ref: TypeRef
    value: Expr
    type: Type | None = field(default=None, init=False)  # set by check


@dataclass(slots=True, eq=False)
class Instantiation(Decl):
    """`T<..>(args) name [= { methods }];`"""

    ref: TypeRef
    args: list[Argument]
    body: list[Decl] | None = None  # implementations of abstract methods, and instances
    type: Type | None = field(default=None, init=False)  # set by check
    info: Any = field(default=None, init=False)  # set by check: the constructor call
    this: Param | None = field(default=None, init=False)  # set by check: `this` within `body`


@dataclass(slots=True, eq=False)
class FunctionDecl(Decl):
    """A function, an extern function or an extern's method; the latter two have no body.

    `result` is None for a constructor: an extern's method with the extern's name.
    """

    result: TypeRef | None
    type_params: list[str]
    params: list[Param]
    body: Block | None = None
    abstract: bool = False
    signature: Any = field(default=None, init=False)  # set by check


@dataclass(slots=True, eq=False)
class ExternDecl(Decl):
    """`extern T<..> { methods }`; a lone extern function is a FunctionDecl without a body."""

    type_params: list[str]
    methods: list[FunctionDecl]


@dataclass(slots=True, eq=False)
class ActionDecl(Decl):
    params: list[Param]
    body: Block
    signature: Any = field(default=None, init=False)  # set by check


@dataclass(slots=True, eq=False)
class FieldDecl(Decl):
    ref: TypeRef


@dataclass(slots=True, eq=False)
class StructDecl(Decl):
    kind: str  # "struct" | "header" | "header_union"
    type_params: list[str]
    fields: list[FieldDecl]


@dataclass(slots=True, eq=False)
class EnumDecl(Decl):
    """`enum E {A, B}`, or `enum bit<8> E {A = 1}` when `underlying` is given."""

    underlying: TypeRef | None
    members: list[tuple[str, Expr | None, Span]]


@dataclass(slots=True, eq=False)
class ErrorDecl(Decl):
    members: list[tuple[str, Span]]  # `name` is "error"


@dataclass(slots=True, eq=False)
class MatchKindDecl(Decl):
    members: list[tuple[str, Span]]  # `name` is "match_kind"


@dataclass(slots=True, eq=False)
class TypedefDecl(Decl):
    """`typedef T name;`, or `type T name;` when `new`."""

    ref: TypeRef
    new: bool = False


@dataclass(slots=True, eq=False)
class ParserTypeDecl(Decl):
    type_params: list[str]
    params: list[Param]


@dataclass(slots=True, eq=False)
class ControlTypeDecl(Decl):
    type_params: list[str]
    params: list[Param]


@dataclass(slots=True, eq=False)
class PackageTypeDecl(Decl):
    type_params: list[str]
    params: list[Param]


@dataclass(slots=True, eq=False)
class ValueSetDecl(Decl):
    ref: TypeRef
    size: Expr


@dataclass(slots=True, eq=False)
class SelectCase(Node):
    """`keyset: state;` with a TupleKey for several keys."""

    keyset: Expr
    state: str


@dataclass(slots=True, eq=False)
class Select(Node):
    exprs: list[Expr]  # check puts the elements of a list in its place
    cases: list[SelectCase]
    one_list: bool = field(default=False, init=False)  # set by check: it was written as a list


@dataclass(slots=True, eq=False)
class ParserState(Decl):
    """`transition` is a state name, a Select, or None (which means reject)."""

    body: list[Stmt]
    transition: str | Select | None
    transition_span: Span | None = None


@dataclass(slots=True, eq=False)
class ParserDecl(Decl):
    type_params: list[str]
    params: list[Param]
    ctor_params: list[Param]
    locals: list[Decl]  # VarDecl, ConstDecl, Instantiation, ValueSetDecl
    states: list[ParserState]


@dataclass(slots=True, eq=False)
class KeyElement(Annotated):
    expr: Expr
    match_kind: str
    name: str = field(default="", init=False)  # set by check: the control plane's


@dataclass(slots=True, eq=False)
class ActionRef(Annotated):
    """An action in a table's list, a default_action or an entry: `name(args)`; args None: no ()."""

    name: str
    args: list[Argument] | None
    dot: bool = False
    info: Any = field(default=None, init=False)  # set by check


@dataclass(slots=True, eq=False)
class TableEntry(Annotated):
    keyset: Expr  # TupleKey for several keys
    action: ActionRef
    const: bool = False
    priority: Expr | None = None  # `priority = n :` before the keyset
    plain: bool = field(default=False, init=False)  # integers alone: one key, the arguments


@dataclass(slots=True, eq=False)
class TableProperty(Annotated):
    """Any property but key, actions and entries. `value` may be a ListExpr or a Call."""

    name: str
    value: Expr
    const: bool


@dataclass(slots=True, eq=False)
class TableDecl(Decl):
    key: list[KeyElement]
    actions: list[ActionRef]
    lists_actions: bool  # whether the property is present; its list may be empty
    entries: list[TableEntry]
    const_entries: bool
    properties: list[TableProperty]  # size, implementation, counters, ...
    default_action: ActionRef | None = None
    const_default: bool = False
    empty_group_action: ActionRef | None = None  # PSA's psa_empty_group_action
    entries_annotations: list[Annotation] = field(default_factory=list)
    entries_silent: frozenset[str] = field(default=frozenset(), init=False)  # set by check: noWarn


@dataclass(slots=True, eq=False)
class ControlDecl(Decl):
    type_params: list[str]
    params: list[Param]
    ctor_params: list[Param]
    locals: list[Decl]  # VarDecl, ConstDecl, Instantiation, ActionDecl, TableDecl
    body: Block


@dataclass(slots=True, eq=False)
class Program(Node):
    declarations: list[Decl]
