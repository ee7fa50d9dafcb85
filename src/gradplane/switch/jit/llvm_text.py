"""LLVM assembly, written as text: a module, its functions, and structured control flow.

Operands are strings ("%t3", "7"), types are LLVM's ("i9", "ptr"). Text is several times faster to
make than objects, and LLVM's own parser checks it.

At the end are products and quotients of wide numbers that LLVM does not compute well.

Division of 128-bit numbers: LLVM calls functions of the compiler's runtime library, which need not
be loaded in this process; so the module defines them, under the names that LLVM expects. (LLVM
divides somewhat wider numbers in line, and narrower ones by an instruction.)

Very wide numbers: LLVM expands the operations in line, with code that grows with the square of the
width; here they are computed a bit at a time, with code that does not grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

Operand = str
Args = Sequence[tuple[str, Operand]]

# Wider vectors are slower to fill, and LLVM joins stores across the line where a header begins.
ATTRIBUTES = 'nounwind "prefer-vector-width"="256"'
WORDS = "@state"  # the pointers and numbers that the engine fills in when the code is loaded


class Module:
    """Functions, constants and the state words of one program."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}
        self._declared: dict[str, str] = {}
        self._constants: list[str] = []
        self._words: dict[str, int] = {}
        self._memory: dict[str, int] = {}
        self._zeros = 8
        self._regions: dict[str, int] = {}

    def function(
        self, name: str, result: str, params: Args, exported: bool = False, attributes: str = ""
    ) -> Function:
        """Begin a function; `params` are (type with attributes, name) pairs."""
        assert name not in self._functions, name
        made = Function(self, name, result, params, exported, attributes)
        self._functions[name] = made
        return made

    def has(self, name: str) -> bool:
        return name in self._functions

    def declare(self, name: str, result: str, types: Sequence[str]) -> str:
        """Declare a function defined elsewhere: an intrinsic or one of the C library."""
        self._declared[name] = f"declare {result} @{name}({', '.join(types)})"
        return name

    def constant(self, kind: str, values: Sequence[int]) -> Operand:
        """Add a constant array; return its address."""
        name = f"@c{len(self._constants)}"
        items = ", ".join(f"{kind} {v}" for v in values)
        array = f"[{len(values)} x {kind}]"
        kind = "private unnamed_addr constant"
        self._constants.append(f"{name} = {kind} {array} [{items}], align 16")
        return name

    def memory(self, name: str, size: int) -> Operand:
        """Return the address of memory of a name, zeros at first.

        It is known when the code is loaded, so it takes no register."""
        assert self._memory.setdefault(name, size) == size, name
        return f'@"{name}"'

    def zeros(self, size: int) -> Operand:
        """Return the address of at least `size` bytes of zeros."""
        self._zeros = max(self._zeros, size)
        return "@zeros"

    def word(self, name: str) -> int:
        """Return the position of a state word, allotted on first use."""
        return self._words.setdefault(name, len(self._words))

    @property
    def words(self) -> dict[str, int]:
        """Positions of the state words by name."""
        return self._words

    def region(self, name: str) -> str:
        """Return metadata for accesses to a part of memory that no other part's accesses touch."""
        return f", !tbaa !{self._regions.setdefault(name, 2 * len(self._regions) + 3)}"

    def text(self) -> str:
        """Return the module in LLVM's assembly language."""
        count = max(len(self._words), 1)
        parts = [
            f"{WORDS} = global [{count} x i64] zeroinitializer, align 64",
            f"@zeros = private constant [{self._zeros} x i8] zeroinitializer, align 64",
            *self._constants,
            *(
                f'@"{name}" = internal global [{size} x i8] zeroinitializer, align 64'
                for name, size in self._memory.items()
            ),
            *self._declared.values(),
            *(f.text() for f in self._functions.values()),
            "!0 = !{}",
            '!1 = !{!"gradplane"}',
            *self._region_nodes(),
        ]
        return "\n".join(parts) + "\n"

    def _region_nodes(self) -> Iterator[str]:
        """Return a type below the root for each region, and the tag of accesses to it."""
        for i, tag in enumerate(self._regions.values()):
            yield f'!{tag - 1} = !{{!"r{i}", !1, i64 0}}'
            yield f"!{tag} = !{{!{tag - 1}, !{tag - 1}, i64 0}}"


