"""Rules that actions, conditions or tables break are reported with their line and the way out."""

import pytest
from fragments import report, table

from gradplane.fit.placement import used

WHAT_AN_ALU_DOES_NOT = [
    (
        "hdr.ip.id = hdr.ip.id * hdr.ip.length;",
        "does not compute *",
        "look the result up in a table",
    ),
    (
        "hdr.ip.id = hdr.ip.id << hdr.ip.tos;",
        "shifts by constants only",
        "for each number of places",
    ),
    (
        "if (hdr.ip.tos > 3) { hdr.ip.id = 1; }",
        "on its own data only",
        "condition into the control",
    ),
    ("md.a = hdr.ip.tos > 3 ? 16w1 : 16w2;", "does not choose", "a condition in the control"),
]


@pytest.mark.parametrize(("statement", "what", "way_out"), WHAT_AN_ALU_DOES_NOT)
def test_what_an_alu_does_not_do_has_its_own_way_out(
    statement: str, what: str, way_out: str
) -> None:
    declarations = f"action act() {{ {statement} }}" + table("one", "hdr.ip.dst", "act")
    found = report(declarations, "one.apply(); hdr.ip.offset = (bit<13>)md.a;")
    (overrun,) = found.pipelines[0].overruns
    assert what in overrun.what and way_out in overrun.way_out
    assert overrun.span.line == 8


@pytest.mark.parametrize(
    ("minus", "fits"), [("id - n", False), ("id |-| n", False), ("id + n", True)]
)
def test_an_alu_does_not_subtract_what_comes_with_an_action(minus: str, fits: bool) -> None:
    declarations = f"action act(bit<16> n) {{ hdr.ip.id = hdr.ip.{minus}; }}"
    found = report(declarations + table("one", "hdr.ip.dst", "act"), "one.apply();")
    assert found.fits == fits
    for overrun in found.pipelines[0].overruns:
        assert "subtract what comes with an action" in overrun.what
        assert "the negative number" in overrun.way_out


def test_a_field_that_shares_a_byte_is_set_but_not_computed() -> None:
    action = "action act(bit<13> n) {{ hdr.ip.offset = {}; }}{}"
    entries = table("one", "hdr.ip.dst", "act")
    assert report(action.format("n", entries), "one.apply();").fits
    found = report(action.format("hdr.ip.offset + 1", entries), "one.apply();")
    (overrun,) = found.pipelines[0].overruns
    assert overrun.what.startswith("hdr.ip.offset is computed, which changes the whole byte; flags")
    assert "in metadata" in overrun.way_out


@pytest.mark.parametrize(("flexible", "fits"), [("@flexible", True), ("", False)])
def test_fields_that_the_compiler_lays_out_share_no_bytes(flexible: str, fits: bool) -> None:
    fields = f"{flexible} bit<1> w0; {flexible} bit<32> w1; {flexible} bit<7> w2;"
    body = "hdr.words.w1 = hdr.words.w1 & hdr.ip.src;"
    found = report("", body, before=f"#define WORDS {fields}\n")
    assert found.fits == fits, found.pipelines[0].overruns


@pytest.mark.parametrize(
    ("header", "fits"), [("bit<16> w0; bit<16> w1;", True), ("bit<16> w0;", False)]
)
def test_an_alu_works_on_containers_of_one_size(header: str, fits: bool) -> None:
    """A header of two bytes is in no container of 32 bits, a sum of 32 bits only in one."""
    declarations = """action take() { md.s[15:0] = hdr.words.w0; }
        action more() { md.s = md.s + hdr.ip.src; }"""
    declarations += table("one", "hdr.ip.dst", "take") + table("two", "hdr.ip.dst", "more")
    body = "one.apply(); two.apply(); hdr.ip.dst = md.s;"
    found = report(declarations, body, before=f"#define WORDS {header}\n")
    assert found.fits == fits
    for overrun in found.pipelines[0].overruns:
        assert "hdr.words.w0 is in one of 16 bits at most, md.s in one of 32" in overrun.what


