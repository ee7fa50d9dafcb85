"""Lower tables: keys, actions with bound arguments, entries and properties."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from gradplane._suggestions import did_you_mean
from gradplane.switch.check.checker_types import ExternType
from gradplane.switch.check.records import MAX_PRIORITY, MAX_SIZE, ActionUse, CallInfo
from gradplane.switch.ir import expression_builder
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import (
    Annotation,
    Annotations,
    Bits,
    Field,
    Fields,
    Struct,
    Tuple,
    Type,
    bit_width,
    given_name,
)
from gradplane.switch.ir.verify import MATCH_KINDS
from gradplane.switch.lower.calls import CallLowering
from gradplane.switch.lower.register_cells import packed, packed_type
from gradplane.switch.lower.shared_state import (
    DEFAULT_SIZE,
    ActionInstance,
    Env,
    Shared,
    control_plane_name,
)
from gradplane.switch.lower.type_erasure import erase, type_name
from gradplane.switch.syntax import ast

PROPERTIES = (
    "add_on_miss", "alpm", "counters", "default_action", "filters", "idle_timeout",
    "idle_timeout_with_auto_delete", "implementation",
    "largest_priority_wins", "meters", "pna_direct_counter", "pna_direct_meter",
    "pna_empty_group_action", "pna_idle_timeout", "pna_implementation", "priority_delta",
    "psa_direct_counter", "psa_direct_meter", "psa_empty_group_action", "psa_idle_timeout",
    "psa_implementation", "registers", "size", "support_timeout",
)  # fmt: skip
DIGEST_KEYS = "dleft_hash"
"""The match kind of keys that no entry has. A hash of them, the table's digest, goes to the learn
actions that the table's actions call:

    key = { h.ip.src : dleft_hash; h.ip.dst : dleft_hash; m.mode : exact; }

    ->   digest = $digest({h.ip.src, h.ip.dst})
         ... m.mode is looked up ...
