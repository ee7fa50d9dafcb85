"""The typed intermediate representation: a program after checking, instantiation and inlining.

Sub-parsers, sub-controls, functions and directly called actions are inlined; generics are gone;
every expression is pure and has its type; calls are statements in evaluation order. The result is
a package of parsers and controls over variables, tables with their actions, and extern instances.
The engines (interpreter, JIT), P4Info and the architectures read this and nothing earlier.
A field that can hold a node has a role (`roles.py`), from which the walks follow (`walk.py`).

Reading an undefined value gives zero (false, an invalid header, an empty varbit).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from reprlib import recursive_repr
from typing import TypeAlias

from gradplane.switch.ir.roles import Body, Declares, Parts, Passed, Reads, Refers, Writes
from gradplane.switch.ir.types import Annotations, Enum, Header, SerEnum, Type, bit_width
from gradplane.switch.source import NOWHERE, Span

LOOP_LIMIT = 1 << 20  # rounds of one loop for one packet


class Node:
    """The base of nodes, with their text. There is one `__repr__` for all, since to make one for
    each class takes a third of the time in which this module is imported."""

    __slots__ = ()

    @recursive_repr("...")
    def __repr__(self) -> str:
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))  # type: ignore
        return f"{type(self).__name__}({', '.join(shown)})"


# -- expressions -------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class Expr(Node):
    """An expression, with the type of its value."""

    type: Type


@dataclass(slots=True, eq=False, repr=False)
class Const(Expr):
    """A constant: int for Bits (in range; int<W> may be negative), bool for Bool, or str. base:
    that of its digits in the source."""

    value: int | bool | str
    base: int = field(default=10, compare=False)


class Zero(Expr):
    """The default value of any type: 0, false, invalid headers, next index 0, empty varbit."""

    __slots__ = ()


class LValue(Expr):
    """An expression that names storage: Var, FieldOf, ElementOf, NextOf, LastOf, SliceOf."""

    __slots__ = ()


@dataclass(slots=True, eq=False, repr=False)
class Var(LValue):
    """A variable; the object itself is its identity. `id` is unique in the program."""

    name: str
    id: int
    annotations: Annotations = ()
    type_name: str = ""  # the `type` or enum it was declared with, or ERROR_TYPE, for P4Info


@dataclass(slots=True, eq=False, repr=False)
class FieldOf(LValue):
    """Field number `index` of a struct, header or union."""

    base: Reads[LValue]
    index: int
    name: str


@dataclass(slots=True, eq=False, repr=False)
class ElementOf(LValue):
    """array[index], also of a stack. Outside, a read is zero (invalid header), a write does
    nothing."""

    base: Reads[LValue]
    index: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class NextOf(LValue):
    """stack.next, in parsers: error StackOutOfBounds when full. Extract advances the index."""

    base: Reads[LValue]


@dataclass(slots=True, eq=False, repr=False)
class LastOf(LValue):
    """stack.last, in parsers: error StackOutOfBounds when empty."""

    base: Reads[LValue]


@dataclass(slots=True, eq=False, repr=False)
class SliceOf(LValue):
    """base[hi:lo], read or (when base is an LValue) written; type is bit<hi-lo+1>."""

    base: Reads[Expr]
    hi: int
    lo: int


@dataclass(slots=True, eq=False, repr=False)
class LastIndex(Expr):
    """stack.lastIndex: bit<32>, next index minus one."""

    base: Reads[LValue]


@dataclass(slots=True, eq=False, repr=False)
class IsValid(Expr):
    """header.isValid(); a union is valid when one of its headers is."""

    base: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class Unary(Expr):
    """- ~ (Bits, result same type), ! (Bool)."""

    op: str
    operand: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class Binary(Expr):
    """+ - * / % |+| |-| & | ^ on equal Bits types; << >> with any Bits on the right (>> of a
    signed value is arithmetic; amounts beyond the width give 0 or the sign);
    == != on equal scalar types (Bits, Bool, Varbit); < <= > >= on equal Bits types;
    && || on Bool (operands are pure, so order does not matter);
    ++ on two Bits (result width is the sum). Division by zero gives 0.
    """

    op: str
    left: Reads[Expr]
    right: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class Mux(Expr):
    """cond ? then : other."""

    cond: Reads[Expr]
    then: Reads[Expr]
    other: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class Cast(Expr):
    """Between Bits of any width and sign (truncate, or extend by the operand's sign), and between
    bit<1> and Bool.
    """

    operand: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class Make(Expr):
    """A struct or a valid header from its fields, or an array from its elements, in order."""

    fields: Reads[list[Expr]]


# -- statements --------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Stmt(Node):
    """A statement, with its place in the source."""

    span: Span = NOWHERE


@dataclass(slots=True, eq=False, repr=False)
class Assign(Stmt):
    """target = value: copies by value, whole headers (with validity) and structs included.

    The value is read in full before the target changes. Assigning a valid header to a union's
    header, or SetValid on it, makes the union's other headers invalid.
    """

    target: Writes[LValue]
    value: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class SetValid(Stmt):
    """header.setValid() / setInvalid(). A header that was invalid becomes valid with all fields
    zero, one that was valid keeps them.
    """

    target: Writes[LValue]
    valid: bool


@dataclass(slots=True, eq=False, repr=False)
class Push(Stmt):
    """stack.push_front(count): new elements are invalid."""

    target: Writes[LValue]
    count: int


@dataclass(slots=True, eq=False, repr=False)
class Pop(Stmt):
    """stack.pop_front(count)."""

    target: Writes[LValue]
    count: int


@dataclass(slots=True, eq=False, repr=False)
class If(Stmt):
    """if (cond) then else other."""

    cond: Reads[Expr]
    then: Body[list[Stmt]]
    other: Body[list[Stmt]]


@dataclass(slots=True, eq=False, repr=False)
class SwitchStmt(Stmt):
    """A switch on a Bits expression; each case's values are distinct constants."""

    subject: Reads[Expr]
    cases: Body[list[tuple[list[int], list[Stmt]]]]
    default: Body[list[Stmt]]


HELPER = "helper"
"""The name of a block that stands for a helper's call in an abstract method: one operation of the
chip, whatever statements it takes here."""

SWEEP = "sweep"
"""The name of a block that is one access to all cells of a register: a loop of the access to one,
then the step to the next."""


@dataclass(slots=True, eq=False, repr=False)
class Block(Stmt):
    """A body that Leave(this) jumps to the end of: return, break, continue.

    `access`: the extern instance whose one access to a register the whole body is: a read, what an
    abstract method does with the cell, and a write."""

    body: Body[list[Stmt]]
    name: str = ""
    access: Refers[ExternInstance | None] = None


@dataclass(slots=True, eq=False, repr=False)
class Leave(Stmt):
    """Go on after `block`, which encloses this statement."""

    block: Refers[Block]


@dataclass(slots=True, eq=False, repr=False)
class Loop(Stmt):
    """Repeats its body until a Leave of an enclosing block ends it, at most LOOP_LIMIT times."""

    body: Body[list[Stmt]]


class Exit(Stmt):
    """Ends the top-level control at once."""

    __slots__ = ()


@dataclass(slots=True, eq=False, repr=False)
class ApplyTable(Stmt):
    """Evaluates the keys, looks up, runs the action. Afterwards `hit` (Bool) and `action_run`
    (bit<32>: position in table.actions) are set where given."""

    table: Parts[Table]
    hit: Writes[LValue | None] = None
    action_run: Writes[LValue | None] = None


@dataclass(slots=True, eq=False, repr=False)
class CallExtern(Stmt):
    """An extern function (instance None) or method call.

    `args` has an expression for each in parameter (and directionless one) and an LValue for each
    out and inout parameter; `directions` says which. `result` takes the return value. A constant
    of an enum type is passed by its name, as a String constant ("crc32"). `declared_type_args`: as
    those of an ExternInstance. `calculation`: the name that the control plane has for a hash; "":
    by its place in the program.
    """

    instance: Refers[ExternInstance | None]
    name: str  # function or method name
    args: Passed[list[Expr]]
    directions: list[str]
    result: Writes[LValue | None] = None
    type_args: list[Type] = field(default_factory=list)
    declared_type_args: list[Type] = field(default_factory=list)
    calculation: str = ""


@dataclass(slots=True, eq=False, repr=False)
class UserExternArgument(Node):
    """An argument of a user-defined extern.

    `type`: of the parameter, with enums, errors and tuples, as only the implementation sees them.
    `value` of an out or inout parameter is a variable of its own; None: left out.
    """

    name: str
    direction: str
    type: Type
    value: Passed[Expr | ExternInstance | None]


@dataclass(slots=True, eq=False, repr=False)
class CallUserExtern(Stmt):
    """A call of a user-defined extern, which may do anything but see the packet. `result` takes the
    return value, `type` is its type as in UserExternArgument, VOID if there is none."""

    instance: Refers[ExternInstance | None]
    name: str
    args: Parts[list[UserExternArgument]]
    result: Writes[Var | None]
    type: Type

    @property
    def places(self) -> list[tuple[Var, Type]]:
        """The values that the implementation gives: the result, then out and inout arguments."""
        given = [(a.value, a.type) for a in self.args if a.direction in ("out", "inout")]
        places = [(self.result, self.type), *given]
        return [(var, t) for var, t in places if isinstance(var, Var)]


# core.p4's packet_in, packet_out and verify


@dataclass(slots=True, eq=False, repr=False)
class Extract(Stmt):
    """packet.extract(header [, size in bits of its varbit field]); a NextOf target advances.

    Errors, the first that holds: StackOutOfBounds, ParserInvalidArgument (size not a multiple
    of 8), PacketTooShort, HeaderTooShort (size above the varbit's maximum).
    """

    target: Writes[LValue]
    size: Reads[Expr | None] = None


@dataclass(slots=True, eq=False, repr=False)
class Lookahead(Stmt):
    """target = packet.lookahead<T>(), T being target's type: Bits, Bool, a header, or a struct
    without headers; error PacketTooShort."""

    target: Writes[LValue]


@dataclass(slots=True, eq=False, repr=False)
class Advance(Stmt):
    """packet.advance(bits). Errors: ParserInvalidArgument (not a multiple of 8), PacketTooShort."""

    bits: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class PacketLength(Stmt):
    """target (bit<32>) = packet.length(), in bytes."""

    target: Writes[LValue]


@dataclass(slots=True, eq=False, repr=False)
class Verify(Stmt):
    """verify(cond, error): rejects with that error (its code, bit<32>) when cond is false."""

    cond: Reads[Expr]
    error: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class Emit(Stmt):
    """packet_out.emit(value): a header when valid, a stack, union or struct member by member."""

    value: Reads[Expr]


# -- matching ----------------------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class Match(Node):
    """One component of a keyset."""


class MatchAny(Match):
    """default, _"""

    __slots__ = ()


@dataclass(slots=True, eq=False, repr=False)
class MatchValue(Match):
    """key == value"""

    value: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class MatchMask(Match):
    """key & mask == value & mask"""

    value: Reads[Expr]
    mask: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class MatchRange(Match):
    """low <= key <= high"""

    low: Reads[Expr]
    high: Reads[Expr]


@dataclass(slots=True, eq=False, repr=False)
class MatchSet(Match):
    """Member of a parser value set; stands for all of the set's components at once."""

    set: Refers[ValueSet]


# -- parsers and controls ----------------------------------------------------------------------


@dataclass(slots=True, eq=False, repr=False)
class Param(Node):
    """A parameter of a top-level parser or control. packet_in and packet_out are left out."""

    name: str
    direction: str  # "" | "in" | "out" | "inout"
    var: Declares[Var]


@dataclass(slots=True, eq=False, repr=False)
class SelectCase(Node):
    """One Match per select expression; or a single MatchAny or MatchSet for all of them."""

    matches: Parts[list[Match]]
    next: str
    span: Span = NOWHERE


@dataclass(slots=True, eq=False, repr=False)
class State(Node):
    """A parser state. `select` empty: goes to `cases[0].next`. No case matches: error NoMatch.

    "accept" and "reject" are not in Parser.states. `on_reject` runs when parsing ends with a reject
    in this state: a sub-parser's out parameters are copied to its callers.
    """

    name: str
    body: Body[list[Stmt]]
    select: Reads[list[Expr]]
    cases: Parts[list[SelectCase]]
    span: Span = NOWHERE
    on_reject: Body[list[Stmt]] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Parser(Node):
    """A parser; it starts in state "start". `locals` are zero at each run before `setup` runs."""

    name: str
    params: Parts[list[Param]]
    locals: Declares[list[Var]]
    setup: Body[list[Stmt]]
    states: Parts[dict[str, State]]
    span: Span = NOWHERE
    annotations: Annotations = ()


@dataclass(slots=True, eq=False, repr=False)
class Control(Node):
    """A control. `locals` (inlined blocks' and temporaries included) are zero at each run."""

    name: str
    params: Parts[list[Param]]
    locals: Declares[list[Var]]
    body: Body[list[Stmt]]
    span: Span = NOWHERE
    annotations: Annotations = ()


# -- control-plane objects ---------------------------------------------------------------------
# `name` is the control-plane name: dotted, from the top-level block's type down, @name applied.


@dataclass(slots=True, eq=False, repr=False)
class Action(Node):
    """An action. `params` are the control plane's action data; the body may use the control's
    variables."""

    name: str
    params: Declares[list[Var]]
    body: Body[list[Stmt]]
    annotations: Annotations = ()
    span: Span = NOWHERE


@dataclass(slots=True, eq=False, repr=False)
class TableAction(Node):
    """An action of a table's list."""

    action: Refers[Action]
    annotations: Annotations = ()  # @tableonly, @defaultonly


@dataclass(slots=True, eq=False, repr=False)
class ActionCall(Node):
    """An action with its data: position in table.actions, and a constant a parameter."""

    index: int
    args: list[int | bool]

    def __reduce__(self) -> tuple[object, ...]:  # large tables have many: faster than by default
        return ActionCall, (self.index, self.args)


@dataclass(slots=True, eq=False, repr=False)
class Key(Node):
    """A key of a table, or a component of a value set."""

    name: str  # of the match field, @name applied
    expr: Reads[Expr]
    match_kind: str  # "exact" "lpm" "ternary" "range" "optional" "selector"
    annotations: Annotations = ()
    type_name: str = ""
    # the register of one cell with which `expr` is masked
    mask: Refers[ExternInstance | None] = None


@dataclass(slots=True, eq=False, repr=False)
class Entry(Node):
    """An entry given in the source: constants in `matches` (MatchAny, Value, Mask, Range)."""

    matches: Parts[list[Match]]
    action: Parts[ActionCall]
    priority: int | None = None  # as written
    const: bool = True
    annotations: Annotations = ()
    span: Span = NOWHERE

    def __reduce__(self) -> tuple[object, ...]:  # as for ActionCall; constants by type and value
        match self:
            case Entry(matches=[MatchValue(value=Const(type=t, value=value))], priority=None):
                data = (t, value, self.action.index, self.action.args)
                return _single_entry, (*data, self.const, self.annotations, self.span)
        values = (self.matches, self.action, self.priority, self.const)
        return Entry, (*values, self.annotations, self.span)


def _single_entry(
    key_type: Type,
    key: int | bool | str,
    action: int,
    args: list[int | bool],
    const: bool,
    annotations: Annotations,
    span: Span,
) -> Entry:
    """Make an entry with one constant key."""
    match: Match = MatchValue(Const(key_type, key))
    return Entry([match], ActionCall(action, args), None, const, annotations, span)


@dataclass(slots=True, eq=False, repr=False)
class Table(Node):
    """A table; what the control plane knows of it has this name."""

    name: str
    keys: Parts[list[Key]]
    key_setup: Body[list[Stmt]]  # run before the keys are evaluated
    actions: Refers[list[TableAction]]
    default: Refers[ActionCall]
    const_default: bool
    entries: Refers[list[Entry]]
    const_entries: bool  # the control plane may not change the entries
    size: int  # most entries
    implementation: Refers[ExternInstance | None] = None  # action profile or selector
    counter: Refers[ExternInstance | None] = None  # direct
    meter: Refers[ExternInstance | None] = None  # direct
    # for an entry whose group is empty; None: the default
    empty_group: Refers[ActionCall | None] = None
    support_timeout: bool = False
    largest_priority_wins: bool = True
    annotations: Annotations = ()
    span: Span = NOWHERE
    register: Refers[ExternInstance | None] = None  # direct: a cell for each entry
    filter: Refers[ExternInstance | None] = None  # direct
    algorithm: Refers[ExternInstance | None] = None  # how a chip stores it; its meaning is the same
    add_on_miss: bool = False  # its default action may add an entry
    auto_delete: bool = False  # entries leave when they are idle
    timed_by_calls: bool = False  # a hit does not restart an entry's timer, calls of actions do


Argument: TypeAlias = "int | bool | str | tuple[Argument, ...] | ExternInstance | None"
"""An argument of a constructor: an enum member is given by its name ("packets_and_bytes"), a list,
tuple or struct as a tuple of its parts; None: an optional one that was left out."""


@dataclass(slots=True, eq=False, repr=False)
class Method(Node):
    """An abstract method that an instance's initializer implements: a function of its parameters,
    without packet or other variables. `types` and `type` as in UserExternArgument."""

    name: str
    params: Parts[list[Param]]
    types: list[Type]
    result: Declares[Var | None]
    type: Type
    locals: Declares[list[Var]]
    body: Body[list[Stmt]]
    span: Span = NOWHERE


@dataclass(slots=True, eq=False, repr=False)
class UserExtern(Node):
    """The user-defined part of an extern instance: the types of the constructor's parameters, as in
    UserExternArgument, and abstract methods."""

    types: list[Type] = field(default_factory=list)
    methods: Parts[list[Method]] = field(default_factory=list)


@dataclass(frozen=True)
class InstanceKind:
    """The instances of an architecture's extern type.

    kind: see ExternInstance. roles: of the constructor's arguments, in the architecture's order, as
    the switch's state and P4Info need them: "size" (of arrays and profiles), "initial" (a
    register's cells), "unit" ("packets", "bytes", "packets_and_bytes"), "algorithm" (a hash's or a
    checksum's), "width" (of a selector's hash), "most" (members of its groups), "low" and "high"
    (of random numbers). An argument that nothing needs has "". named: the roles by the names of the
    constructors' parameters, for a type whose constructors differ in more than what they leave out.
    """

    kind: str
    roles: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict, hash=False)

    def roles_of(self, parameters: Sequence[str]) -> tuple[str, ...]:
        """Return the roles of a constructor's parameters."""
        if not self.named:
            return self.roles
        return tuple(self.named.get(name, "") for name in parameters)


