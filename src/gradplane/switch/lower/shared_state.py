"""The state of a program's lowering that all its parts share: the top environment, the IR's lists,
names taken, errors; and what uses parsers and controls in the syntax tree.

An environment is the meaning of names in one instance of a block: a declaration that is
instantiated twice has two different variables, tables and externs.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradplane.switch.check.checker_types import TypeVar, substitute
from gradplane.switch.check.p4c_warnings import KIND
from gradplane.switch.check.records import CallInfo, Checked, EnumValue
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.printer import statement_text
from gradplane.switch.ir.types import Annotation, Annotations, Enum, Error, Type, given_name
from gradplane.switch.ir.verify import CORE_ERRORS
from gradplane.switch.ir.walk import statements
from gradplane.switch.source import Reporter, Span
from gradplane.switch.syntax import ast


class Packet:
    """The binding of packet_in and packet_out parameters: a block has only one of them."""


PACKET = Packet()


@dataclass(slots=True, eq=False)
class BlockInstance:
    """A parser or control instance; `env` binds its constructor parameters."""

    decl: ast.ParserDecl | ast.ControlDecl
    name: str
    env: Env
    sites: int = 1  # number of places that apply it
    elaborated: Env | None = None  # bindings of locals and parameters, from the first apply on


@dataclass(slots=True, eq=False)
class ActionInstance:
    """An action in one control instance; its IR is made where a table uses it."""

    decl: ast.ActionDecl
    name: str
    env: Env
    made: ir.Action | None = None


@dataclass(slots=True, eq=False)
class AbstractMethod:
    """An abstract method that an instance's initializer implements, in the instance's scope."""

    decl: ast.FunctionDecl
    env: Env


@dataclass(slots=True, eq=False)
class PackageInstance:
    """A package that is an argument of another package."""

    package: ir.Package


@dataclass(slots=True, eq=False)
class InstanceArray:
    """An array of extern instances, or of such arrays."""

    elements: list[ir.ExternInstance | InstanceArray]


Binding = (
    ir.Expr
    | ir.ExternInstance
    | InstanceArray
    | ir.Table
    | ir.ValueSet
    | BlockInstance
    | ActionInstance
    | PackageInstance
    | Packet
)


@dataclass(slots=True, eq=False)
class Env:
    """Bindings of declarations; `path` is the control-plane name of the enclosing block."""

    parent: Env | None
    path: str = ""
    types: Mapping[TypeVar, Type] = field(default_factory=dict)
    bindings: dict[ast.Decl, Binding] = field(default_factory=dict)

    def find(self, decl: ast.Decl) -> Binding | None:
        env: Env | None = self
        while env is not None:
            if decl in env.bindings:
                return env.bindings[decl]
            env = env.parent
        return None

    def block(self) -> Env:
        """Return the environment of the whole enclosing block."""
        env = self
        while env.parent is not None and env.parent.path == env.path:
            env = env.parent
        return env

    def bind(self, decl: ast.Decl, value: Binding) -> None:
        self.bindings[decl] = value

    def resolved(self, t: Type) -> Type:
        """Return a type of the checked tree with the type arguments of this place."""
        return substitute(t, self.types) if self.types else t

    def inner(self, types: Mapping[TypeVar, Type] | None = None) -> Env:
        return Env(self, self.path, types if types is not None else self.types)


def control_plane_name(path: str, name: str, annotations: tuple[Annotation, ...]) -> str:
    """Return the dotted name of an object.

    @name replaces the last part, or everything if it starts with a dot.
    """
    name = given_name(annotations) or name
    if name.startswith("."):
        return name[1:]
    return f"{path}.{name}" if path else name


DEFAULT_SIZE = 1024  # of a table: P4Runtime's
MAX_INLINED = 20_000  # calls; functions that call others twice grow exponentially
Natives = Mapping[tuple[str, str], ir.InstanceKind | None]
"""The externs that an architecture has: ("", function), (type, method), and (type, "") with the
kind of its instances."""


class Shared(ABC):
    """The shared state of the lowering of a program: the top environment and the IR's lists."""

    def __init__(
        self,
        checked: Checked,
        reporter: Reporter,
        natives: Natives | None = None,
        table_size: int = DEFAULT_SIZE,
    ) -> None:
        self.checked = checked
        self.errors = _in_order(checked.errors)
        self.program = checked.program
        self.reporter = reporter
        self.natives = natives
        self.table_size = table_size
        self.top = Env(None)
        self.tables: list[ir.Table] = []
        self.actions: list[ir.Action] = []
        self.externs: list[ir.ExternInstance] = []
        self.value_sets: list[ir.ValueSet] = []
        self.user_extern_calls: list[ir.CallUserExtern] = []
        self.called_actions: dict[Span, Span] = {}
        self.in_hash: dict[Span, Span] = {}
        self.direct_actions: dict[str, ir.Action] = {}  # by name
        self._named_actions = defaultdict[str, list[ActionInstance]](list)
        self.direct_of: dict[ir.ExternInstance, str] = {}  # direct counter or meter: its table
        self.methods: dict[tuple[ir.ExternInstance, str], AbstractMethod] = {}  # to be inlined
        self.accessed: dict[ir.ExternInstance, list[ir.Expr]] = {}  # a register action's cell
        self.accessing = False  # whether inside the body of a register action
        self._ids = itertools.count()
        self.sites = apply_sites(checked.all_nodes())
        self._direct: dict[tuple[Env, CallInfo], BlockInstance] = {}
        self._codes: dict[ir.Table, dict[str, int]] = {}
        self._names: dict[tuple[str, str], Span] = {}
        self._inlined = 0
        self._architecture = functions_beside_package(checked.program)

    @abstractmethod
    def instantiate(self, decl: ast.Instantiation, env: Env) -> None:
        """Make the object that an instantiation declares, and bind it."""

    @abstractmethod
    def extern_instance(
        self, info: CallInfo, name: str, annotations: Annotations, env: Env, span: Span
    ) -> ir.ExternInstance:
        """Return the extern instance that a constructor call makes."""

    @abstractmethod
    def elaborate(self, decl: ast.ParserDecl | ast.ControlDecl, env: Env, body: Any) -> None:
        """Make the objects that a block declares, once per instance."""

    # -- shared services -----------------------------------------------------------------------

    def variable(self, name: str, t: Type) -> ir.Var:
        return ir.Var(t, name, next(self._ids))

    def hidden_register(self, name: str, t: Type) -> ir.ExternInstance:
        """Return the register of one cell with a name, made on first use; it is in no P4Info."""
        for instance in self.externs:
            if instance.name == name:
                return instance
        made = ir.ExternInstance(
            ir.HIDDEN_REGISTER, name, [t], [1], kind="register", roles=("size",)
        )
        self.externs.append(made)
        return made

    def unsupported(self, span: Span, message: str, hint: str = "") -> None:
        """Report what our architectures do not support; another architecture may."""
        if self.natives is not None:
            self.reporter.error(span, message, hint)

    def is_user_defined(self, info: CallInfo) -> bool:
        """Return whether an extern function is user-defined.

        That is, the architecture has none of its name, or declares another form of it beside its
        package.
        """
        if self.natives is None or ("", info.name) not in self.natives:
            return True
        assert isinstance(info.decl, ast.FunctionDecl)
        return info.name in self._architecture and info.decl not in self._architecture[info.name]

    def count_inlined(self, span: Span) -> None:
        """Count a call that is replaced by the body of its callee."""
        self._inlined += 1
        if self._inlined > MAX_INLINED:
            self.reporter.error(
                span, f"the program is too large: more than {MAX_INLINED} calls to inline"
            )
            self.reporter.stop_on_errors()

    def member_code(self, value: EnumValue) -> int:
        match value.type:
            case Enum(members=members):
                return members.index(value.name)
            case Error():
                return self.errors.index(value.name)
        return self.checked.match_kinds.index(value.name)

    def error_code(self, name: str) -> int:
        """Return the code of a core.p4 error; 0 without core.p4, as in the engines."""
        return self.errors.index(name) if name in self.errors else 0

    def note_table(self, table: ir.Table, codes: dict[str, int]) -> None:
        self.tables.append(table)
        self._codes[table] = codes

    def settle_tables(self, first: int, users: Iterable[ir.Parser | ir.Control]) -> None:
        """Report tables of one name, from number `first` on. Those that no block applies, since a
        condition is constant, make room for one that is applied."""
        named: dict[str, list[ir.Table]] = {}
        for table in self.tables[first:]:
            named.setdefault(table.name, []).append(table)
        several = [found for found in named.values() if len(found) > 1]
        if not several:
            return
        applied = {
            stmt.table
            for block in users
            for stmt in statements(block)
            if isinstance(stmt, ir.ApplyTable)
        }
        for found in several:
            kept, *others = [table for table in found if table in applied] or found[:1]
            for other in others:
                self._same_name("table", other.name, other.span, kept.span)
            for table in found:
                if table is not kept and table not in others:
                    self._remove(table)

    def _remove(self, table: ir.Table) -> None:
        self.tables.remove(table)
        own = (table.counter, table.meter, table.register, table.filter)
        self.externs[:] = [extern for extern in self.externs if extern not in own]

    def note_action(self, action: ir.Action, instance: ActionInstance) -> None:
        """Add an action; it is listed once, even if several tables bind its arguments.

        Two actions of one name are one to the control plane if they are the same in all but their
        place, as those of `@name(".nop")` in several controls of translated P4_14. Others are an
        error: "Programs that yield the same fully-qualified name for two different controllable
        entities are invalid" (P4_16, "Annotations controlling naming").
        """
        known = next((a for a in self.actions if a.name == action.name), None)
        if known is None:
            self.actions.append(action)
        elif known.span != action.span and not _same_action(known, action):
            self._same_name("action", action.name, action.span, known.span)
            return
        self._warn_of_second(instance)

    def note_direct_action(self, action: ActionInstance) -> None:
        """Add an action that a control calls, unless it has been added before."""
        decl, name = action.decl, action.name
        annotations = decl.notes
        self.direct_actions.setdefault(name, ir.Action(name, [], [], annotations, decl.span))
        self._warn_of_second(action)

    def _warn_of_second(self, action: ActionInstance) -> None:
        """Warn, once, of an action that has the name of another, or of one in another instance of
        its control."""
        known = self._named_actions[action.name]
        if action in known:
            return
        if known and not _is_silent(action.decl.notes):
            text = f"p4c refuses a second action of the control-plane name {action.name}"
            self.reporter.warning(action.decl.span, text, _first(known[0], action), KIND)
        known.append(action)

    def action_codes(self, table: ir.Table) -> dict[str, int]:
        """Return the map from an action's name in the source to its position in table.actions."""
        return self._codes[table]

    def take_name(self, kind: str, name: str, span: Span) -> None:
        """Reserve a control-plane name for one object (17.3.1)."""
        if (kind, name) in self._names:
            self._same_name(kind, name, span, self._names[kind, name])
        self._names[kind, name] = span

    def is_taken(self, kind: str, name: str) -> bool:
        """Return whether an object has a control-plane name."""
        return (kind, name) in self._names

    def _same_name(self, kind: str, name: str, span: Span, other: Span) -> None:
        hint = f"the first is at {other}: give one of them a @name"
        if other == span:
            hint = "its block is instantiated more than once under one name"
        self.reporter.error(span, f"a second {kind} has the control-plane name {name}", hint)

    def no_action(self) -> ActionInstance:
        for decl, bound in self.top.bindings.items():
            if decl.name == "NoAction" and isinstance(bound, ActionInstance):
                return bound
        decl = ast.ActionDecl(
            "NoAction", [], ast.Block([], span=self.program.span), span=self.program.span
        )
        instance = ActionInstance(decl, "NoAction", self.top)
        self.top.bind(decl, instance)
        return instance

    def direct_instance(self, info: CallInfo, env: Env) -> BlockInstance:
        """Return the instance for `C.apply()`: one in each instance of the enclosing block."""
        assert isinstance(info.decl, ast.ParserDecl | ast.ControlDecl)
        name = control_plane_name(env.path, info.decl.name, ())
        return self._direct.setdefault(
            (env.block(), info), BlockInstance(info.decl, name, self.top.inner())
        )


