"""Externs that a program declares itself, implemented in Python, in both engines."""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psaprograms
import pytest
import v1programs
from finsy.proto import p4r
from test_live_switch import REFUSED, inside
from typer.testing import CliRunner
from v1programs import packet

from gradplane.cli import app
from gradplane.switch import Switch, SwitchError
from gradplane.switch.daemon import make_device
from gradplane.switch.externs_file import load_externs
from gradplane.switch.ir.verify import verify
from gradplane.switch.options import SwitchOptions
from gradplane.switch.p4runtime.errors import RpcError
from gradplane.switch.runtime.messages import Fault
from gradplane.switch.source import CompileError

EVERYTHING = Path(__file__).parent / "everything"
ENGINES = ("interpreter", "jit")


def source(declared: str, ingress: str, ingress_locals: str = "", **parts: str) -> str:
    return v1programs.source(
        types=declared,
        ingress="s.egress_spec = 1; " + ingress,
        ingress_locals=ingress_locals,
        **parts,
    )


def switches(externs: Any, declared: str, ingress: str, ingress_locals: str = "") -> list[Switch]:
    """One on each engine."""
    text = source(declared, ingress, ingress_locals)
    return [Switch("x.p4", text=text, engine=engine, externs=externs) for engine in ENGINES]


def refused(externs: Any, declared: str, ingress: str, ingress_locals: str = "") -> str:
    with pytest.raises(CompileError) as said:
        switches(externs, declared, ingress, ingress_locals)
    (diagnostic,) = said.value.diagnostics
    assert diagnostic.span.file == "x.p4" and diagnostic.span.line > 1
    return f"{diagnostic.message} | {diagnostic.hint}".rstrip(" |")


# -- both engines do the same -------------------------------------------------------------------


def everything(engine: str) -> Switch:
    externs = load_externs(f"{EVERYTHING}.py")
    return Switch(f"{EVERYTHING}.p4", engine=engine, externs=externs)


def test_every_type_in_every_block_is_alike_in_both_engines() -> None:
    pair = [everything(engine) for engine in ENGINES]
    verify(pair[0].program)
    rng = random.Random(1)
    packets = [
        bytes(
            rng.choice([3, 4, 7, 8, 255, rng.randrange(256)]) for _ in range(rng.randrange(8, 30))
        )
        for _ in range(800)
    ]
    slow, fast = (sw.process_batch([0] * len(packets), packets) for sw in pair)
    assert slow == fast and len(slow) == len(packets)
    assert [sw.messages() for sw in pair] == [[], []]
    for register in ("cells", "seen"):
        assert pair[0].register(register).read(0) == pair[1].register(register).read(0)


def test_a_trace_tells_arguments_and_results_as_python_has_them() -> None:
    text = everything("jit").trace(0, bytes([200, 3, 9]) + bytes(8)).text()
    for line in (
        "flipped(true) -> [false, ",
        "pairs({x 0xc8, f true}, {x 3, f false}) -> {x 3, f true}, {x 0xc8, f false}",
        "after(RED, 3, NoMatch) -> RED, Odd",
        "item(invalid) -> {k 0xabc, l 5}",
        "many(0xc8, ",
        "constants(0xc8, 0x400000000000000000, text, 0)",
        "add_to(I.cells, 0xc8)",
        "shared.step(8) -> ",
    ):
        assert line.replace("[false, ", "false, ") in text, (line, text)


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


# -- calls from everywhere ----------------------------------------------------------------------

