"""Check tables: keys, actions, entries, properties (specification, section 14.2).

The control-plane names of keys that have no @name are p4c's: @name on fields is applied, isValid()
becomes `$valid$`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradplane import _suggestions
from gradplane.switch.check.arguments import match_arguments
from gradplane.switch.check.checker_types import (
    ANY,
    ExternType,
    ParamType,
    Signature,
    free_variables,
)
from gradplane.switch.check.context import Context, require_lvalue
from gradplane.switch.check.expression_text import describe, muted, written_alike
from gradplane.switch.check.keyset_coverage import Earlier, Known, PlainEntries, known_sets, single
from gradplane.switch.check.records import MAX_PRIORITY, MAX_SIZE, ActionUse
from gradplane.switch.ir.types import (
    BOOL,
    INTEGER,
    Bits,
    Enum,
    Error,
    Fields,
    Integer,
    NewType,
    SerEnum,
    Tuple,
    Type,
    given_name,
)
from gradplane.switch.syntax import ast


class TableChecker:
    def __init__(self, checker: Context) -> None:
        self.c = checker

    def check(self, decl: ast.TableDecl) -> None:
        with self.c.inside("table"):
            with self.c.inside("key"):
                types = [self._key(k) for k in decl.key]
            uses = self._actions(decl)
            if decl.default_action is not None:
                self._default(decl, uses)
            if decl.empty_group_action is not None:
                self._called(decl, decl.empty_group_action, uses)
            self._key_names(decl)
            self.c.notes.values(decl.entries_annotations)
            decl.entries_silent = muted(decl.entries_annotations)
            only = {
                r.name: a.name
                for r in decl.actions
                for a in r.annotations
                if a.name in ("defaultonly", "groupaction")
            }
            plain = self._plain(types, uses)
            for entry in decl.entries:
                entry.plain = entry.plain and plain.take(entry)
                if not entry.plain:
                    self._entry(decl, entry, types, uses)
                if entry.action.name in only:
                    what = f"action {entry.action.name} is @{only[entry.action.name]}"
                    self.c.error(entry.action, what)
            self._priorities(decl)
            self._selector_keys(decl)
            self._never_matched(decl, types)
            self._properties(decl)
        if decl.entries and not decl.key:
            self.c.error(decl, f"table {decl.name} has entries but no key")

    # -- keys ----------------------------------------------------------------------------------

    def _key(self, key: ast.KeyElement) -> Type:
        self.c.annotations(key)
        if isinstance(key.expr, ast.ListExpr) and len(key.expr.elements) == 1:
            self._tuple_key(key.expr)
            (key.expr,) = key.expr.elements
        t = self.c.exprs.value(key.expr)
        if isinstance(t, Tuple) and len(t.elements) == 1:
            self._tuple_key(key.expr)
            first = ast.IntLit(0, None, False, span=key.expr.span)
            key.expr = ast.Index(key.expr, first, span=key.expr.span)
            t = self.c.exprs.value(key.expr)
        if key.match_kind not in self.c.match_kinds:
            known = _suggestions.hint(key.match_kind, self.c.match_kinds)
            self.c.error(key, f"match kind {key.match_kind} is not declared", known)
        fits = isinstance(t, Bits | Enum | SerEnum | Error | NewType)
        if not fits and t not in (BOOL, ANY):
            hint = "give it a width: 8w1" if t == INTEGER else ""
            self.c.error(key.expr, f"a key cannot be of type {t}", hint)
        elif key.expr.const is not None and t != ANY:
            self.c.warn(key.expr, "always", "this key is the same for every packet")
        if (fits or t == BOOL) and not self._name(key):
            self.c.error(
                key.expr, "this key needs a name", f'write ... : {key.match_kind} @name("...");'
            )
        return t

    def _tuple_key(self, place: ast.Expr) -> None:
        self.c.warn(place, "p4c", "p4c takes no tuple as a key", "write its element")

    def _key_names(self, decl: ast.TableDecl) -> None:
        """Report control-plane names that belong to more than one key (18.4)."""
        seen: dict[str, ast.KeyElement] = {}
        for key in decl.key:
            name = given_name(key.notes)
            if name and name in seen:
                what = f"a second key of table {decl.name} has the name {name}"
                self.c.error(key, what, f"the first is at {seen[name].span}")
            seen[name] = key

    def _selector_keys(self, decl: ast.TableDecl) -> None:
        """Warn of keys that only an action selector looks at, in a table that has none."""
        shared = any(p.name.endswith("implementation") for p in decl.properties)
        keys = [] if shared else [key for key in decl.key if key.match_kind == "selector"]
        if keys:
            said = "a key of kind selector is" if len(keys) == 1 else "keys of kind selector are"
            what = f"{said} looked at by an action selector only"
            self.c.warn(keys[0], "unused", what, "implementation = action_selector(...);")

    def _name(self, key: ast.KeyElement) -> str:
        key.name = given_name(key.notes) or key_name(key.expr, self.c.reporter.lines) or ""
        return key.name

    # -- actions -------------------------------------------------------------------------------

    def _actions(self, decl: ast.TableDecl) -> dict[str, ActionUse]:
        if not decl.lists_actions:
            self.c.error(decl, f"table {decl.name} has no actions", "actions = { NoAction; }")
        uses: dict[str, ActionUse] = {}
        for ref in decl.actions:
            if ref.name in uses:
                self.c.error(ref, f"action {ref.name} is listed twice in table {decl.name}")
                continue
            use = self._listed(ref)
            if use is not None:
                uses[ref.name] = use
        return uses

    def _find(self, ref: ast.ActionRef) -> ast.ActionDecl | None:
        found = self.c.scopes.find(ref.name, ref.dot)
        if not found:
            self.c.error(ref, f"action {ref.name} is not declared", self.c.scopes.nearest(ref.name))
            return None
        if not isinstance(found[0], ast.ActionDecl):
            self.c.error(ref, f"{ref.name} is not an action")
            return None
        return found[0]

    def _listed(self, ref: ast.ActionRef) -> ActionUse | None:
        notes = {a.name for a in self.c.annotations(ref)}
        scopes = [n for n in ("tableonly", "defaultonly", "groupaction") if n in notes]
        if len(scopes) > 1:
            both = " and ".join(f"@{name}" for name in scopes)
            self.c.error(ref, f"action {ref.name} is {both}: it is never used")
        action = self._find(ref)
        if action is None:
            return None
        params = [p for p in self.c.calls.signature(action).params if p.direction]
        for argument in ref.args or []:
            if argument.expr is None:
                self.c.error(argument, "_ cannot be an argument in a list of actions")
                return None
        bound = self._arguments(ref, action.name, params, ref.args or [])
        if bound is None:
            return None
        use = ref.info = ActionUse(action, bound, [])
        return use

    def _arguments(
        self,
        ref: ast.ActionRef,
        name: str,
        params: Sequence[ParamType],
        given: Sequence[ast.Argument],
    ) -> list[ast.Expr] | None:
        matched = match_arguments(self.c, ref, given, Signature(name, (), tuple(params), ANY))
        if matched is None:
            return None
        args = [a for a in matched if a is not None]
        for arg, p in zip(args, params, strict=False):
            what = f"argument {p.name} of {name}"
            self.c.exprs.value(arg)
            if p.direction in ("out", "inout"):
                if arg.type != p.type:
                    self.c.error(arg, f"{what} must be of type {p.type}, not {arg.type}")
                require_lvalue(self.c, arg, what)
            else:
                self.c.exprs.coerce(arg, p.type, what)
        return args

    def _called(self, decl: ast.TableDecl, ref: ast.ActionRef, uses: dict[str, ActionUse]) -> None:
        """Check an action with its data, in default_action or an entry; the table must list it."""
        action = self._find(ref)
        if action is None:
            return
        use = uses.get(ref.name)
        if use is None or use.decl is not action:
            known = ", ".join(uses) or "none"
            self.c.error(
                ref,
                f"action {ref.name} is not in the list of table {decl.name}",
                f"it lists {known}",
            )
            return
        params = self.c.calls.signature(action).params
        data = [p for p in params if not p.direction]
        given = ref.args or []
        if len(data) < len(params):
            directed = [p.name for p in params if p.direction]
            repeated, given = _split(given, directed, use.bound, len(params))
            self._bound_again(ref, use, directed, repeated)
        args = self._arguments(ref, action.name, data, given)
        for arg in args or []:
            if arg.type != ANY and not self.c.compile_time(arg):
                self.c.error(arg, "action data in a table must be known at compile time")
        ref.info = ActionUse(action, use.bound, args or [])

    def _bound_again(
        self,
        ref: ast.ActionRef,
        use: ActionUse,
        directed: Sequence[str],
        given: Sequence[ast.Argument],
    ) -> None:
        """Check bound arguments that are repeated: they must equal those in the list of actions."""
        for at, argument in enumerate(given):
            if argument.name is not None:
                at = directed.index(argument.name)
            bound = use.bound[at] if at < len(use.bound) else None
            if bound is None:
                continue
            if argument.expr is not None and not written_alike(argument.expr, bound):
                self.c.error(
                    argument,
                    f"{describe(argument.expr)} is not what action {ref.name} was bound to",
                    f"the list of actions has {describe(bound)}",
                )

    def _default(self, decl: ast.TableDecl, uses: dict[str, ActionUse]) -> None:
        assert decl.default_action is not None
        if decl.actions and _before(decl.default_action, decl.actions[0]):
            self.c.error(decl.default_action, "default_action must follow actions")
        self._called(decl, decl.default_action, uses)
        for ref in decl.actions:
            for note in ref.annotations:
                barred = note.name in ("tableonly", "groupaction")
                if barred and ref.name == decl.default_action.name:
                    self.c.error(decl.default_action, f"action {ref.name} is @{note.name}")

    # -- entries -------------------------------------------------------------------------------

    def _plain(self, types: Sequence[Type], uses: dict[str, ActionUse]) -> PlainEntries[ActionUse]:
        data: dict[str, list[Type] | None] = {}
        for name, use in uses.items():
            params = self.c.calls.signature(use.decl).params
            bound = any(p.direction for p in params)
            data[name] = None if bound else [p.type for p in params]
        return PlainEntries(types, data, lambda name, args: ActionUse(uses[name].decl, [], args))

    def _entry(
        self,
        decl: ast.TableDecl,
        entry: ast.TableEntry,
        types: Sequence[Type],
        uses: dict[str, ActionUse],
    ) -> None:
        if decl.key:
            self.c.keysets.entry(entry.keyset, types, [k.match_kind for k in decl.key])
        self._called(decl, entry.action, uses)
        self.c.annotations(entry)
        if entry.priority is not None:
            self.c.exprs.check(entry.priority)
            value = self.c.constant_int(entry.priority, "a priority", checked=True)
            if value is not None and not 0 <= value <= MAX_PRIORITY:
                what = f"a priority is a number from 0 to {MAX_PRIORITY}, not {value}"
                self.c.error(entry.priority, what)

    def _never_matched(self, decl: ast.TableDecl, types: Sequence[Type]) -> None:
        """Warn of const entries that never match because of an earlier entry.

        If their order is their priority, an earlier entry that includes them; otherwise one of the
        same key.
        """
        if any(a.name == "priority" for e in decl.entries for a in e.annotations):
            return
        if not decl.const_entries:
            return  # the control plane may delete the earlier entry
        ordered = any(k.match_kind not in ("exact", "lpm") for k in decl.key)
        earlier, same = Earlier(), dict[tuple[Known, ...] | int, int]()
        at: int | None
        for i, entry in enumerate(decl.entries):
            if entry.plain and not ordered:
                at = same.setdefault(entry.keyset.const, i)
            else:
                sets = known_sets(entry.keyset, types)
                if ordered:
                    at = earlier.cover(sets)
                else:
                    at = None if sets is None else same.setdefault(single(sets), i)
            if at is not None and at != i:
                where = f"the entry at {decl.entries[at].span} matches all its values"
                self.c.warn(entry, "unreachable", "this entry is never matched", where)

    def _priorities(self, decl: ast.TableDecl) -> None:
        written = [e for e in decl.entries if e.priority is not None]
        if not written:
            return
        if decl.const_entries:
            self.c.error(
                written[0],
                "const entries have no priorities",
                "their order decides: the first wins",
            )
        elif decl.entries[0].priority is None:
            self.c.error(
                decl.entries[0], "the first entry needs a priority, since a later one has one"
            )

    # -- properties ----------------------------------------------------------------------------

    def _properties(self, decl: ast.TableDecl) -> None:
        for p in decl.properties:
            self.c.annotations(p)
            with self.c.inside("package"):
                self.c.exprs.check(p.value)
            if p.name == "size":
                self._size(p.value)
                size, entries = p.value.const, len(decl.entries)
                if isinstance(size, int) and 0 <= size < entries:
                    what = f"table {decl.name} has {entries} entries, and a size of {size}"
                    self.c.warn(p, "size", what)
            elif p.name == "priority_delta":
                delta = self.c.constant_int(p.value, "priority_delta", checked=True)
                if delta is not None and delta < 1:
                    self.c.error(p.value, f"priority_delta must be positive, not {delta}")
            elif p.name == "largest_priority_wins" and p.value.type not in (BOOL, ANY):
                self.c.error(p.value, f"largest_priority_wins is true or false, not {p.value.type}")
            elif isinstance(p.value.type, ExternType) and free_variables(p.value.type):
                hint = f"write {p.value.type.name}<...>(...)"
                self.c.error(p.value, f"the type arguments of {p.name} cannot be inferred", hint)
            elif p.value.type != ANY and not self.c.compile_time(p.value):
                self.c.error(p.value, f"property {p.name} must be known at compile time")

    def _size(self, e: ast.Expr) -> None:
        """Check a table's size: a number, which may depend on constructor parameters."""
        if isinstance(e.type, Bits | Integer) and self.c.compile_time(e) and e.const is None:
            return
        size = self.c.constant_int(e, "a table's size", checked=True)
        if size is not None and not 0 <= size <= MAX_SIZE:
            self.c.error(e, f"a table's size must be 0 to {MAX_SIZE}, not {size}")