def _first(known: ActionInstance, action: ActionInstance) -> str:
    if known.decl is action.decl:
        return "its control is instantiated more than once"
    return f"the first is at {known.decl.span}"


def _is_silent(annotations: Annotations) -> bool:
    return any(note.name == "noWarn" and KIND in note.values for note in annotations)


def _same_action(a: ir.Action, b: ir.Action) -> bool:
    """Return whether two actions are the same in parameters and text."""
    params, others = ([(p.name, p.type) for p in action.params] for action in (a, b))
    return params == others and [*map(statement_text, a.body)] == [*map(statement_text, b.body)]


def _in_order(errors: list[str]) -> list[str]:
    """Return core.p4's errors first: NoError is 0 even if a program declares errors earlier."""
    core = [name for name in CORE_ERRORS if name in errors]
    return core + [name for name in errors if name not in core]


# -- uses of blocks ---------------------------------------------------------------------------


def apply_sites(nodes: Iterable[ast.Node]) -> Counter[ast.Decl]:
    """Count the `instance.apply(...)` of each Instantiation (or parameter)."""
    count: Counter[ast.Decl] = Counter()
    for node in nodes:
        if isinstance(node, ast.Call) and node.info is not None and node.info.kind == "block":
            base = node.info.base
            if isinstance(base, ast.Name) and isinstance(base.decl, ast.Decl):
                count[base.decl] += 1
    return count


def used_blocks(nodes: Iterable[ast.Node]) -> set[ast.Decl]:
    """Return the parsers and controls that are instantiated or applied somewhere."""
    used: set[ast.Decl] = set()
    for node in nodes:
        info = node.info if isinstance(node, ast.Call | ast.Instantiation) else None
        if info is not None and info.kind in ("constructor", "block") and info.decl is not None:
            used.add(info.decl)
    return used


def functions_beside_package(program: ast.Program) -> dict[str, list[ast.Decl]]:
    """Return the extern functions, by name, of the file that declares the package of `main`."""
    instances = [d for d in program.declarations if isinstance(d, ast.Instantiation)]
    files = {d.info.decl.span.file for d in instances if d.name == "main"}
    found: dict[str, list[ast.Decl]] = {}
    for decl in program.declarations:
        if isinstance(decl, ast.FunctionDecl) and decl.span.file in files:
            found.setdefault(decl.name, []).append(decl)
    return found