class Function:
    """A function being written. What follows a terminator goes to a block that nothing enters."""

    def __init__(
        self,
        module: Module,
        name: str,
        result: str,
        params: Args,
        exported: bool = False,
        attributes: str = "",
    ) -> None:
        self.module = module
        self.name = name
        self.result = result
        listed = ", ".join(f"{kind} {operand}" for kind, operand in params)
        linkage = "" if exported else "internal "
        self._head = f"define {linkage}{result} @{name}({listed}) {ATTRIBUTES} {attributes}{{"
        self._allocas: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._open = True

    def text(self) -> str:
        body = [self._head, "entry:", *self._allocas, "br label %body", "body:", *self._lines]
        if self._open:
            body.append("unreachable")
        return "\n".join([*body, "}"])

    # -- instructions ---------------------------------------------------------------------------

    def do(self, text: str) -> None:
        """Emit an instruction that has no result."""
        if not self._open:
            self.at(self.label())
        self._lines.append(text)

    def op(self, text: str) -> Operand:
        """Emit an instruction; return its result."""
        if not self._open:
            self.at(self.label())
        self._count += 1
        name = f"%t{self._count}"
        self._lines.append(f"{name} = {text}")
        return name

    def binary(self, op: str, kind: str, a: Operand | int, b: Operand | int) -> Operand:
        return self.op(f"{op} {kind} {a}, {b}")

    def compare(self, how: str, kind: str, a: Operand, b: Operand | int) -> Operand:
        return self.op(f"icmp {how} {kind} {a}, {b}")

    def select(self, cond: Operand, kind: str, a: Operand | int, b: Operand | int) -> Operand:
        return self.op(f"select i1 {cond}, {kind} {a}, {kind} {b}")

    def load(self, kind: str, address: Operand, align: int = 0, region: str = "") -> Operand:
        """Load a value; `region`: memory that no access with another region touches."""
        tag = self.module.region(region)
        return self.op(f"load {kind}, ptr {address}{_align(align)}{tag}")

    def fixed(self, kind: str, address: Operand, align: int = 0) -> Operand:
        """Load what does not change while native code runs: tables, for example."""
        return self.op(f"load {kind}, ptr {address}{_align(align)}, !invariant.load !0")

    def store(
        self, kind: str, value: Operand | int, address: Operand, align: int = 0, region: str = ""
    ) -> None:
        tag = self.module.region(region)
        self.do(f"store {kind} {value}, ptr {address}{_align(align)}{tag}")

    def add(self, address: Operand, offset: Operand | int) -> Operand:
        """Emit an addition of bytes to an address; return the sum."""
        if offset == 0:
            return address
        return self.op(f"getelementptr i8, ptr {address}, i64 {offset}")

    def item(self, address: Operand, kind: str, index: Operand | int) -> Operand:
        """Return the address of an array's element."""
        return self.op(f"getelementptr {kind}, ptr {address}, i64 {index}")

    def resize(self, value: Operand, width: int, to: int, signed: bool = False) -> Operand:
        """Return an integer converted to another width."""
        if width == to:
            return value
        how = "trunc" if to < width else "sext" if signed else "zext"
        return self.op(f"{how} i{width} {value} to i{to}")

    def call(self, result: str, name: str, *args: tuple[str, Operand | int]) -> Operand:
        text = f"call {result} @{name}({', '.join(f'{k} {v}' for k, v in args)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def intrinsic(self, name: str, result: str, *args: tuple[str, Operand | int]) -> Operand:
        """Declare a function and emit a call of it; return the result."""
        self.module.declare(name, result, [kind for kind, _ in args])
        return self.call(result, name, *args)

    def ret(self, value: Operand | int = "") -> None:
        self._end(f"ret {self.result} {value}" if self.result != "void" else "ret void")

    # -- memory ---------------------------------------------------------------------------------

    def alloca(self, size: int, align: int = 8) -> Operand:
        """Allot uninitialised bytes of the function's frame."""
        self._count += 1
        name = f"%t{self._count}"
        self._allocas.append(f"{name} = alloca [{max(size, 1)} x i8], align {align}")
        return name

    def variable(self, kind: str, value: Operand | int) -> Variable:
        """Allot a scalar that changes."""
        self._count += 1
        name = f"%t{self._count}"
        self._allocas.append(f"{name} = alloca {kind}")
        made = Variable(self, kind, name)
        made.set(value)
        return made

    def copy(self, target: Operand, source: Operand, size: Operand | int) -> None:
        """Copy bytes; source and target may be the same."""
        args = (("ptr", target), ("ptr", source), ("i64", size), ("i1", "false"))
        self.intrinsic("llvm.memmove.p0.p0.i64", "void", *args)

    def clear(self, target: Operand, size: Operand | int) -> None:
        args = (("ptr", target), ("i8", 0), ("i64", size), ("i1", "false"))
        self.intrinsic("llvm.memset.p0.i64", "void", *args)

    def word_address(self, name: str) -> Operand:
        """Return the address of a state word."""
        offset = self.module.word(name)
        return f"getelementptr inbounds (i64, ptr {WORDS}, i64 {offset})"

    def word(self, name: str, kind: str = "ptr", fixed: bool = True) -> Operand:
        """Return a state word; `fixed`: it does not change while native code runs."""
        suffix = ", !invariant.load !0" if fixed else ""
        return self.op(f"load {kind}, ptr {self.word_address(name)}, align 8{suffix}")

    # -- control flow ---------------------------------------------------------------------------

    def label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def at(self, label: str) -> None:
        """Continue in a block, which is entered from the code before it."""
        if self._open:
            self._lines.append(f"br label %{label}")
        self._lines.append(f"{label}:")
        self._open = True

    def go(self, label: str) -> None:
        self._end(f"br label %{label}")

    def branch(self, cond: Operand, then: str, other: str) -> None:
        self._end(f"br i1 {cond}, label %{then}, label %{other}")

    def choose(
        self, kind: str, subject: Operand, default: str, cases: Sequence[tuple[int, str]]
    ) -> None:
        """Emit LLVM's switch instruction."""
        if not cases:
            self.go(default)
            return
        rows = " ".join(f"{kind} {value}, label %{label}" for value, label in cases)
        self._end(f"switch {kind} {subject}, label %{default} [{rows}]")

    @contextmanager
    def when(self, cond: Operand) -> Iterator[None]:
        """Run what is written inside if `cond`."""
        then, end = self.label(), self.label()
        self.branch(cond, then, end)
        self.at(then)
        yield
        self.at(end)

    @contextmanager
    def unless(self, cond: Operand) -> Iterator[None]:
        """Run what is written inside if not `cond`."""
        other, end = self.label(), self.label()
        self.branch(cond, end, other)
        self.at(other)
        yield
        self.at(end)

    @contextmanager
    def loop(self) -> Iterator[str]:
        """Repeat what is written inside; give the label to leave by."""
        head, end = self.label(), self.label()
        self.at(head)
        yield end
        self.go(head)
        self.at(end)

    @contextmanager
    def count(self, limit: Operand | int, start: Operand | int = 0) -> Iterator[Operand]:
        """Repeat for i64 numbers from `start` to below `limit`."""
        number = self.variable("i64", start)
        with self.loop() as end:
            current, go_on = number.get(), self.label()
            self.branch(self.compare("ult", "i64", current, limit), go_on, end)
            self.at(go_on)
            yield current
            number.set(self.binary("add", "i64", current, 1))

    def _end(self, text: str) -> None:
        if self._open:
            self._lines.append(text)
            self._open = False


