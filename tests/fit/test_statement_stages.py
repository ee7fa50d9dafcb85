"""In how many stages statements are: as many as p4c's Tofino back end (1.2.5.16) placed them in."""

import pytest
from fragments import report

REGISTERS = """Register<bit<1>, bit<32>>(4096) f1; Register<bit<1>, bit<32>>(4096) f2;
    RegisterAction<bit<1>, bit<32>, bit<1>>(f1) s1 = { void apply(inout bit<1> v) { v = 1; } };
    RegisterAction<bit<1>, bit<32>, bit<1>>(f2) s2 = { void apply(inout bit<1> v) { v = 1; } };
    Hash<bit<32>>(HashAlgorithm_t.CRC32) h1; Hash<bit<32>>(HashAlgorithm_t.CRC16) h2;
    Hash<bit<12>>(HashAlgorithm_t.CRC16) h3; Hash<bit<16>>(HashAlgorithm_t.CRC16) h4;"""
SOURCES = "{hdr.ip.src, hdr.ip.dst}"

PUT_TOGETHER = [
    ("hdr.words.w3 = hdr.words.w0[15:0] ++ hdr.words.w1[15:0];", 1),
    ("hdr.words.w3 = hdr.words.w0[7:0] ++ hdr.words.w1[7:0] ++ hdr.words.w2[15:0];", 1),
    ("md.s = hdr.words.w0[15:0] ++ hdr.words.w1[15:0]; if (md.s == 7) { hdr.ip.ttl = 1; }", 2),
    ("hdr.ip.tos = hdr.ip.version ++ hdr.ip.ihl;", 2),
    ("hdr.ip.id = hdr.ip.version ++ hdr.ip.ihl ++ hdr.ip.tos;", 3),
    ("hdr.words.w0 = hdr.ip.version ++ hdr.ip.ihl ++ hdr.ip.tos ++ hdr.ip.length;", 4),
    ("hdr.ip.tos = 4w0 ++ hdr.ip.ihl;", 2),
    ("hdr.ip.tos = hdr.ip.flags ++ 5w0;", 2),
    ("md.a = 4w1 ++ hdr.ip.ihl ++ hdr.ip.tos; hdr.ip.id = md.a;", 4),
]
WIDER = [
    ("hdr.words.w0 = (bit<32>)hdr.ip.id;", 1),
    ("hdr.words.w0 = (bit<32>)hdr.ip.offset;", 2),
    ("hdr.words.w0 = (bit<32>)hdr.words.w1[30:18];", 2),
    ("bit<32> i = (bit<32>)hdr.ip.offset; hdr.words.w0 = i + 1;", 2),
    ("bit<32> i = (bit<32>)hdr.ip.offset; if (i == 7) { hdr.ip.ttl = 1; }", 2),
    ("bit<32> i = (bit<32>)hdr.ip.offset; s1.execute(i);", 2),
]
HASHED = [
    (f"bit<32> i = h1.get({SOURCES}); s1.execute(i);", 1),
    (f"bit<12> i = h3.get({SOURCES}); s1.execute((bit<32>)i);", 1),
    (f"bit<32> i = (bit<32>)h3.get({SOURCES}); s1.execute(i);", 3),
    (f"bit<32> i = (bit<32>)h4.get({SOURCES}); s1.execute(i);", 3),
    (f"bit<32> i = (bit<32>)(h1.get({SOURCES})[11:0]); s1.execute(i);", 3),
    (
        f"bit<32> i = (bit<32>)(h1.get({SOURCES})[11:0]);"
        f" bit<32> j = (bit<32>)(h2.get({SOURCES})[11:0]); s1.execute(i); s2.execute(j);",
        4,
    ),
    (f"hdr.ip.id = (bit<16>)h3.get({SOURCES});", 2),
]


@pytest.mark.parametrize(("body", "stages"), [*PUT_TOGETHER, *WIDER, *HASHED])
def test_what_a_statement_puts_together_is_set_in_pieces(body: str, stages: int) -> None:
    assert report(REGISTERS, body).pipelines[0].stages == stages