REGISTER_ACTION = "register_action"
"""The kind of instances whose abstract method is inlined as an access to a register."""

LEARN_ACTIONS = "LearnAction"
"""How the types of register actions begin whose method takes the digest of a table's keys."""

TABLE_DIGEST = "$digest"
"""The function that computes that digest. No program can have one of this name."""

HIDDEN_REGISTER = "HiddenRegister"
"""The type of registers of one cell that no program declares, and P4Info does not list."""

ERROR_TYPE = "error"
"""The `type_name` of a key or parameter whose values are errors."""


@dataclass(slots=True, eq=False, repr=False)
class ExternInstance(Node):
    """A register, counter, ...: constructor arguments as constants or instances, in order.

    `kind` says which state it has in a running switch, whatever an architecture calls its type:
    "register", "direct_register", "counter", "direct_counter", "meter", "direct_meter",
    "action_profile", "action_selector", or another name for an instance without state there; ""
    for user-defined externs. `declared_type_args` are the type arguments with enums, errors and
    `type` declarations kept, for P4Info. `cell`: the struct that a cell of a register holds, whose
    type argument is the number that its fields make.
    """

    type: str  # as the program names it: "register", "Register", ...
    name: str
    type_args: list[Type]
    args: Refers[list[Argument]]
    annotations: Annotations = ()
    span: Span = NOWHERE
    declared_type_args: list[Type] = field(default_factory=list)
    user_extern: Refers[UserExtern | None] = None  # of a type that the architecture does not have
    kind: str = ""
    roles: tuple[str, ...] = ()  # of the first arguments, as the architecture has them
    cell: Type | None = None

    @property
    def accessed(self) -> ExternInstance | None:
        """The register that a register action accesses: the one that it is made with, or that of
        its selector; None where the selector has none."""
        made = next((a for a in self.args if isinstance(a, ExternInstance)), None)
        if made is None or made.kind != "action_selector":
            return made
        return made.register

    @property
    def register(self) -> ExternInstance | None:
        """The register with the states of a selector's members; None without."""
        made = (a for a in self.args if isinstance(a, ExternInstance))
        return next((a for a in made if a.kind == "register"), None)

    def number(self, role: str, default: int | None = None) -> int:
        """Return the constructor argument of a role, or the default where the program gives none.

        The roles of each kind: InstanceKind."""
        value = self._argument(role, default)
        if value is None and role == "width":  # of a selector's hash, an instance of its own
            hashes = [a for a in self.args if isinstance(a, ExternInstance) and a.kind == "hash"]
            value = next((bit_width(h.type_args[0]) for h in hashes), None)
        assert isinstance(value, int), (self.name, role, value)
        return int(value)

    def word(self, role: str) -> str:
        """Return the name of the enum's member that is the argument of a role, in lower case."""
        return str(self._argument(role, None)).lower()

    def _argument(self, role: str, default: int | None) -> Argument | None:
        place = self.roles.index(role) if role in self.roles else len(self.args)
        found = self.args[place] if place < len(self.args) else None
        if isinstance(found, ExternInstance):  # which the constructor takes it from
            return found._argument(role, default)
        return default if found is None else found


