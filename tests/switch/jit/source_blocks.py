"""Random functions, actions, tables, controls and parser states as P4 text."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from source_statements import Maker, Statements
from source_types import COLOUR, ERROR, HEADERS, ITEM, KIND, META, Types
from source_values import Place, Scope, Source, Values, random_bits

from gradplane.switch.ir.types import BOOL, Bits, Type

PICK = "T pick<T>(in bool c, in T a, inout T b) { if (c) { b = a; } return c ? b : a; }"


@dataclass
class Instances:
    """An architecture's declarations in a control: text, statements and expressions that use it.

    `table`: of a table, text before it, its properties and actions of its own, all three made
    anew.
    """

    text: str = ""
    more: list[Maker] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    table: Callable[[], tuple[str, str, str]] = lambda: ("", "", "")


# -- functions ----------------------------------------------------------------------------------


def functions(rng: random.Random, types: Types) -> tuple[str, list[Source]]:
    """Return some functions, each of which may call those before it; their text and the calls."""
    texts, sources = [PICK], [_pick(random_bits(rng)) for _ in range(2)]
    for _ in range(3):
        text, source = _function(rng, types, sources)
        texts.append(text)
        sources.append(source)
    return "\n".join(texts), sources


def _pick(t: Bits) -> Source:
    def make(values: Values, depth: int) -> str | None:
        given = f"pick<{t}>({values.value(BOOL, depth - 1)}, {values.value(t, depth - 1)}"
        target = values.target(t)
        return target and f"{given}, {target})"

    return t, make


def _function(rng: random.Random, types: Types, earlier: list[Source]) -> tuple[str, Source]:
    made, result = types.name("f"), random_bits(rng)
    params = [_param(rng, types) for _ in range(rng.randrange(1, 4))]
    places = [
        p for d, t, n in params for p in types.places(n, t, d != "in")
    ] + [Place("local", Bits(16))]  # fmt: skip
    scope = Scope(places, list(earlier))
    returned = Values(rng, scope, types.literals)
    statements = Statements(rng, types, scope, ways_out=(f"return {returned.value(result, 1)};",))
    body = statements.block(3, 2)
    declared = ", ".join(f"{d} {t} {n}" for d, t, n in params)
    text = f"{result} {made}({declared}) {{ bit<16> local = 7; {body}"
    text += f" return {returned.value(result, 2)}; }}"
    return text, (result, lambda values, depth: _call(made, params, values, depth))


def _param(rng: random.Random, types: Types) -> tuple[str, Type, str]:
    t = rng.choice([random_bits(rng), Bits(8), Bits(16, True), BOOL, ITEM, types.pair])
    return rng.choice(["in", "inout", "out"]), t, types.name("p")


def _call(made: str, params: list[tuple[str, Type, str]], values: Values, depth: int) -> str | None:
    args = [values.value(t, depth - 1) if d == "in" else values.target(t) for d, t, _ in params]
    return None if None in args else f"{made}({', '.join(str(a) for a in args)})"


# -- actions and tables -------------------------------------------------------------------------


@dataclass(frozen=True)
class Action:
    """`bound`: parameters with a direction, which a table's list of actions gives."""

    name: str
    bound: list[tuple[str, Type, str]]
    data: list[Type]

    def call(self, writer: Statements) -> str | None:
        params = [*self.bound, *(("in", t, "") for t in self.data)]
        call = _call(self.name, params, writer.values, 2)
        return call and f"{call};"

    def listed(self, values: Values) -> str | None:
        return _call(self.name, self.bound, values, 2) if self.bound else self.name

    def default(self, values: Values, listed: str) -> str:
        """Return the action with constants for its data; the bound arguments are those of the
        list."""
        given = listed[listed.index("(") + 1 : -1] if self.bound else ""
        data = [values.literal(t) if isinstance(t, Bits) else "true" for t in self.data]
        return f"{self.name}({', '.join([*([given] if given else []), *data])})"