def _split(
    given: Sequence[ast.Argument], directed: Sequence[str], bound: Sequence[ast.Expr], params: int
) -> tuple[list[ast.Argument], list[ast.Argument]]:
    """Split the arguments in default_action or an entry into bound ones and action data."""
    if any(a.name is not None for a in given):
        return (
            [a for a in given if a.name in directed],
            [a for a in given if a.name not in directed],
        )
    first = given[: len(directed)]
    alike = len(first) == len(bound) and all(
        a.expr is not None and written_alike(a.expr, b) for a, b in zip(first, bound, strict=True)
    )
    count = len(directed) if alike or len(given) == params else 0
    return list(given[:count]), list(given[count:])


def _before(a: ast.Node, b: ast.Node) -> bool:
    """Return whether a is before b in the same file."""
    one, other = a.span, b.span
    return one.file == other.file and (one.line, one.column) < (other.line, other.column)


# -- names of keys ----------------------------------------------------------------------------


Lines = dict[str, list[str]]  # of each source file, by its name

_LITERAL = re.compile(r"(?:\d+[ws])?(0[xXbBoOdD])?[0-9a-fA-F_]+")
_BASES = {"0x": hex, "0b": bin, "0o": oct}


def key_name(e: ast.Expr, lines: Lines) -> str | None:
    """Return the name of a key's expression; None if it is too complex and needs a @name."""
    match e:
        case ast.Name(name=name, dot=dot):
            return ("." if dot else "") + name
        case ast.IntLit():
            return _number(e, lines)
        case ast.Member(base=base, name=name):
            return _member(key_name(base, lines), _field_name(base, name))
        case ast.Call(callee=ast.Member(base=base, name="isValid"), args=[]):
            return _joined(key_name(base, lines), "{}.$valid$")
        case ast.Index(base=base, index=index):
            return _joined(key_name(base, lines), "{}[{}]", key_name(index, lines))
        case ast.Slice(base=base, hi=ast.Expr() as hi, lo=lo):
            bounds = key_name(hi, lines), key_name(lo, lines)
            return _joined(key_name(base, lines), "{}[{}:{}]", *bounds)
        case ast.Binary(op="&", left=left, right=right):
            return _joined(key_name(left, lines), "{} & {}", key_name(right, lines))
    return None


def _joined(first: str | None, form: str, *more: str | None) -> str | None:
    parts = (first, *more)
    return None if None in parts else form.format(*parts)


def _member(base: str | None, name: str) -> str | None:
    return name[1:] if name.startswith(".") else _joined(base, "{}.{}", name)


def _field_name(base: ast.Expr, name: str) -> str:
    """Return a field's name, from its @name if it has one."""
    at = base.type.index(name) if isinstance(base.type, Fields) else None
    if at is None or not isinstance(base.type, Fields):
        return name
    return given_name(base.type.fields[at].annotations) or name


def _number(e: ast.IntLit, lines: Lines) -> str:
    """Return a number in the base it was written in, without width and underscores."""
    source = lines.get(e.span.file, [])
    line = source[e.span.line - 1] if 0 < e.span.line <= len(source) else ""
    found = _LITERAL.fullmatch(line[e.span.column - 1 : e.span.end - 1])
    base = (found[1] or "").lower() if found else ""
    return _BASES.get(base, str)(e.value)