"""

EXACT_ALIASES = {"atcam_partition_index": "exact"}
"""Match kinds of TNA, and their meaning."""

IMPLEMENTATION = ("implementation", "psa_implementation", "pna_implementation")
TABLE_ALGORITHM = "table_algorithm"
IDLE_TIMEOUT = {"psa_idle_timeout": "PSA_IdleTimeout_t", "pna_idle_timeout": "PNA_IdleTimeout_t"}
IDLE_EXTERN = "idle_timeout"  # the kind of an extern that turns the timeout on


class TableLowering:
    """Makes the IR of one table in the environment of its control instance."""

    def __init__(self, lowering: Shared, decl: ast.TableDecl, env: Env, body: CallLowering) -> None:
        self.p = lowering
        self.decl = decl
        self.env = env
        self.body = body
        self.annotations = decl.notes
        self.name = control_plane_name(env.path, decl.name, self.annotations)
        self.actions: list[ir.TableAction] = []
        self.codes: dict[str, int] = {}

    def make(self) -> ir.Table:
        with self.body.scope(self.env):
            setup: list[ir.Stmt] = []
            with self.body.into(setup):
                values = self.body.exprs(*(k.expr for k in self.decl.key))
                pairs = list(zip(self.decl.key, values, strict=True))
                if hashed := [v for k, v in pairs if self._is_hashed(k)]:
                    self._digest(hashed)
            keys = [self._key(k, v) for k, v in pairs if not self._is_hashed(k)]
            for ref in self.decl.actions:
                self._add_action(ref)
            default = self._default()
            empty_group = self._for_empty_group()
            entries = [self._entry(e) for e in self.decl.entries]
            self._fill_priorities(entries)
        table = ir.Table(
            name=self.name,
            keys=keys,
            key_setup=setup,
            actions=self.actions,
            default=default,
            const_default=self.decl.const_default,
            entries=entries,
            const_entries=self.decl.const_entries,
            size=self.p.table_size,
            empty_group=empty_group,
            annotations=self.annotations,
            span=self.decl.span,
        )
        with self.body.scope(self.env):
            for p in self.decl.properties:
                self._property(table, p)
        self.p.note_table(table, self.codes)
        return table

    # -- keys ----------------------------------------------------------------------------------

    def _key(self, key: ast.KeyElement, value: ir.Expr) -> ir.Key:
        assert key.expr.type is not None
        annotations = key.notes
        if key.match_kind not in MATCH_KINDS and key.match_kind not in EXACT_ALIASES:
            what = f"the architecture has no match kind {key.match_kind}"
            self.p.unsupported(key.span, what, f"known: {', '.join(sorted(MATCH_KINDS))}")
        kind = EXACT_ALIASES.get(key.match_kind, key.match_kind)
        return ir.Key(key.name, value, kind, annotations, type_name(key.expr.type))

    def _digest(self, keys: Sequence[ir.Expr]) -> None:
        """Emit the digest of keys, into the variable that learn actions read."""
        leaves = [expression_builder.cast(Bits(bit_width(e.type) or 1), e) for e in keys]
        fields = Struct("digest", tuple(Field(f"f{i}", e.type) for i, e in enumerate(leaves)))
        data, target = ir.Make(fields, leaves), self.body.table_digest()
        call = ir.CallExtern(None, ir.TABLE_DIGEST, [data], ["in"], target)
        self.body.emit(call, self.decl.span)

    def _is_hashed(self, key: ast.KeyElement) -> bool:
        """Return whether a key goes into the table's digest only."""
        known = self.p.natives is not None and ("", ir.TABLE_DIGEST) in self.p.natives
        return known and key.match_kind == DIGEST_KEYS

    def _is_looked_up(self, key: ast.KeyElement) -> bool:
        """Return whether entries have a value for a key."""
        return key.match_kind != "selector" and not self._is_hashed(key)

    # -- actions -------------------------------------------------------------------------------

    def _found(self, ref: ast.ActionRef) -> ActionInstance:
        use: ActionUse = ref.info
        found = self.env.find(use.decl)
        assert isinstance(found, ActionInstance), ref.name
        return found

    def _add_action(self, ref: ast.ActionRef) -> int:
        action = self._action(self._found(ref), ref.info)
        self.actions.append(ir.TableAction(action, ref.notes))
        self.codes[ref.name] = len(self.actions) - 1
        return self.codes[ref.name]

    def _action(self, instance: ActionInstance, use: ActionUse) -> ir.Action:
        """Return the action's IR: this table's if it binds arguments, else shared by all tables."""
        if instance.made is not None and not use.bound:
            return instance.made
        data: list[ir.Var] = []
        body = self.body.action_body(instance, use.bound, data)
        annotations = instance.decl.notes
        action = ir.Action(instance.name, data, body, annotations, instance.decl.span)
        if not use.bound:
            instance.made = action
        self.p.note_action(action, instance)
        return action

    def _call(self, ref: ast.ActionRef) -> ir.ActionCall:
        index = self.codes.get(ref.name)
        if index is None:
            index = self._add_action(ref)
        use: ActionUse = ref.info
        return ir.ActionCall(index, [self._number(a) for a in use.data])

    def _number(self, e: ast.Expr) -> int | bool:
        value = self.body.expr(e)
        if packed_type(value.type) != value.type:
            value = packed(value)
        if not isinstance(value, ir.Const) or isinstance(value.value, str):
            self.p.reporter.error(
                e.span, "this must be a number, bool or enum member known at compile time"
            )
            return 0
        return value.value

    def _default(self) -> ir.ActionCall:
        if self.decl.default_action is not None:
            return self._call(self.decl.default_action)
        if "NoAction" in self.codes:
            return ir.ActionCall(self.codes["NoAction"], [])
        instance = self.p.no_action()
        ref = ast.ActionRef("NoAction", None, span=self.decl.span)
        ref.info = ActionUse(instance.decl, [], [])
        self.actions.append(
            ir.TableAction(self._action(instance, ref.info), (Annotation("defaultonly"),))
        )
        self.codes["NoAction"] = len(self.actions) - 1
        return ir.ActionCall(self.codes["NoAction"], [])

    def _for_empty_group(self) -> ir.ActionCall | None:
        """Return the action of an empty group; None: the default action.

        It is the source's or, in PSA and PNA, NoAction if the table lists it.
        """
        if self.decl.empty_group_action is not None:
            return self._call(self.decl.empty_group_action)
        portable = any(p.name != "implementation" for p in self._implementation())
        code = self.codes.get("NoAction") if portable else None
        return None if code is None else ir.ActionCall(code, [])

    def _implementation(self) -> Iterator[ast.TableProperty]:
        """Yield the properties that name an action profile."""
        return (p for p in self.decl.properties if p.name in IMPLEMENTATION)

    # -- entries -------------------------------------------------------------------------------

    def _entry(self, entry: ast.TableEntry) -> ir.Entry:
        keyset, keys = entry.keyset, self.decl.key
        parts = keyset.elements if isinstance(keyset, ast.TupleKey) else [keyset]
        if isinstance(keyset, ast.DefaultKey):
            parts = [keyset] * len(keys)
        elif isinstance(keyset, ast.ListExpr) and len(keys) != 1:
            parts = keyset.elements
        priority = entry.priority.const if entry.priority is not None else None
        matched = [p for k, p in zip(keys, parts, strict=True) if self._is_looked_up(k)]
        if not matched:
            kinds = ", ".join(sorted({key.match_kind for key in keys}))
            what = f"table {self.name} has entries, and no key but of match kind {kinds}"
            self.p.reporter.error(entry.span, what, "entries need a key that is looked up")
        return ir.Entry(
            [match_of(self.body, p) for p in matched],
            self._call(entry.action),
            priority,
            self.decl.const_entries or entry.const,
            entry.notes,
            entry.span,
        )

    def _fill_priorities(self, entries: list[ir.Entry]) -> None:
        """Compute missing priorities, if some are given or a step is (14.2.1.4)."""
        if any(a.name == "priority" for e in entries for a in e.annotations):
            self._annotated_priorities(entries)
        values = {p.name: p.value.const for p in self.decl.properties}
        step = values.get("priority_delta", 1)
        largest = values.get("largest_priority_wins", True)
        if all(e.priority is None for e in entries):
            if "priority_delta" not in values or self.decl.const_entries:
                return
            entries[0].priority = 1 + (len(entries) - 1) * step if largest else 1
        for before, entry in itertools.pairwise(entries):
            if entry.priority is None and before.priority is not None:
                entry.priority = before.priority + (-step if largest else step)
                if not 0 <= entry.priority <= MAX_PRIORITY:
                    what = f"the priority of this entry is computed as {entry.priority}"
                    self.p.reporter.error(entry.span, what, f"it must be 0 to {MAX_PRIORITY}")
                    return
        if any(e.priority is not None for e in self.decl.entries):
            self._warn_priorities(entries, largest)

    def _warn_priorities(self, entries: list[ir.Entry], largest: bool) -> None:
        silent = self.decl.entries_silent
        seen: dict[int, ir.Entry] = {}
        for entry in entries:
            if entry.priority in seen and "duplicate_priorities" not in silent:
                what = f"a second entry has priority {entry.priority}: the winner is undefined"
                where = f"the other is at {seen[entry.priority].span}"
                self.p.reporter.warning(entry.span, what, where, "duplicate_priorities")
            if entry.priority is not None:
                seen.setdefault(entry.priority, entry)
        for one, two in itertools.pairwise(entries):
            a, b = one.priority or 0, two.priority or 0
            if (a < b if largest else a > b) and "entries_out_of_priority_order" not in silent:
                what = f"this entry has priority {b} and follows one of priority {a}"
                kind = "entries_out_of_priority_order"
                self.p.reporter.warning(two.span, what, "this one wins", kind)

    @staticmethod
    def _annotated_priorities(entries: list[ir.Entry]) -> None:
        """Apply BMv2's @priority: the smallest wins, and an entry without one has its position."""
        numbers = [
            next((a.values[0] for a in e.annotations if a.name == "priority" and a.values), i)
            for i, e in enumerate(entries, 1)
        ]
        known = [n for n in numbers if isinstance(n, int)]
        for entry, number in zip(entries, numbers, strict=True):
            if isinstance(number, int):
                entry.priority = max(known) + 1 - number

    # -- properties ----------------------------------------------------------------------------

    def _property(self, table: ir.Table, p: ast.TableProperty) -> None:
        match p.name:
            case "size":
                size = self._number(p.value)
                if not 0 <= size <= MAX_SIZE:
                    what = f"a table's size must be 0 to {MAX_SIZE}, not {size}"
                    self.p.reporter.error(p.value.span, what)
                else:
                    table.size = int(size) or DEFAULT_SIZE
            case "largest_priority_wins":
                table.largest_priority_wins = p.value.const
            case "support_timeout" | "idle_timeout" | "psa_idle_timeout" | "pna_idle_timeout":
                table.support_timeout = self._flag(p)
                if getattr(p.value.const, "name", "") == "AUTO_DELETE":
                    table.auto_delete = True
            case "idle_timeout_with_auto_delete":
                table.support_timeout = table.auto_delete = self._flag(p)
            case "add_on_miss":
                table.add_on_miss = self._flag(p)
            case name if name in IMPLEMENTATION:
                made = self._extern(p)
                if made is not None and made.kind == TABLE_ALGORITHM:
                    table.algorithm = made
                else:
                    kinds = ("action_profile", "action_selector")
                    table.implementation = self._instance(p, *kinds, made=made)
            case "alpm" if (made := self._extern(p)) and made.kind == TABLE_ALGORITHM:
                table.algorithm = made
            case "counters" | "psa_direct_counter" | "pna_direct_counter":
                table.counter = self._direct(p, "direct_counter")
            case "meters" | "psa_direct_meter" | "pna_direct_meter":
                table.meter = self._direct(p, "direct_meter")
            case "registers":
                table.register = self._direct(p, "direct_register")
            case "filters":
                made = self._extern(p)
                if made is None or made.kind not in ("lpf", "wred"):  # an array is nothing direct
                    table.filter = self._direct(p, "direct_lpf", "direct_wred", made=made)
            case name if name not in PROPERTIES and self.p.natives is not None:
                near = did_you_mean(name, PROPERTIES)
                what = f"the architecture's tables have no property {name}: it is ignored"
                self.p.reporter.warning(p.span, what, near, "unknown")

    def _flag(self, p: ast.TableProperty) -> bool:
        """Return the value of true or false, or of a member of the architecture's enum; an extern
        made for it stands for true."""
        made = self._extern(p)
        if made is not None and made.kind == IDLE_EXTERN:
            return True
        value, enum = p.value.const, IDLE_TIMEOUT.get(p.name)
        if str(p.value.type) != (enum or "bool"):
            known = f"a member of {enum}" if enum else "true or false"
            self.p.unsupported(p.value.span, f"property {p.name} must be {known}")
        return bool(getattr(value, "name", value) != "NO_TIMEOUT" and value)

    def _direct(
        self, p: ast.TableProperty, *kinds: str, made: ir.ExternInstance | None = None
    ) -> ir.ExternInstance | None:
        """Return a direct resource of one of the kinds, which cannot belong to a second table;
        `made`: it is known."""
        found = self._instance(p, *kinds, made=made)
        if found is None:
            return None
        owner = self.p.direct_of.setdefault(found, self.name)
        if owner != self.name:
            self.p.reporter.error(p.span, f"{p.name}: this {found.kind} belongs to table {owner}")
        return found

    def _instance(
        self, p: ast.TableProperty, *types: str, made: ir.ExternInstance | None = None
    ) -> ir.ExternInstance | None:
        """Return the extern instance of one of the types that a property names or makes; `made`: it
        is known."""
        found = made or self._extern(p)
        if found is not None and found.kind in types:
            return found
        self.p.unsupported(p.span, f"property {p.name} must be {' or '.join(types)}")
        return None

    def _extern(self, p: ast.TableProperty) -> ir.ExternInstance | None:
        if isinstance(p.value, ast.Call) and isinstance(p.value.type, ExternType):
            info: CallInfo = p.value.info
            annotations = p.notes
            name = self._name_of_made(p.name, given_name(annotations))
            return self.p.extern_instance(info, name, annotations, self.env, p.span)
        found = self.body.object_of(p.value) if isinstance(p.value, ast.Expr) else None
        return found if isinstance(found, ir.ExternInstance) else None

    def _name_of_made(self, owner: str, given: str | None) -> str:
        """Return the name of an extern that a property makes: that of its @name, as in p4c without
        the control's, unless another extern has it."""
        if not given:
            return f"{self.name}.{owner}"
        alone = control_plane_name("", given, ())
        taken = self.p.is_taken("extern", alone)
        return control_plane_name(self.env.path, given, ()) if taken else alone