class Control:
    """A control's declarations and body, on parameters in scope."""

    def __init__(
        self,
        rng: random.Random,
        types: Types,
        scope: Scope,
        instances: Instances,
        stacks: tuple[str, ...] = ("h.items",),
    ) -> None:
        self.rng, self.types, self.scope, self.instances = rng, types, scope, instances
        self.stacks = stacks
        self.more = list(instances.more)
        scope.sources += instances.sources
        self.text = [instances.text]
        self._variables()
        self.actions: list[Action] = []
        for _ in range(3):
            self._action()
        self.more += [action.call for action in self.actions]
        for _ in range(rng.randrange(1, 4)):
            self._table()

    def body(self, count: int, ways: list[Maker] | None = None) -> str:
        """Return the declarations, and `count` statements to apply, then some of `ways`, which say
        where the packet goes, for some packets each. `$` is left for a start."""
        writer = self._writer(self.more)
        body = writer.block(count)
        for way in self.rng.choices(ways, k=4) if ways else ():
            choices = ["h.f.rest[0:0] == 1", "h.items[0].a < 4", writer.values.value(BOOL, 3)]
            body += f" if ({self.rng.choice(choices)}) {{ {way(writer)} }}"
        return f"{' '.join(self.text)} apply {{ $ {body} }}"

    def _writer(self, more: list[Maker]) -> Statements:
        ways = ("exit;", "return;")
        return Statements(self.rng, self.types, self.scope, more, self.stacks, ways)

    def _variables(self) -> None:
        values = Values(self.rng, Scope(), self.types.literals)
        for t in (random_bits(self.rng), Bits(8), ITEM, self.types.pair):
            made = self.types.name("l")
            self.text.append(f"{t} {made} = {values.value(t, 1)};")
            self.scope.places += self.types.places(made, t)

    def _action(self) -> None:
        made = self.types.name("a")
        bound = [_param(self.rng, self.types) for _ in range(self.rng.randrange(2))]
        data = [
            self.rng.choice([random_bits(self.rng), BOOL]) for _ in range(self.rng.randrange(3))
        ]
        named = [(t, self.types.name("d")) for t in data]
        kept = list(self.scope.places)
        self.scope.places += [p for d, t, n in bound for p in self.types.places(n, t, d != "in")]
        self.scope.places += [Place(n, t, False) for t, n in named]
        body = self._writer(self.instances.more).block(3, 2)
        self.scope.places[:] = kept
        params = [f"{d} {t} {n}" for d, t, n in bound] + [f"{t} {n}" for t, n in named]
        self.text.append(f"action {made}({', '.join(params)}) {body}")
        self.actions.append(Action(made, bound, data))

    # -- tables ---------------------------------------------------------------------------------

    def _table(self) -> None:
        made = self.types.name("t")
        values = Values(self.rng, self.scope, self.types.literals)
        before, properties, own = self.instances.table()
        offered = self.rng.sample(self.actions, self.rng.randrange(1, 4))
        listed = {a: text for a in map(self.actions.index, offered)
                  if (text := self.actions[a].listed(values))}  # fmt: skip
        if not listed:
            return
        keys, kinds = self._keys(values, "elector" in before + properties)
        choices = "; ".join(listed.values()) + "; " + own + " NoAction;"
        default = self.rng.choice(list(listed))
        text = f"table {made} {{ key = {{ {keys} }} actions = {{ {choices} }} {properties}"
        if "implementation" not in properties:
            text += f" default_action = {self.actions[default].default(values, listed[default])};"
            text += self._entries(kinds, listed, values)
        self.text.append(f"{before} {text} size = 64; }}")
        labels = [self.actions[a].name for a in listed]
        left = [1] if "registers =" in properties else None  # a packet accesses a register once
        self.more.append(lambda writer: self._apply(writer, made, labels, left))

    def _keys(self, values: Values, selected: bool) -> tuple[str, list[tuple[Type, str]]]:
        """Return the keys' text, and type and match kind of each."""
        text = ""
        kinds: list[tuple[Type, str]] = []
        if not self.rng.randrange(3):
            others: list[Type] = [BOOL, COLOUR, KIND, ERROR]
            t = self.rng.choice(others)
            text = f'{values.value(t, 1)} : exact @name("other"); '
            kinds.append((t, "exact"))
        choices = ["exact", "exact", "ternary", "range", "optional", "lpm"]
        for i in range(self.rng.randrange(1, 4)):
            t = random_bits(self.rng)
            kind = self.rng.choice(choices)
            if kind == "lpm":
                choices.remove("lpm")
            text += f'{values.value(t, 1)} : {kind} @name("k{i}"); '
            kinds.append((t, kind))
        if selected and self.rng.randrange(2):
            text += f'{values.value(Bits(16), 1)} : selector @name("chosen");'
        return text, kinds

    def _entries(
        self, kinds: list[tuple[Type, str]], listed: dict[int, str], values: Values
    ) -> str:
        if self.rng.randrange(3) or any(isinstance(t, Bits) and t.signed for t, _ in kinds):
            return ""
        rows: dict[str, str] = {}
        for _ in range(self.rng.randrange(1, 5)):
            sets = [self._set(t, kind) for t, kind in kinds]
            chosen = self.rng.choice(list(listed))
            key = sets[0] if len(sets) == 1 else f"({', '.join(sets)})"
            rows[key] = self.actions[chosen].default(values, listed[chosen])
        const = self.rng.choice(["const ", ""])
        return f" {const}entries = {{ {' '.join(f'{k} : {a};' for k, a in rows.items())} }}"

    def _set(self, t: Type, kind: str) -> str:
        """Return a keyset; its numbers are small, so that some packets match."""
        if not isinstance(t, Bits):
            return self.types.constant(t)
        top = (1 << t.width) - 1
        low = self.rng.randrange(4) & top
        if kind != "exact" and not self.rng.randrange(4):
            return "_"
        if kind == "lpm":
            length = self.rng.randrange(t.width + 1)
            mask = top ^ (top >> length)
            return f"{low & mask} &&& {mask}"
        if kind == "ternary":
            mask = self.rng.choice([0, 1, 3, top, top ^ 1]) & top
            return f"{low & mask} &&& {mask}"
        if kind == "range":
            return f"{low} .. {min(top, low + self.rng.randrange(9))}"
        return str(low)

    def _apply(
        self, writer: Statements, made: str, labels: list[str], left: list[int] | None
    ) -> str | None:
        """Return an application of a table; None once `left`, if given, is used up."""
        if left is not None and not left:
            return None
        if left:
            left.pop()
        kind = self.rng.randrange(4)
        if kind == 0:
            return f"if ({made}.apply().{self.rng.choice(['hit', 'miss'])}) {writer.block(1, 0)}"
        if kind == 1:
            cases = " ".join(f"{label}: {writer.block(1, 0)}" for label in labels)
            return f"switch ({made}.apply().action_run) {{ {cases} default: {writer.block(1, 0)} }}"
        if kind == 2:
            target = writer.values.target(BOOL)
            return f"{target} = HIT({made});" if target else f"{made}.apply();"
        return f"{made}.apply();"