FAILING = "extern bit<8> f(in bit<8> a); extern void g(inout a_t a);"
CALLS = "h.a.x = f(h.a.x); g(h.a);"
V1_BLOCKS = {
    "parser": {
        "parser": "pkt.extract(h.a); g(h.a); transition select(f(h.a.y)) { 1: two; _: accept; }",
        "states": "state two { h.a.z = f(h.a.z); transition reject; }",
    },
    "verify": {"verify": "m.unused = f(h.a.x); g(h.a);"},
    "ingress": {
        "ingress": CALLS
        + """ s.egress_spec = 1; if (h.a.y == 6) { clone(CloneType.I2E, 5); }
        if (h.a.y == 4) { resubmit_preserving_field_list(0); }"""
    },
    "egress": {"egress": CALLS + " if (h.a.y == 6) { clone(CloneType.E2E, 5); h.a.y = 7; }"},
    "compute": {"compute": CALLS},
    "deparser": {"deparser": "pkt.emit(h.a); f(h.a.x); a_t q = h.a; g(q); pkt.emit(q);"},
    "action": {
        "ingress_locals": """
        action k(bit<8> v) { h.a.x = f(v); g(h.a); if (v == 5) exit; h.a.z = f(h.a.y); }
        table t {
            key = { f(h.a.kind): exact @name("q"); h.a.x: ternary; }
            actions = { k; }
            const entries = { (1, _): k(5); (4, 3): k(10); }
            default_action = k(9);
        }""",
        "ingress": "s.egress_spec = 1; if (t.apply().hit) { h.a.y = f(h.a.y) + f(h.a.z) * f(1); }",
    },
    "loop": {
        "ingress": """s.egress_spec = 1;
        for (bit<8> i = 0; i < f(h.a.x) && i < 9; i = i + 1) {
            h.a.y = f(h.a.y) + i;
            if (f(i) == 10) continue;
            if (h.a.y > 200) break;
            g(h.a);
        }"""
    },
}
PSA_BLOCKS = {
    "psa parser": {"parser": "pkt.extract(h.a); m.kept = f(h.a.x); g(h.a); transition accept;"},
    "psa ingress": {"ingress": "send_to_port(o, (PortId_t) 1); o.resubmit = h.a.y == 4; " + CALLS},
    "psa deparser": {"deparser": CALLS},
    "psa egress": {"egress": CALLS + " o.clone = h.a.y == 6; h.a.y = 7;"},
    "psa egress deparser": {"egress_deparser": CALLS},
}


def in_block(name: str) -> str:
    if name in PSA_BLOCKS:
        made = psaprograms.source(types="TYPES", **PSA_BLOCKS[name])
        header = next(line for line in made.splitlines() if line.startswith("header a_t"))
        return made.replace(header, "").replace("TYPES", f"{header}\n{FAILING}")
    return v1programs.source(types=FAILING, **{"ingress": "s.egress_spec = 1;", **V1_BLOCKS[name]})


def failing() -> dict[str, Any]:
    def f(a: int) -> int:
        if a % 7 == 3:
            raise ValueError("seven")
        return (a * 3 + 1) & 0xFF

    def g(a: dict[str, int] | None) -> dict[str, int] | None:
        if a is not None and a["x"] % 11 == 5:
            return {**a, "x": 300}
        return None if a is not None and a["z"] == 1 else a

    return {"f": f, "g": g}


@pytest.mark.parametrize("block", [*V1_BLOCKS, *PSA_BLOCKS])
def test_calls_that_fail_now_and_then_are_alike_in_every_block(block: str) -> None:
    rng = random.Random(3)
    packets = [packet(*(rng.randrange(12) for _ in range(4)), bytes(2)) for _ in range(200)]
    seen = []
    for engine in ENGINES:
        sw = Switch("x.p4", text=in_block(block), engine=engine, externs=failing(), clock=lambda: 0)
        sw.clone_session(5, [3, 4])
        left = sw.process_batch([0] * len(packets), packets)
        seen.append((left, sw.messages(), sw.state.drops))
    assert seen[0] == seen[1]
    assert len(seen[0][0]) > 20 and len(seen[0][1]) > 20


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


# -- what goes wrong at run time ----------------------------------------------------------------

ONE = "extern bit<8> f(in bit<8> a);"