class Variable:
    """A scalar in memory, which LLVM turns into a register."""

    def __init__(self, function: Function, kind: str, address: Operand) -> None:
        self.kind = kind
        self.address = address
        self._function = function

    def get(self) -> Operand:
        return self._function.load(self.kind, self.address)

    def set(self, value: Operand | int) -> None:
        self._function.store(self.kind, value, self.address)

    def increase(self, amount: Operand | int = 1) -> None:
        self.set(self._function.binary("add", self.kind, self.get(), amount))


def _align(align: int) -> str:
    return f", align {align}" if align else ""


def bring_wide(module: Module, op: str, width: int) -> str:
    """Return the name of i<width> op(i<width>, i<width>), op: mul, udiv, urem, sdiv, srem; it is
    written on first use. The divisor is not 0; a signed quotient does not overflow."""
    kind, name = f"i{width}", f"wide.{op}.{width}"
    if module.has(name):
        return name
    f = module.function(name, kind, [(kind, "%a"), (kind, "%b")], attributes="noinline ")
    if op == "mul":
        f.ret(_product(f, kind, width))
    elif op[0] == "u":
        quotient, rest = _long_division(f, kind, width)
        f.ret(quotient if op == "udiv" else rest)
    else:
        unsigned = bring_wide(module, f"u{op[1:]}", width)
        a, b = (_absolute(f, kind, x) for x in ("%a", "%b"))
        result = f.call(kind, unsigned, (kind, a), (kind, b))
        sign = "%a" if op == "srem" else f.binary("xor", kind, "%a", "%b")
        f.ret(_negated_if(f, kind, f.compare("slt", kind, sign, 0), result))
    return name