def sub_control(rng: random.Random, types: Types, sources: list[Source]) -> tuple[str, str]:
    """Return a control for others to apply, of a parameter and a number given when made; its text
    and its name."""
    made = types.name("Sub")
    scope = Scope([*types.places("h", HEADERS), *types.places("m", META), *types.places("y", ITEM),
                   Place("x", Bits(16), False), Place("k", Bits(8), False)],
                  list(sources), list(types.valid("h", HEADERS)))  # fmt: skip
    body = Control(rng, types, scope, Instances()).body(3).replace("$", "")
    params = "inout headers_t h, inout meta_t m, in bit<16> x, inout item_t y"
    return f"control {made}({params})(bit<8> k) {{ {body} }}", made


def applied(instance: str) -> Maker:
    """Return a sub-control's application."""

    def make(writer: Statements) -> str:
        given = f"h, m, {writer.values.value(Bits(16), 2)}, {writer.values.target(ITEM)}"
        return f"{instance}.apply({given});"

    return make


class Program:
    """What the programs of all architectures are made of: types, functions, a control that others
    apply, and controls with an architecture's instances."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.types = rng, Types(rng)
        declared, self.sources = functions(rng, self.types)
        sub, self._sub = sub_control(rng, self.types, self.sources)
        self.declared = f"{declared}\n{sub}"

    def scope(self, writable: bool = True) -> Scope:
        """Return the headers and metadata, the latter perhaps read-only."""
        places = [*self.types.places("h", HEADERS), *self.types.places("m", META, writable)]
        return Scope(places, list(self.sources), list(self.types.valid("h", HEADERS)))

    def controlled(
        self, scope: Scope, instances: Instances, ways: list[Maker], more: str = ""
    ) -> str:
        """Return a control's declarations, `more` of them, and its body, with $ where it begins."""
        first, second = self.types.name("sub"), self.types.name("sub")
        instances.text += f" {self._sub}(8w3) {first}; {self._sub}(8w200) {second};{more}"
        body = Control(self.rng, self.types, scope, instances)
        body.more += [applied(first), applied(second)]
        return body.body(8, ways)