@pytest.mark.parametrize(
    ("declared", "given", "told"),
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
def test_a_result_that_does_not_fit_is_a_fault(declared: str, given: Any, told: str) -> None:
    call = "f(h.a.x, h.a.y);" if "out " in declared else "f(h.a.x);"
    for sw in switches({"f": lambda a: given}, declared, call):
        assert sw.process(0, packet()) == []
        error = "ValueError"
        assert sw.messages() == [Fault(f"packet dropped: extern f failed: {error}: {told}")]
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
        told = Fault("packet dropped: extern f failed: KeyError: 'no entry'")
        assert sw.messages() == [told, told] and sw.state.drops == {"extern f failed": 2}
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


def test_a_constructor_that_raises_is_told_with_its_instance() -> None:
    def made(n: int) -> None:
        raise ValueError(f"{n} is not a power of two")

    said = refused({"K": made}, "extern K { K(bit<8> n); }", "", "K(3) k;")
    assert said == "extern K (I.k): ValueError: 3 is not a power of two"


def test_overloads_are_told_apart_by_what_they_take() -> None:
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


def test_an_own_type_may_have_a_name_that_another_architecture_uses() -> None:
    class Counter:
        def count(self) -> None: ...

    declared = "extern Counter { Counter(); void count(); }"
    for sw in switches({"Counter": Counter}, declared, "c.count();", "Counter() c;"):
        assert len(sw.process(0, packet())) == 1


# -- files and commands -------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "own.p4"
    file.write_text(source(ONE, "h.a.y = f(h.a.x);"))
    (tmp_path / "own.py").write_text("from beside import f\n")
    (tmp_path / "beside.py").write_text("def f(a):\n    return a * 2\n")
    (tmp_path / "own.stf").write_text("packet 0 00030000\nexpect 1 00030600 $\n")
    yield file
    sys.modules.pop("beside", None)
    sys.path[:] = [folder for folder in sys.path if folder != str(tmp_path)]


def command(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_stf_and_trace_take_the_file(program: Path) -> None:
    externs = program.with_suffix(".py")
    for engine in ENGINES:
        done = command("stf", program, "--externs", externs, "--engine", engine)
        assert (done.exit_code, done.output) == (0, f"PASS {program}\n1 passed, 0 failed\n")
    done = command("stf", program)
    assert done.exit_code == 1 and "extern f has no implementation" in done.output
    done = command("trace", program, "--externs", externs, "--packet", "00030000")
    assert "f(3) -> 6" in done.output


def test_p4_check_says_that_an_implementation_is_needed(program: Path) -> None:
    done = command("p4", "check", program)
    assert done.exit_code == 0 and f"{program}: ok\n" in done.output
    note = "warning: extern f: of the program's own; to run, it needs them in Python\n"
    assert note in done.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def f(a:\n", r"externs .*bad\.py:1: SyntaxError: '\(' was never closed"),
        ("\nimport nowhere_to_be_found\n", r"externs .*bad\.py:2: ModuleNotFoundError: "),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(SwitchError, match=told):
        load_externs(file)
    with pytest.raises(SwitchError, match=r"externs no\.py: expected a Python file"):
        load_externs("no.py")


def test_what_cannot_be_handed_to_an_extern_is_refused() -> None:
    declared = "extern void f(direct_counter c);"
    parts = """direct_counter(CounterType.packets) c;
        table t { key = { h.a.x : exact; } actions = { NoAction; } counters = c; }"""
    assert refused({"f": print}, declared, "t.apply(); f(c);", parts) == (
        "direct_counter I.c cannot be handed to the program's own externs | registers, counters,"
        " meters and objects of their own can"
    )
    with pytest.raises(SwitchError, match="externs: expected functions and classes by name, or a"):
        switches("own.py", ONE, "f(1);")


def test_a_live_switch_with_programs_that_are_pushed(tmp_path: Path) -> None:
    """In a namespace of its own, as tests/switch/ports."""
    if REFUSED:
        pytest.skip(REFUSED)
    seen = inside(Path(__file__).with_name("live_world.py"), str(tmp_path))
    assert seen["counted"] == [1, None, 2]
    assert "extern Count.next of I.c failed" in seen["log"] and "RuntimeError: nine" in seen["log"]
    assert seen["after a push"] == 1
    assert seen["exit status"] == 0


def test_a_pushed_program_whose_extern_is_missing_is_refused(program: Path) -> None:
    device = make_device(SwitchOptions(externs=program.with_suffix(".py")))
    text = program.read_text()
    config = p4r.ForwardingPipelineConfig(p4_device_config=text.encode())
    device.commit(device.prepare(config))
    assert device.process(0, packet(x=3)) == [(1, packet(x=3, y=6))]
    config.p4_device_config = text.replace("f(", "g(").encode()
    with pytest.raises(RpcError) as said:
        device.prepare(config)
    assert said.value.code == "INVALID_ARGUMENT"
    message = said.value.message
    assert message.startswith("pushed.p4:") and "error: extern g has no implementation" in message
    assert "h.a.y = g(h.a.x);" in message and "\n    " in message
    assert device.process(0, packet(x=3)) == [(1, packet(x=3, y=6))]