@pytest.mark.parametrize(
    ("declarations", "body", "problem"),
    [
        ("", "hdr.words.w0 = hdr.words.w1 * hdr.words.w2;", "an ALU does not compute *"),
        ("", "hdr.words.w0 = hdr.words.w1 << hdr.ip.tos;", "an ALU shifts by constants only"),
        ("", "if (hdr.words.w0 > 1000) { md.a = 1; }", "a condition compares 32 bits by their"),
        (
            "",
            "if (hdr.words.w0 != 0 || hdr.words.w1 != 0) { hdr.ip.id = 1; }",
            "a condition compares 8 bytes; the chip compares 4 and 12 bits",
        ),
        (
            "action both() { md.s = hdr.words.w0 + 1; hdr.words.w1 = md.s + hdr.words.w2; }"
            + table("t", "hdr.ip.dst", "both"),
            "t.apply();",
            "2 operations after each other for one field; an action makes one",
        ),
    ],
)
def test_what_the_chip_cannot_do_is_said_at_its_line(
    declarations: str, body: str, problem: str
) -> None:
    overruns = report(declarations, body).pipelines[0].overruns
    assert any(o.what.startswith(problem) for o in overruns), [o.what for o in overruns]
    assert all(o.way_out and o.span.line for o in overruns)


ADDRESSES = [
    ("a0.execute(hdr.ip.id);", "a1.execute(hdr.ip.id);", "uses Ingress.r0 but not Ingress.r1"),
    ("a0.execute(hdr.ip.id);", "a0.execute(hdr.ip.length);", "access Ingress.r0 by different"),
    ("c0.count(hdr.ip.id);", "c1.count(hdr.ip.id);", "uses Ingress.c0 but not Ingress.c1"),
    (
        "c0.count(hdr.ip.id); c1.count(hdr.ip.length);",
        "hdr.ip.tos = 1;",
        "access Ingress.c0 and Ingress.c1 by different indices",
    ),
    ("a0.execute(hdr.ip.id); a1.execute(hdr.ip.id);", "hdr.ip.tos = 1;", ""),
    ("c0.count(hdr.ip.id); c1.count(hdr.ip.id);", "hdr.ip.tos = 1;", ""),
    ("a0.execute(hdr.ip.id);", "c1.count(hdr.ip.length);", ""),
]


@pytest.mark.parametrize(("first", "second", "problem"), ADDRESSES)
def test_a_table_gives_one_address_to_registers_and_one_to_counters(
    first: str, second: str, problem: str
) -> None:
    """As p4c's Tofino back end says of the same tables."""
    memory = "".join(
        f"""Register<bit<32>, bit<16>>(1024) r{n};
        RegisterAction<bit<32>, bit<16>, bit<32>>(r{n}) a{n} = {{
            void apply(inout bit<32> v) {{ v = v + 1; }} }};
        Counter<bit<32>, bit<16>>(1024, CounterType_t.PACKETS) c{n};"""
        for n in range(2)
    )
    declarations = f"""{memory} action one() {{ {first} }} action two() {{ {second} }}
        table t {{ key = {{ hdr.ip.src : exact; }} actions = {{ one; two; NoAction; }}
            const default_action = NoAction(); size = 512; }}"""
    overruns = report(declarations, "t.apply();").pipelines[0].overruns
    assert [problem in o.what for o in overruns] == ([True] if problem else [])
    assert all("in a table of its own" in o.way_out for o in overruns)