def match_of(body: CallLowering, e: ast.Expr) -> ir.Match:
    """Lower one component of a keyset."""
    match e:
        case ast.DefaultKey():
            return ir.MatchAny()
        case ast.Range(low=low, high=high):
            return ir.MatchRange(*body.exprs(low, high))
        case ast.Mask(value=value, mask=mask):
            return ir.MatchMask(*body.exprs(value, mask))
    return ir.MatchValue(body.expr(e))


def value_set(p: Shared, decl: ast.ValueSetDecl, env: Env) -> ir.ValueSet:
    """Lower a parser value set; a struct's fields are its match fields (@match, else exact)."""
    t = decl.ref.type
    assert t is not None
    annotations = decl.notes
    name = control_plane_name(env.path, decl.name, annotations)
    fields = _value_set_fields("", t, ())
    size = decl.size.const if isinstance(decl.size.const, int) else 0
    return ir.ValueSet(name, fields, size, annotations, decl.span)


def _value_set_fields(name: str, t: Type, annotations: Annotations) -> list[ir.Key]:
    """Return the match fields of a value set's type; those of a nested struct have dotted names."""
    prefix = f"{name}." if name else ""
    match t:
        case Fields(fields=fields):
            inner = [(f.name, f.type, f.annotations) for f in fields]
        case Tuple(elements=elements):
            inner = [(f"f{i}", e, ()) for i, e in enumerate(elements)]
        case _:
            kind = _match_kind(annotations)
            return [ir.Key(name, ir.Zero(erase(t)), kind, annotations, type_name(t))]
    return [key for n, p, notes in inner for key in _value_set_fields(prefix + n, p, notes)]


def _match_kind(annotations: Annotations) -> str:
    for a in annotations:
        if a.name == "match" and a.body:
            return a.body.strip()
    return "exact"
