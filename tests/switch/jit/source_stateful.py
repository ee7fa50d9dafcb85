"""Random registers of TNA programs that have more than one result, an index of their own, a math
unit, or an action on all cells: text that declares them, and a call of each."""

from __future__ import annotations

import random
from collections.abc import Callable

from source_types import Types
from source_values import Scope, Values

from gradplane.switch.ir.types import Bits

NARROW, WIDE = Bits(16), Bits(128)

Make = Callable[["Stateful"], tuple[str, str]]


class Stateful:
    """Random registers over what is in scope. second: those of Tofino 2, too."""

    def __init__(self, rng: random.Random, types: Types, scope: Scope, second: bool) -> None:
        self.rng = rng
        self.name = types.name
        self.values = Values(rng, scope, types.literals)
        self.kinds: list[Make] = [Stateful.math_unit, Stateful.log]
        if second:
            self.kinds += [Stateful.several_results, Stateful.extremes, Stateful.all_cells]

    def some(self, count: int) -> tuple[str, str]:
        """Return the declarations of some registers, and a call of each."""
        made = [kind(self) for kind in self.rng.sample(self.kinds, min(count, len(self.kinds)))]
        return " ".join(text for text, _ in made), " ".join(call for _, call in made)

    def math_unit(self) -> tuple[str, str]:
        register, action, unit, p = (self.name(n) for n in ("r", "ra", "mu", "n"))
        operation = self.rng.choice(["MUL", "SQR", "SQRT", "DIV", "RSQR", "RSQRT"])
        text = f"""{NARROW} {p}; Register<{NARROW}, bit<2>>(3) {register};
            MathUnit<{NARROW}>(MathOp_t.{operation}, {self.rng.randrange(1, 9)}) {unit};
            RegisterAction<{NARROW}, bit<2>, {NARROW}>({register}) {action} = {{
                void apply(inout {NARROW} value, out {NARROW} rv) {{
                    value = {unit}.execute({p}); rv = value;
                }}
            }};"""
        value, index = self.values.value(NARROW, 1), self.values.value(Bits(2), 1)
        return text, f"{p} = {value}; m.small = {action}.execute({index})[2:0];"

    def log(self) -> tuple[str, str]:
        register, action, p = (self.name(n) for n in ("r", "ra", "n"))
        text = f"""{NARROW} {p}; Register<{NARROW}, bit<2>>(3) {register};
            RegisterAction<{NARROW}, bit<2>, {NARROW}>({register}) {action} = {{
                void apply(inout {NARROW} value, out {NARROW} rv) {{ rv = value; value = {p}; }}
            }};"""
        return text, (
            f"{p} = {self.values.value(NARROW, 1)}; m.small = {action}.execute_log()[2:0];"
        )

    def several_results(self) -> tuple[str, str]:
        """An action with up to four results; a direct one has a register without a table."""
        register, action, p = (self.name(n) for n in ("r", "ra", "n"))
        count = self.rng.randrange(2, 5)
        numbers = range(1, count + 1)
        outputs = [self.name("o") for _ in numbers[1:]]
        types = ", ".join([str(NARROW)] * count)
        given = [self.rng.choice(["value", p, "7", "this.address"]) for _ in numbers]
        given = [f"{g}<{NARROW}>()" if g == "this.address" else g for g in given]
        if self.rng.randrange(2):
            made = f"Register<{NARROW}, bit<3>>(6, 5) {register};"
            made += f" RegisterAction{count}<{NARROW}, bit<3>, {types}>({register})"
            index = f"{self.values.value(Bits(3), 1)}, "
        else:
            made = f"DirectRegister<{NARROW}>(5) {register};"
            made += f" DirectRegisterAction{count}<{NARROW}, {types}>({register})"
            index = ""
            given = ["value" if "address" in g else g for g in given]
        operation = self.rng.choice(["+", "-", "|+|", "|-|", "&", "^"])
        parameters = ", ".join(f"out {NARROW} rv{n}" for n in numbers)
        results = " ".join(f"rv{n} = {g};" for n, g in zip(numbers, given, strict=True))
        text = f"""{NARROW} {p}; {" ".join(f"{NARROW} {o};" for o in outputs)} {made} {action} = {{
                void apply(inout {NARROW} value, {parameters})
                {{ {results} if (value < {p}) {{ value = value {operation} {p}; }} }}
            }};"""
        call = f"{p} = {self.values.value(NARROW, 1)};"
        call += f" m.small = {action}.execute({index}{', '.join(outputs)})[2:0];"
        call += "".join(f" m.small = m.small ^ {o}[2:0];" for o in outputs)
        return text, call

    def extremes(self) -> tuple[str, str]:
        """The least or greatest of a cell's parts that a mask chooses, and its place."""
        register, action, mask, at = (self.name(n) for n in ("r", "ra", "n", "o"))
        bits = self.rng.choice([8, 16])
        helper = f"{self.rng.choice(['min', 'max'])}{bits}"
        part, parts = Bits(bits), Bits(128 // bits)
        index = Bits(4 if bits == 8 else 3)
        text = f"""{parts} {mask}; {part} {at};
            Register<{WIDE}, bit<2>>(3, {self.values.literal(WIDE)}) {register};
            MinMaxAction2<{WIDE}, bit<2>, {part}, {part}>({register}) {action} = {{
                void apply(inout {WIDE} value, out {part} rv1, out {part} rv2) {{
                    {index} place; rv1 = this.{helper}(value, {mask}, place); rv2 = ({part}) place;
                }}
            }};"""
        call = f"{mask} = {self.values.value(parts, 1)};"
        call += f" m.small = {action}.execute({self.values.value(Bits(2), 1)}, {at})[2:0];"
        return text, f"{call} m.small = m.small ^ {at}[2:0];"

    def all_cells(self) -> tuple[str, str]:
        """An access to one cell, or one that sets or changes all."""
        register, action, p = (self.name(n) for n in ("r", "ra", "n"))
        text = f"""{NARROW} {p}; Register<{NARROW}, bit<3>>(5, 3) {register};
            RegisterAction<{NARROW}, bit<3>, {NARROW}>({register}) {action} = {{
                void apply(inout {NARROW} value, out {NARROW} rv) {{
                    rv = value; value = value {self.rng.choice(["+", "-", "^"])} {p};
                }}
            }};"""
        whole = self.rng.choice([f"{action}.sweep()", f"{register}.clear({p})"])
        one = f"m.small = {action}.execute({self.values.value(Bits(3), 1)})[2:0]"
        choice = f"if ({p}[1:0] == 3) {{ {whole}; }} else {{ {one}; }}"
        return text, f"{p} = {self.values.value(NARROW, 1)}; {choice}"