@pytest.mark.parametrize("filter_", ["DirectLpf<bit<32>>()", "DirectWred<bit<32>>(0, 1)"])
def test_a_table_with_a_filter_takes_its_alu(filter_: str) -> None:
    declarations = f"""{filter_} filter;
        action one() {{ hdr.ip.ttl = (bit<8>) filter.execute(hdr.ip.src); }}
        table t {{ key = {{ hdr.ip.dst : exact; }} actions = {{ one; }} default_action = one();
            filters = filter; size = 2048; }}"""
    found = report(declarations, "t.apply();").pipelines[0]
    sums = used(found.placement.stages)
    assert (sums["meter_alus"], sums["map_ram"]) == (1, 3)


@pytest.mark.parametrize(("bits", "fits"), [(20, True), (21, False)])
def test_ranges_have_five_groups_of_four_bits(bits: int, fits: bool) -> None:
    key = f"hdr.ip.src[{bits - 1}:0]"
    found = report(table("one", key, "write_ports").replace("exact", "range"), "one.apply();")
    assert found.fits == fits
    for overrun in found.pipelines[0].overruns:
        assert overrun.what == (
            f"{key}, a range in the key of Ingress.one, has 21 bits; the chip matches ranges of 20"
        )


@pytest.mark.parametrize("named", [True, False])
def test_a_table_names_its_direct_extern(named: bool) -> None:
    declarations = f"""DirectCounter<bit<32>>(CounterType_t.PACKETS) seen;
        action one() {{ seen.count(); }}
        table t {{ key = {{ hdr.ip.dst : exact; }} actions = {{ one; }} default_action = one();
            {"counters = seen;" if named else ""} size = 2048; }}"""
    found = report(declarations, "t.apply();")
    assert found.fits == named
    for overrun in found.pipelines[0].overruns:
        assert overrun.what.endswith("use Ingress.seen, which the table does not name")
        assert overrun.way_out == "write counters = seen; in the table"


REGISTER = """Register<bit<32>, bit<16>>(1024) r; Random<bit<16>>() random;
    RegisterAction<bit<32>, bit<16>, bit<32>>(r) add = {
        void apply(inout bit<32> v, out bit<32> now) { v = v + 1; now = v; } };"""


@pytest.mark.parametrize(
    ("index", "fits"),
    [
        ("hdr.ip.id", True),
        ("hdr.ip.tos ++ hdr.ip.ttl", True),
        ("(bit<16>)hdr.ip.tos", True),
        ("hdr.ip.id & 0x3ff", False),
        ("hdr.ip.id + 1", False),
        ("hdr.ip.id ^ hdr.ip.length", False),
    ],
)
def test_an_index_is_not_computed(index: str, fits: bool) -> None:
    """Nor is a field that a statement before computes; what a called action computes is one."""
    direct = report(REGISTER, f"hdr.ip.src = add.execute({index});")
    before = report(REGISTER, f"md.a = {index}; hdr.ip.src = add.execute(md.a);")
    action = f"action get() {{ md.a = {index}; }} action go() {{ hdr.ip.src = add.execute(md.a); }}"
    called = report(f"{REGISTER} {action}", "get(); go();")
    assert [direct.fits, before.fits, called.fits] == [fits, fits, True]
    for overrun in (*direct.pipelines[0].overruns, *before.pipelines[0].overruns):
        assert overrun.what.startswith("an index is a field")
        assert overrun.way_out == "compute it into a field in an action before, which is called"


@pytest.mark.parametrize(
    ("sum_", "narrow"),
    [
        ("hdr.ip.src + (bit<32>)hdr.ip.length", "hdr.ip.length"),
        ("(bit<32>)hdr.ip.tos + 1", "hdr.ip.tos"),
        ("min(hdr.ip.src, (bit<32>)hdr.ip.length)", "hdr.ip.length"),
        ("hdr.ip.src ^ (bit<32>)hdr.ip.length", ""),
        ("hdr.ip.src + (bit<32>)hdr.ip.ihl", ""),
        ("hdr.ip.src + (bit<32>)md.a", ""),
        ("hdr.ip.src + (bit<32>)ig.ingress_port", ""),
    ],
)
def test_a_sum_has_no_narrower_field_of_a_header(sum_: str, narrow: str) -> None:
    tables = table("before", "hdr.ip.dst", "set_a") + table("after", "md.s", "write_ports")
    found = report(
        f"action add() {{ md.s = {sum_}; }} {tables}", "before.apply(); add(); after.apply();"
    )
    assert [narrow in o.what for o in found.pipelines[0].overruns] == ([True] if narrow else [])
    by_statement = report(
        tables, "md.t = (bit<32>)hdr.ip.length; md.s = hdr.ip.src + md.t; after.apply();"
    )
    assert by_statement.fits