@pytest.mark.parametrize(
    ("then", "other", "fits"), [("a", "b", True), ("b", "a", True), ("a", "s", False)]
)
def test_a_choice_between_what_is_compared_is_a_minimum(then: str, other: str, fits: bool) -> None:
    choice = f"md.a = md.a <= md.b ? md.{then} : (bit<16>)md.{other};"
    found = report("", f"md.b = hdr.ip.id; md.a = hdr.ip.length; {choice} hdr.ip.id = md.a;")
    assert found.fits == fits


def test_an_action_is_done_as_often_as_it_is_called() -> None:
    action = "action step() { md.a = md.a + hdr.ip.id; }"
    found = report(action, "step(); step(); step(); hdr.ip.id = md.a;").pipelines[0]
    assert (found.stages, found.fits) == (4, True)


def test_an_action_sets_all_pieces_at_once() -> None:
    action = "action act() { hdr.ip.tos = hdr.ip.version ++ hdr.ip.ihl; }"
    assert report(action, "act();").pipelines[0].stages == 1


NAMED = [
    ("bool x = hdr.ip.id == 3; if (x) { hdr.ip.ttl = 1; } if (x && hdr.ip.tos == 1)"
     " { hdr.ip.src = 7; }", ""),
    ("bool x = hdr.ip.id == 3 && hdr.ip.tos == 2; if (hdr.ip.isValid()) { if (x)"
     " { hdr.ip.ttl = 1; } } if (!x) { hdr.ip.protocol = 7; }", ""),
    ("if (hdr.ip.id % 1024 == 3) { hdr.ip.ttl = 1; }", ""),
    ("bool x = hdr.ip.id == 3; hdr.ip.id = 9; if (x) { hdr.ip.ttl = 1; }",
     "the condition asks for x"),
    ("bool x; if (hdr.ip.tos == 1) { x = hdr.ip.id == 3; } if (x) { hdr.ip.ttl = 1; }",
     "the condition asks for x"),
    ("bool x = hdr.ip.id == 3; if (hdr.ip.tos == 1) { x = flag.execute(0); } if (x)"
     " { hdr.ip.ttl = 1; }", "an ALU does not compare"),
    ("act(); if (y) { hdr.ip.ttl = 1; }", "an ALU does not compare"),
    ("bit<1> x = (bit<1>)(hdr.ip.id == 3); if (x == 1) { hdr.ip.ttl = 1; }",
     "an ALU does not compare"),
    ("if (hdr.ip.id / 16 == 3) { hdr.ip.ttl = 1; }", "a condition compares, and does not compute"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "problem"), NAMED)
def test_a_variable_may_stand_for_a_condition(body: str, problem: str) -> None:
    """The compiler took those without a problem, and refused the others."""
    declarations = """bool y; action act() { y = hdr.ip.id == 3; }
        Register<bit<8>, bit<8>>(1) flags; RegisterAction<bit<8>, bit<8>, bool>(flags) flag = {
            void apply(inout bit<8> v, out bool r) { r = v == 1; } };"""
    found = report(declarations, body).pipelines[0]
    assert found.fits == (not problem)
    assert not problem or found.overruns[0].what.startswith(problem)


@pytest.mark.parametrize(("bits", "stages"), [(1, 4), (4, 3), (8, 2)])
def test_fields_of_less_than_a_byte_share_one_that_a_table_sets(bits: int, stages: int) -> None:
    """Three registers set a field each, and a condition reads them."""
    three = range(3)
    registers = "".join(
        f"""Register<bit<32>, bit<16>>(1024) r{n};
        RegisterAction<bit<32>, bit<16>, bit<{bits}>>(r{n}) a{n} = {{
            void apply(inout bit<32> v, out bit<{bits}> now) {{
                if (v > 0) {{ v = 5; now = 1; }} }} }};"""
        for n in three
    )
    accesses = "".join(f"m{n} = a{n}.execute(hdr.ip.src[31:16]);" for n in three)
    variables = "".join(f"bit<{bits}> m{n} = 0;" for n in three)
    condition = " && ".join(f"m{n} == 1" for n in three)
    body = (
        f"{variables} if (hdr.ip.isValid()) {{ {accesses} }} if ({condition}) {{ hdr.ip.id = 3; }}"
    )
    assert report(registers, body).pipelines[0].stages == stages