@dataclass(slots=True, eq=False, repr=False)
class ValueSet(Node):
    """A parser value set. masked: members may have masks in fields that match exactly, too."""

    name: str
    # one per component: its name (if any), type (through expr.type), match kind
    fields: Refers[list[Key]]
    size: int
    annotations: Annotations = ()
    span: Span = NOWHERE
    masked: bool = False


@dataclass(frozen=True, slots=True)
class PackageType:
    """The type of a package: its name, the bodies of its declaration's @pkginfo, its parameters."""

    name: str
    info: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Package(Node):
    """The package `main`: its constructor arguments by parameter name.

    In a program without main, all blocks that no other block uses, by name; the type is "".
    `declared_annotations`: those of the package's declaration. `name`: of the instance.
    `parameters`: the names of all that its declaration has, given or not.
    """

    type: str  # "V1Switch", "PSA_Switch", ...
    args: Parts[dict[str, Parser | Control | Package | Argument]]
    annotations: Annotations = ()
    span: Span = NOWHERE
    declared_annotations: Annotations = ()
    name: str = "main"
    parameters: tuple[str, ...] = ()

    @property
    def package_type(self) -> PackageType:
        info = (a.body for a in self.declared_annotations if a.name == "pkginfo")
        return PackageType(self.type, tuple(info), self.parameters)

    def parser(self, name: str) -> Parser:
        """Return the argument of this name, which is a parser."""
        arg = self.args[name]
        assert isinstance(arg, Parser), arg
        return arg

    def control(self, name: str) -> Control:
        """Return the argument of this name, which is a control."""
        arg = self.args[name]
        assert isinstance(arg, Control), arg
        return arg


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """A `type` declaration with @p4runtime_translation, or without (uri None)."""

    name: str
    width: int
    uri: str | None = None
    sdn_width: int | None = None  # None: an SDN string
    annotations: Annotations = ()

    @property
    def translation(self) -> tuple[str, int, int | None] | None:
        """The uri and both widths in bits; None if controllers see the values as they are."""
        return None if self.uri is None else (self.uri, self.width, self.sdn_width)


