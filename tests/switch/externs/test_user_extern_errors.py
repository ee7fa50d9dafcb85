"""Implementations of user-defined externs that fail, do not fit, or are not there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from user_extern_switches import ONE, refused, source, switches
from v1programs import packet

from gradplane.switch import Switch, SwitchError
from gradplane.switch.runtime.control_messages import Fault
from gradplane.switch.source import CompileError


class Hooked:
    f: Callable[[int], int]

    def go(self, a: int) -> int:
        return self.f(a)


HOOKED = "extern Hooked { Hooked(); abstract bit<8> f(in bit<8> a); bit<8> go(in bit<8> a); }"

# -- at run time --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "given", "message"),
    [
        (ONE, 256, "result: 256 does not fit bit<8>"),
        (ONE, -1, "result: -1 does not fit bit<8>"),
        (ONE, None, "result: None is not a number, bit<8>"),
        (ONE, 1.0, "result: 1.0 is not a number, bit<8>"),
        ("extern int<8> f(in bit<8> a);", 128, "result: 128 does not fit int<8>"),
        ("extern bool f(in bit<8> a);", 1, "result: 1 is not True or False"),
        ("extern void f(in bit<8> a);", 1, "it gave 1, not None: there is no result"),
        ("extern bit<8> f(in bit<8> a, out bit<8> b);", 1, "it gave 1, not a tuple of 2"),
        (
            "extern bit<8> f(in bit<8> a, out bit<8> b);",
            (1, 999),
            "parameter b: 999 does not fit bit<8>",
        ),
        (
            "struct p { bit<8> x; bit<8> y; } extern p f(in bit<8> a);",
            {"x": 1},
            "result: {'x': 1} is not a dict with x, y, p",
        ),
        (
            "struct p { bit<8> x; } struct q { p inner; } extern q f(in bit<8> a);",
            {"inner": {"x": 300}},
            "result: inner: x: 300 does not fit bit<8>",
        ),
        (
            "enum Color { RED, BLUE } extern Color f(in bit<8> a);",
            "C",
            "result: 'C' is not a member of Color as a string",
        ),
        ("extern error f(in bit<8> a);", 1, "result: 1 is not a member of error as a string"),
        (
            "extern tuple<bit<8>> f(in bit<8> a);",
            5,
            "result: 5 is not a tuple of 1",
        ),
    ],
)
def test_a_result_that_does_not_fit_is_a_fault(declared: str, given: Any, message: str) -> None:
    call = "f(h.a.x, h.a.y);" if "out " in declared else "f(h.a.x);"
    for sw in switches({"f": lambda a: given}, declared, call):
        assert sw.process(0, packet()) == []
        error = "ValueError"
        assert sw.messages() == [Fault(f"packet dropped: extern f failed: {error}: {message}")]
        assert sw.state.drops == {"extern f failed": 1}


def test_an_exception_drops_its_packet_only(caplog: pytest.LogCaptureFixture) -> None:
    def f(a: int) -> int:
        if a == 3:
            raise KeyError("no entry")
        return a

    packets = [packet(x=x) for x in (1, 3, 2, 3)]
    for sw in switches({"f": f}, ONE, "h.a.y = f(h.a.x);"):
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            left = sw.process_batch([0] * 4, packets)
        assert [(cause, out[2]) for cause, _, out in left] == [(0, 1), (2, 2)]
        message = Fault("packet dropped: extern f failed: KeyError: 'no entry'")
        assert sw.messages() == [message, message] and sw.state.drops == {"extern f failed": 2}
        (record,) = caplog.records  # with the traceback, once
        assert record.exc_text is None or "raise KeyError" in record.exc_text
        assert record.getMessage().startswith("x.p4:") and record.exc_info
        assert "dropped: extern f failed: KeyError" in sw.trace(0, packet(x=3)).text()


def test_ctrl_c_in_an_extern_is_not_a_packets_affair() -> None:
    def f(a: int) -> int:
        raise KeyboardInterrupt

    for sw in switches({"f": f}, ONE, "h.a.y = f(h.a.x);"):
        with pytest.raises(KeyboardInterrupt):
            sw.process(0, packet())


def test_an_extern_cannot_use_the_switch_that_calls_it() -> None:
    made: list[Switch] = []

    def f(a: int) -> int:
        made[0].process(0, packet())
        return a

    for sw in switches({"f": f}, ONE, "h.a.y = f(h.a.x);"):
        made[:] = [sw]
        assert sw.process(0, packet()) == []
        (message,) = sw.messages()
        assert "SwitchError: an extern cannot use the switch that is calling it" in str(message)


# -- what is refused at load --------------------------------------------------------------------


def test_an_extern_without_implementation_is_refused_where_it_is_used() -> None:
    assert refused(None, ONE, "f(1);") == (
        "extern f has no implementation | give it: Switch(..., externs={'f': ...}), or"
        " --externs FILE.py with a function f"
    )
    assert refused({}, HOOKED, "", "Hooked() k = { bit<8> f(in bit<8> a) { return a; } };") == (
        "extern Hooked has no implementation | give it: Switch(..., externs={'Hooked': ...}), or"
        " --externs FILE.py with a class Hooked"
    )


def test_an_implementation_with_other_parameters_is_refused() -> None:
    what = "extern f is called with 1 argument, and its implementation: "
    assert refused({"f": lambda a, b: 1}, ONE, "f(1);") == what + "missing a required argument: 'b'"
    assert refused({"f": lambda: 1}, ONE, "f(1);") == what + "too many positional arguments"
    declared = "extern K { K(bit<8> n); bit<8> get(in bit<8> a); }"
    said = refused({"K": type("K", (), {})}, declared, "k.get(1);", "K(3) k;")
    assert said.startswith("extern K is called with 1 argument, and its implementation: ")
    kind = type("K", (), {"__init__": lambda self, n: None})
    said = refused({"K": kind}, declared, "k.get(1);", "K(3) k;")
    assert said == "extern K.get: K has no method get"


def test_what_python_cannot_be_given_is_refused() -> None:
    declared = "extern G { G(); abstract T f<T>(in T a); }"
    said = refused({"G": Hooked}, declared, "", "G() g = { T f<T>(in T a) { return a; } };")
    assert said == ("abstract method f cannot have type parameters | declare them on the extern")
    parser = "pkt.extract(h.a); f(pkt); transition accept;"
    text = source("extern void f(packet_in p);", "", parser=parser)
    with pytest.raises(CompileError, match="can only take values and extern objects"):
        Switch("x.p4", text=text, externs={"f": print})


def test_a_constructor_that_raises_is_reported_with_its_instance() -> None:
    def made(n: int) -> None:
        raise ValueError(f"{n} is not a power of two")

    said = refused({"K": made}, "extern K { K(bit<8> n); }", "", "K(3) k;")
    assert said == "extern K (I.k): ValueError: 3 is not a power of two"


def test_what_cannot_be_handed_to_an_extern_is_refused() -> None:
    declared = "extern void f(direct_counter c);"
    parts = """direct_counter(CounterType.packets) c;
        table t { key = { h.a.x : exact; } actions = { NoAction; } counters = c; }"""
    assert refused({"f": print}, declared, "t.apply(); f(c);", parts) == (
        "direct_counter I.c cannot be given to user-defined externs | registers, counters,"
        " meters and user-defined objects can"
    )
    with pytest.raises(SwitchError, match="externs: expected functions and classes by name, or a"):
        switches([print], ONE, "f(1);")


def test_errors_in_a_programs_method_are_reported_with_the_extern() -> None:
    given = """Hooked() k = {
        bit<8> f(in bit<8> a) { assert(a != 7); return hinted(a); }
    };"""
    declared = HOOKED + " extern bit<8> hinted(in bit<8> a);"
    externs = {"Hooked": Hooked, "hinted": lambda a: a * 100}
    for sw in switches(externs, declared, "h.a.y = k.go(h.a.x);", given):
        assert sw.process_batch([0] * 2, [packet(x=7), packet(x=9)]) == []
        texts = [message.text for message in sw.messages()]
        what = "packet dropped: extern Hooked.go of I.k failed: "
        assert texts[0].startswith(what + "x.p4:") and texts[0].endswith("assert failed")
        assert texts[1] == what + (
            "extern hinted failed: ValueError: result: 900 does not fit bit<8>"
        )
        assert sw.state.drops == {"extern Hooked.go of I.k failed": 2}