def few(w: Statements) -> str:
    """Return a small number."""
    return w.values.value(Bits(3), 2)


# -- parsers ------------------------------------------------------------------------------------

SUB_PARSER = """
parser SubParser(packet_in p, out item_t plain, inout bit<32> i)(bit<8> limit) {
    state start {
        p.extract(plain);
        i = i + (bit<32>) plain.a;
        transition select(plain.a <= limit) { true : accept; false : more; }
    }
    state more { i = i ^ (bit<32>) p.lookahead<bit<5>>(); p.advance(3); transition accept; }
}
"""


def states(rng: random.Random, types: Types, scope: Scope, first: str = "") -> str:
    """Return a parser's locals and states. Each state extracts one of the headers and goes on to a
    later state or, along a stack, to itself."""
    writer = Statements(rng, types, scope, plain=True)
    count = rng.randrange(2, 6)
    text = f"SubParser(8w{rng.randrange(256)}) sub; value_set<bit<8>>(4) known; "
    text += f"state start {{ {first} p.extract(h.f); transition s0; }} "
    for i in range(count):
        operation, again = _operation(rng, writer)
        later = [f"s{k}" for k in range(i + 1, count)] + ["accept", "accept", "reject"]
        later += [f"s{i}"] * 2 * again
        with writer.inside():
            more = " ".join(writer.statement(1) for _ in range(2))
            text += f"state s{i} {{ {operation} {more} {_transition(rng, writer, later)} }} "
    return text


def _operation(rng: random.Random, writer: Statements) -> tuple[str, bool]:
    """Return a statement that only parsers have, and whether its state may recur."""
    value = writer.values.value
    few = f"(bit<32>) ({value(Bits(4), 2)} ++ 3w0)"
    operations = [
        ("p.extract(h.items.next); m.small = h.items.last.a[2:0];", True),
        ("p.extract(h.items.next); m.i = h.items.lastIndex;", True),
        ("p.extract(h.u.right);", False),
        ("p.extract(h.u.left);", False),
        ("p.extract(h.plain);", False),
        (f"p.extract(h.o, {few});", False),
        ("m.inner.item = p.lookahead<item_t>();", False),
        ("m.small = p.lookahead<bit<3>>();", False),
        (f"p.advance({few}); m.i = p.length();", False),
        (f"verify({value(BOOL, 2)}, error.Strange);", False),
        (f"sub.apply(p, {writer.values.target(ITEM)}, m.i);", False),
    ]
    return rng.choice(operations)


def _transition(rng: random.Random, writer: Statements, later: list[str]) -> str:
    if not rng.randrange(4):
        return f"transition {rng.choice([s for s in later if s != later[-1]] or ['accept'])};"
    if not rng.randrange(4):
        cases = f"known : {rng.choice(later)}; default : {rng.choice(later)};"
        return f"transition select({writer.values.value(Bits(8), 1)}) {{ {cases} }}"
    t = Bits(rng.choice([2, 8, 33]))
    others: list[Type] = [BOOL, COLOUR, KIND, ERROR]
    other = rng.choice(others)

    def case(first: str) -> str:
        second = rng.choice([writer.types.constant(other), "_"])
        return f"({first}, {second}) : {rng.choice(later)};"

    low = rng.randrange(4)
    text = case(f"{low} .. {min(low + 2, (1 << t.width) - 1)}") + case(f"{low} &&& 1")
    text += case("_") if rng.randrange(2) else ""
    text += f" default : {rng.choice(later)};" if rng.randrange(3) else ""
    keys = f"{writer.values.value(t, 1)}, {writer.values.value(other, 1)}"
    return f"transition select({keys}) {{ {text} }}"


# -- deparsers ----------------------------------------------------------------------------------


def emits(rng: random.Random) -> str:
    """Return calls that emit all headers, or some of them, in any order."""
    if rng.randrange(2):
        return "p.emit(h);"
    parts = ["h.f", "h.items", "h.u", "h.plain", "h.o"]
    rng.shuffle(parts)
    return " ".join(f"p.emit({part});" for part in parts[: rng.randrange(2, 6)])