def _product(f: Function, kind: str, width: int) -> Operand:
    total, factor, addend = (f.variable(kind, x) for x in ("0", "%a", "%b"))
    with f.count(width):
        taken = f.select(f.op(f"trunc {kind} {factor.get()} to i1"), kind, addend.get(), 0)
        total.set(f.binary("add", kind, total.get(), taken))
        factor.set(f.binary("lshr", kind, factor.get(), 1))
        addend.set(f.binary("shl", kind, addend.get(), 1))
    return total.get()


def _long_division(f: Function, kind: str, width: int) -> tuple[Operand, Operand]:
    quotient, rest, dividend = (f.variable(kind, x) for x in ("0", "0", "%a"))
    with f.count(width):
        carry = f.compare("slt", kind, rest.get(), 0)
        top = f.binary("lshr", kind, dividend.get(), width - 1)
        dividend.set(f.binary("shl", kind, dividend.get(), 1))
        new = f.binary("or", kind, f.binary("shl", kind, rest.get(), 1), top)
        fits = f.binary("or", "i1", carry, f.compare("uge", kind, new, "%b"))
        rest.set(f.select(fits, kind, f.binary("sub", kind, new, "%b"), new))
        shifted = f.binary("shl", kind, quotient.get(), 1)
        quotient.set(f.binary("or", kind, shifted, f.op(f"zext i1 {fits} to {kind}")))
    return quotient.get(), rest.get()


def _absolute(f: Function, kind: str, number: Operand) -> Operand:
    return _negated_if(f, kind, f.compare("slt", kind, number, 0), number)


def _negated_if(f: Function, kind: str, cond: Operand, number: Operand) -> Operand:
    return f.select(cond, kind, f.op(f"sub {kind} 0, {number}"), number)


# -- division of 128-bit numbers ----------------------------------------------------------------

_PARAMS = [("i128", "%a"), ("i128", "%b")]


def bring_division(module: Module) -> None:
    """Add the library's functions, once."""
    if module.has("divide128"):
        return
    _write_divide128(module)
    for name, rest in (("__udivti3", "false"), ("__umodti3", "true")):
        f = module.function(name, "i128", _PARAMS, exported=True)
        f.ret(_divide(f, "%a", "%b", rest))
    for name, rest in (("__divti3", "false"), ("__modti3", "true")):
        f = module.function(name, "i128", _PARAMS, exported=True)
        result = _divide(f, _absolute128(f, "%a"), _absolute128(f, "%b"), rest)
        sign = "%a" if rest == "true" else f.binary("xor", "i128", "%a", "%b")
        negative = f.compare("slt", "i128", sign, 0)
        f.ret(f.select(negative, "i128", f.op(f"sub i128 0, {result}"), result))


def _divide(f: Function, a: Operand, b: Operand, rest: Operand) -> Operand:
    return f.call("i128", "divide128", ("i128", a), ("i128", b), ("i1", rest))


def _absolute128(f: Function, number: Operand) -> Operand:
    return f.intrinsic("llvm.abs.i128", "i128", ("i128", number), ("i1", "false"))


def _write_divide128(module: Module) -> None:
    """Write i128 divide128(i128 a, i128 b, i1 rest): quotient or remainder."""
    params = [*_PARAMS, ("i1", "%rest")]
    f = module.function("divide128", "i128", params, attributes="noinline ")
    both = f.binary("or", "i128", "%a", "%b")
    with f.when(f.compare("ult", "i128", both, 1 << 64)):
        a, b = f.resize("%a", 128, 64), f.resize("%b", 128, 64)
        quotient, rest = f.binary("udiv", "i64", a, b), f.binary("urem", "i64", a, b)
        f.ret(f.resize(f.select("%rest", "i64", rest, quotient), 64, 128))
    quotient_, rest_ = f.variable("i128", 0), f.variable("i128", 0)
    dividend = f.variable("i128", "%a")
    with f.count(128):
        old = rest_.get()
        carry = f.compare("slt", "i128", old, 0)
        bit = f.binary("lshr", "i128", dividend.get(), 127)
        dividend.set(f.binary("shl", "i128", dividend.get(), 1))
        new = f.binary("or", "i128", f.binary("shl", "i128", old, 1), bit)
        fits = f.binary("or", "i1", carry, f.compare("uge", "i128", new, "%b"))
        rest_.set(f.select(fits, "i128", f.binary("sub", "i128", new, "%b"), new))
        shifted = f.binary("shl", "i128", quotient_.get(), 1)
        quotient_.set(f.binary("or", "i128", shifted, f.op(f"zext i1 {fits} to i128")))
    f.ret(f.select("%rest", "i128", rest_.get(), quotient_.get()))