@pytest.mark.parametrize(("steps", "stages"), [(1, 6), (7, 12), (8, 10)])
def test_fields_are_in_bytes_of_their_own_where_stages_are_scarce(steps: int, stages: int) -> None:
    """Four tables set one of a byte's bits each; after too many steps they do so in one stage."""
    four = range(4)
    declarations = "action step() { md.a = md.a + 1; }" + "".join(
        f"bit<1> m{n}; action set{n}() {{ m{n} = 1; }} table t{n} {{ key = {{ md.a : exact; }}"
        f" actions = {{ set{n}; }} size = 16; }}"
        for n in four
    )
    condition = " && ".join(f"m{n} == 1" for n in four)
    body = "step(); " * steps + "".join(f"t{n}.apply();" for n in four)
    found = report(declarations, f"{body} if ({condition}) {{ hdr.ip.ttl = 1; }}")
    assert found.pipelines[0].stages == stages


def test_tables_that_set_parts_of_a_byte_are_in_different_stages() -> None:
    """Four registers of which each sets the next bit of a field."""
    registers = "".join(
        f"""Register<bit<32>, bit<16>>(1024) r{n};
        RegisterAction<bit<32>, bit<16>, bit<1>>(r{n}) a{n} = {{
            void apply(inout bit<32> v, out bit<1> now) {{
                if (v > 0) {{ v = 5; now = 1; }} }} }};"""
        for n in range(4)
    )
    accesses = "".join(f"md.a[{n}:{n}] = a{n}.execute(hdr.ip.src[31:16]);" for n in range(4))
    assert report(registers, f"{accesses} hdr.ip.id = md.a;").pipelines[0].stages == 5


GIVEN = [
    ("bit<32> x = a0.execute(hdr.ip.tos); bit<32> y = a1.execute(hdr.ip.ttl);"
     " hdr.words.w0 = min(x, y);", 2),
    ("hdr.words.w0 = a0.execute(hdr.ip.tos) + hdr.words.w1;", 1),
    ("bit<32> x = a0.execute(hdr.ip.tos); hdr.words.w0 = x + hdr.words.w1;", 2),
    ("hdr.words.w0 = a0.execute(hdr.ip.tos) + 1;", 2),
    ("hdr.words.w0 = h1.get({hdr.ip.src}) + 1;", 2),
    ("bit<32> x = h1.get({hdr.ip.src}); hdr.words.w0 = x ^ hdr.words.w1;", 1),
    ("hdr.words.w0 = random.get() & hdr.ip.src;", 1),
]  # fmt: skip


@pytest.mark.parametrize(("body", "stages"), GIVEN)
def test_what_hashes_and_accesses_give_is_an_operand(body: str, stages: int) -> None:
    registers = "".join(
        f"""Register<bit<32>, bit<8>>(256) r{n};
        RegisterAction<bit<32>, bit<8>, bit<32>>(r{n}) a{n} = {{
            void apply(inout bit<32> v, out bit<32> now) {{ v = v + 1; now = v; }} }};"""
        for n in range(2)
    )
    declarations = f"{REGISTERS} {registers} Random<bit<32>>() random;"
    found = report(declarations, body).pipelines[0]
    assert (found.stages, found.fits) == (stages, True), found.overruns


def test_zero_is_set_where_something_else_was_before() -> None:
    access = "md.a = hdr.ip.id; if (hdr.ip.tos == 1) { md.a = 0; } hdr.ip.id = md.a;"
    plain = "md.a = 0; if (hdr.ip.tos == 1) { md.a = hdr.ip.length; } hdr.ip.id = md.a;"
    before, first = (
        [w.name for t in report("", body).pipelines[0].tables for w in t.writes]
        for body in (access, plain)
    )
    assert before.count("md.a") == 2
    assert first.count("md.a") == 1