@pytest.mark.parametrize(
    ("statement", "default", "fits"),
    [
        ("hdr.ip.src = add.execute(hdr.ip.id);", "one()", False),
        ("hdr.ip.id = random.get();", "one()", False),
        ("hdr.ip.src = add.execute(0);", "one()", True),
        ("hdr.ip.src = add.execute(hdr.ip.id);", "NoAction()", True),
    ],
)
def test_a_miss_has_no_hash(statement: str, default: str, fits: bool) -> None:
    declarations = f"""{REGISTER} action one() {{ {statement} }}
        table t {{ key = {{ hdr.ip.tos : exact; }} actions = {{ one; NoAction; }}
            const default_action = {default}; size = 64; }}"""
    found = report(declarations, "t.apply();")
    assert found.fits == fits
    for overrun in found.pipelines[0].overruns:
        assert overrun.what.startswith("Ingress.one, the default action of Ingress.t, takes a hash")


HASH = "Hash<bit<16>>(HashAlgorithm_t.CRC16) h;"
WHAT_A_CONTROL_DOES_NOT = [
    (
        table("one", "hdr.ip.dst", "set_a"),
        "if (hdr.ip.isValid() && one.apply().hit) { use_a(); }",
        "Ingress.one is applied in a part of a condition",
        "a condition inside the other",
    ),
    (
        HASH,
        "hdr.ip.id = h.get({hdr.ip.src}); hdr.ports.src = h.get({hdr.ip.dst});",
        "Ingress.h is called with other fields than before",
        "a Hash for each list of fields",
    ),
    (
        "",
        "md.s = (bit<32>)(bit<8>)hdr.ip.id; hdr.ip.src = md.s;",
        "(bit<32>)(bit<8>)hdr.ip.id has casts inside each other",
        "take a slice (field[7:0])",
    ),
    (
        "DirectCounter<bit<32>>(CounterType_t.PACKETS) c; action act() { hdr.ip.id = 1; }"
        " table one { key = { hdr.ip.dst : exact; } actions = { act; } counters = c; size = 512; }",
        "one.apply();",
        "action Ingress.act of Ingress.one does not use Ingress.c, which the table names",
        "in all of the table's actions",
    ),
    (
        "Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) c;"
        " Meter<bit<8>>(256, MeterType_t.BYTES) m;"
        " action act() { c.count(hdr.ip.tos); hdr.ip.protocol = m.execute(hdr.ip.tos); }"
        " table one { key = { hdr.ip.dst : exact; } actions = { act; } size = 512; }",
        "one.apply();",
        "Ingress.one counts, and meters by Ingress.m, whose colour takes the counter's address",
        "count in a table of its own",
    ),
    (
        "",
        "hdr.ip.id = 7; invalidate(hdr.ip.id);",
        "invalidate is called for a field that was set before; the compiler puts there what it was"
        " set to",
        "where it is not set",
    ),
]


@pytest.mark.parametrize(("declarations", "body", "what", "way_out"), WHAT_A_CONTROL_DOES_NOT)
def test_what_a_control_does_not_do_has_its_own_way_out(
    declarations: str, body: str, what: str, way_out: str
) -> None:
    overrun = report(declarations, body).pipelines[0].overruns[0]
    assert overrun.what == what and way_out in overrun.way_out