@dataclass(slots=True, eq=False, repr=False, weakref_slot=True)
class Program(Node):
    """A whole program. `prepared`: the steps of its preparation that were done and that cannot be
    done twice. `called_actions`: the statements of actions that are called directly (and the
    calls in them), by their places, with the place of the action: they are inlined here, and a chip
    does them at once.
    `in_hash`: the statements of @in_hash blocks, which Tofino's hashes compute, with the block.
    `direct_actions`: the actions that controls call, for their names, which P4Info lists as p4c's
    does; they have no bodies and no parameters.
    `pipe_scopes`: the pipes of a chip that run each of several pipelines, by the pipelines' names;
    empty: as the chip has them by default.
    `parts`: the programs of a chip whose pipelines these are, by their names, if it runs several at
    once; the names of each one's objects begin with its `label`, its own name and a dot.
    `file`: the one that was compiled; `main` may be in another that it includes."""

    package: Parts[Package]
    errors: list[str]  # error code -> name; NoError is 0 but in programs read from BMv2's JSON
    tables: Refers[list[Table]]
    actions: Refers[list[Action]]  # each control-plane action once, in source order
    externs: Refers[list[ExternInstance]]
    value_sets: Refers[list[ValueSet]]
    types: dict[str, TypeInfo] = field(default_factory=dict)
    enums: dict[str, SerEnum | Enum] = field(default_factory=dict)
    controller_headers: list[Header] = field(default_factory=list)
    annotations: Annotations = ()
    # all of them, in methods too
    user_extern_calls: Refers[list[CallUserExtern]] = field(default_factory=list)
    prepared: set[str] = field(default_factory=set)
    called_actions: dict[Span, Span] = field(default_factory=dict)
    in_hash: dict[Span, Span] = field(default_factory=dict)
    direct_actions: Refers[list[Action]] = field(default_factory=list)
    pipe_scopes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    parts: Refers[dict[str, Program]] = field(default_factory=dict)
    label: str = ""
    file: str = ""
