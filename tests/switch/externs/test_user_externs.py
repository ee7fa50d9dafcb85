"""User-defined externs, declared by a program and implemented in Python, in both engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from user_extern_switches import refused, switches
from v1programs import packet

from gradplane.switch.runtime.control_messages import Fault


def test_every_call_is_made() -> None:
    """Results are not kept for the next call, nor are calls left out whose results nobody reads."""
    made: list[int] = []
    declared = "extern bit<8> next(in bit<8> a); extern void note(in bit<8> a);"
    ingress = "h.a.x = next(1); h.a.y = next(1); h.a.z = next(1) + next(1); note(1); note(1);"
    note = {"next": lambda a: made.append(a) or len(made), "note": made.append}
    for sw in switches(note, declared, ingress):
        made.clear()
        assert sw.process(0, packet()) == [(1, bytes([0, 1, 2, 7]))]
        assert made == [1] * 6


def test_arguments_are_evaluated_in_order_and_results_copied_out_in_order() -> None:
    declared = "extern bit<8> f(in bit<8> a, inout bit<8> b, out bit<8> c);"
    ingress = "h.a.x = f(h.a.y, h.a.y, h.a.y);"
    for sw in switches({"f": lambda a, b: (a, b + 1, b + 2)}, declared, ingress):
        assert sw.process(0, packet(y=5))[0][1] == bytes([0, 5, 7, 0])


def test_instances_keep_their_state_apart_and_as_long_as_the_program_is_loaded() -> None:
    class Count:
        def __init__(self, start: int) -> None:
            self.value = start

        def up(self) -> int:
            self.value += 1
            return self.value

    declared = "extern Count { Count(bit<8> start); bit<8> up(); }"
    ingress, ingress_locals = "h.a.x = a.up(); h.a.y = b.up();", "Count(5) a; Count(100) b;"
    for sw in switches({"Count": Count}, declared, ingress, ingress_locals):
        sw.process(0, packet())
        sw.trace(0, packet())
        assert sw.process(0, packet())[0][1] == bytes([0, 8, 103, 0])


def test_overloads_are_distinguished_by_their_parameters() -> None:
    declared = "extern bit<8> f(in bit<8> a); extern bit<8> f(in bit<8> a, in bit<8> b);"
    for sw in switches({"f": max_of}, declared, "h.a.y = f(h.a.x) + f(h.a.x, 9);"):
        assert sw.process(0, packet(x=4))[0][1][2] == 13
    said = refused({"f": lambda a: a}, declared, "h.a.y = f(h.a.x, 9);")
    assert said.startswith("extern f is called with 2 arguments")


def max_of(*values: int) -> int:
    return max(values)


def test_a_programs_own_form_of_the_architectures_extern() -> None:
    declared = "extern void random(out bit<8> value);"
    ingress = "random(h.a.x); random(h.a.y, 5, 5);"
    for sw in switches({"random": lambda: 7}, declared, ingress):
        assert sw.process(0, packet())[0][1] == bytes([0, 7, 5, 0])


@pytest.mark.parametrize("name", ["Counter", "Register", "Checksum", "ActionProfile", "Digest"])
def test_an_own_type_may_have_a_name_that_another_architecture_uses(name: str) -> None:
    class Own:
        def count(self, by: int) -> int:
            return by + 1

    declared = f"""extern {name} {{ {name}(); bit<8> count(in bit<8> by); }}
        control sub(inout bit<8> x) {{ {name}() own; apply {{ x = own.count(x); }} }}"""
    ingress = "inner.apply(h.a.x); inner.apply(h.a.x); h.a.y = c.count(h.a.x);"
    for sw in switches({name: Own}, declared, ingress, f"{name}() c; sub() inner;"):
        assert sw.process(0, packet(x=3))[0][1] == bytes([0, 5, 6, 0])


def test_a_name_that_is_a_word_of_pythons_ends_in_an_underscore() -> None:
    class From:
        def is_(self, a: int) -> int:
            return a + 1

    declared = "extern from { from(); bit<8> is(in bit<8> a); } extern bit<8> pass(in bit<8> a);"
    given = {"from_": From, "pass_": lambda a: a * 2}
    for sw in switches(given, declared, "h.a.y = o.is(pass(h.a.x));", "from() o;"):
        assert sw.process(0, packet(x=4))[0][1][2] == 9


# -- abstract methods ---------------------------------------------------------------------------

HOOKED = "extern Hooked { Hooked(); abstract bit<8> f(in bit<8> a); bit<8> go(in bit<8> a); }"


class Hooked:
    f: Callable[[int], int]

    def go(self, a: int) -> int:
        return self.f(a)


def test_an_abstract_method_runs_on_the_switchs_state() -> None:
    given = """Hooked() k = {
        register<bit<8>>(1) last;
        bit<8> f(in bit<8> a) { bit<8> was; last.read(was, 0); last.write(0, a); return was; }
    };"""
    for sw in switches({"Hooked": Hooked}, HOOKED, "h.a.y = k.go(h.a.x);", given):
        outs = [sw.process(0, packet(x=x))[0][1][2] for x in (3, 4, 5)]
        assert outs == [0, 3, 4] and sw.register("last").read(0) == 5


def test_an_abstract_method_that_is_called_wrongly_is_a_fault() -> None:
    class Wrong(Hooked):
        def go(self, a: int) -> int:
            return self.f(a + 200) if a < 100 else self.f()  # type: ignore[call-arg]

    given = "Hooked() k = { bit<8> f(in bit<8> a) { return a; } };"
    for sw in switches({"Hooked": Wrong}, HOOKED, "h.a.y = k.go(h.a.x);", given):
        what = "packet dropped: extern Hooked.go of I.k failed: "
        sw.process_batch([0, 0], [packet(x=99), packet(x=100)])
        assert sw.messages() == [
            Fault(what + "ValueError: argument a of f: 299 does not fit bit<8>"),
            Fault(what + "TypeError: f() takes 1 arguments, not 0"),
        ]


def test_an_abstract_method_sees_no_packet() -> None:
    given = """Hooked() k = {
        counter(1, CounterType.packets) c;
        bit<8> f(in bit<8> a) { c.count(0); return a; }
    };"""
    said = refused({"Hooked": Hooked}, HOOKED, "h.a.y = k.go(h.a.x);", given)
    assert said == "counter.count may not be called in method f, which sees no packet"
