"""The estimate of whole programs and fragments: tables, dependencies, stages, memory."""

from pathlib import Path

import pytest
from fragments import CONTROL, PROGRAMS, report, table

from gradplane.fit.analysis import FitReport, fit
from gradplane.fit.chip_resources import CHIPS, STAGE
from gradplane.fit.dependencies import ACTION, ANTI, MATCH, SUCCESSOR
from gradplane.fit.placement import used
from gradplane.switch.compiler import compile_program
from gradplane.switch.source import CompileError


def kinds(found: FitReport) -> dict[tuple[str, str], str]:
    edges = found.pipelines[0].edges
    return {(e.before.name[8:], e.after.name[8:]): e.kind for e in edges}


@pytest.mark.parametrize(
    ("first", "second", "kind", "stages"),
    [
        (("hdr.ip.dst", "set_a"), ("md.a", "use_a"), MATCH, 2),
        (("hdr.ip.dst", "set_a"), ("hdr.ip.src", "use_a"), ACTION, 2),
        (("hdr.ports.src", "use_a"), ("hdr.ip.src", "write_ports"), ANTI, 1),
        (("hdr.ip.dst", "set_a"), ("hdr.ip.dst", "write_ports"), None, 1),
    ],
)
def test_dependencies(
    first: tuple[str, str], second: tuple[str, str], kind: str | None, stages: int
) -> None:
    tables = table("one", *first) + table("two", *second)
    found = report(tables, "one.apply(); two.apply(); hdr.ip.offset = (bit<13>)md.a;")
    assert kinds(found).get(("one", "two")) == kind
    placement = found.pipelines[0].placement
    assert len([s for s in placement.stages if any(p.table.key for p in s.parts)]) == stages


def test_a_table_that_decides_is_before_what_it_decides() -> None:
    tables = table("one", "hdr.ip.dst", "write_ports") + table("two", "hdr.ip.src", "use_a")
    found = report(tables, "if (one.apply().hit) { two.apply(); }")
    assert kinds(found)[("one", "two")] == SUCCESSOR


def test_tables_of_two_branches_do_not_depend_on_each_other() -> None:
    tables = table("one", "hdr.ip.dst", "set_a") + table("two", "md.a", "set_b")
    found = report(
        tables, "if (hdr.ip.tos == 1) { one.apply(); } else { two.apply(); } hdr.ip.id = md.b;"
    )
    assert ("one", "two") not in kinds(found)


def test_an_action_may_write_what_a_variable_was_read_from() -> None:
    """All operations of an action happen at once, wherever in the control it is called."""
    declarations = """bit<32> old;
        action turn() { hdr.ip.dst = hdr.ip.src; hdr.ip.src = old; }"""
    found = report(declarations, "hdr.ip.tos = 1; old = hdr.ip.dst; turn();")
    assert found.fits, found.pipelines[0].overruns


ALPM = """
    Alpm(number_partitions = 4096, subtrees_per_partition = 2) algorithm;
    action send(PortId_t port) {{ tm.ucast_egress_port = port; }}
    table prefixes {{
        key = {{ hdr.ip.id : exact; hdr.ip.dst : lpm; }}
        actions = {{ send; NoAction; }}
        default_action = NoAction();
        size = 131072;
        {algorithm}
    }}"""


@pytest.mark.parametrize("name", ["implementation", "alpm"])
def test_prefixes_in_sram_are_divided_into_partitions(name: str) -> None:
    """A table in TCAM finds the partition; the entries of one are compared in SRAM at once."""
    found = report(ALPM.format(algorithm=f"{name} = algorithm;"), "prefixes.apply();")
    assert found.fits
    finder, prefixes = found.pipelines[0].tables
    assert finder.name == "Ingress.prefixes (partitions)"
    assert kinds(found)[(finder.name[8:], prefixes.name[8:])] == MATCH
    sums = used(found.pipelines[0].placement.stages)
    # 8192 entries of six bytes in two stages, whose data fill a block each; 32 a partition, each in
    # 4096 rows.
    assert (sums["tcam"], sums["sram"]) == (32, 32 * 4 + 2)
    plain = report(ALPM.format(algorithm=""), "prefixes.apply();")
    assert used(plain.pipelines[0].placement.stages)["tcam"] == 512


def test_a_register_that_is_too_large_is_named_where_it_is_declared() -> None:
    declarations = """Register<bit<32>, bit<20>>(1 << 20) large;
        RegisterAction<bit<32>, bit<20>, bit<32>>(large) add = {
            void apply(inout bit<32> v, out bit<32> r) { v = v + 1; r = v; }
        };"""
    found = report(declarations, "hdr.ip.src = add.execute((bit<20>) hdr.ip.id);")
    sram, map_ram = found.pipelines[0].overruns
    assert sram.what.endswith("needs 257 SRAM blocks, a stage has 80")
    assert map_ram.what.endswith("needs 257 map RAM blocks, a stage has 48")
    assert sram.span.line == map_ram.span.line == 8


def test_a_register_whose_result_replaces_its_index() -> None:
    """The access is no copy of a field to itself."""
    declarations = """Register<bit<32>, bit<16>>(256) sums;
        RegisterAction<bit<32>, bit<16>, bit<16>>(sums) add = {
            void apply(inout bit<32> v, out bit<16> r) { v = v + 1; r = v[15:0]; }
        };"""
    found = report(declarations, "hdr.ip.id = add.execute(hdr.ip.id);")
    assert used(found.pipelines[0].placement.stages)["meter_alus"] == 1


def test_a_chain_names_its_fields_and_the_line_beyond_the_last_stage() -> None:
    found, steps = compile_program(PROGRAMS / "chain13.p4"), list[str]()
    overrun = fit(found, CHIPS["tofino"], on_step=steps.append).pipelines[0].overruns[0]
    assert [s for s in steps if "in stages" in s][-1] == "pipeline pipe: 13 of 14 tables in stages"
    assert overrun.resource == "stages"
    assert overrun.what.startswith("14 stages are needed, Tofino 1 has 12: 14 tables depend")
    line = (PROGRAMS / "chain13.p4").read_text().splitlines()[overrun.span.line - 1]
    assert "table t12" in line


def test_conditions_that_fit() -> None:
    body = "if (hdr.words.w0 == hdr.words.w1) { hdr.ip.id = 1; }"
    body += "if (hdr.words.w2 < 4096) { hdr.ip.tos = 1; }"
    assert report("", body).fits


def test_a_statement_of_a_directly_called_action_is_a_table_of_its_own() -> None:
    steps = "action first() { md.s = hdr.words.w0 + hdr.words.w1; }"
    steps += "action second() { hdr.words.w2 = md.s + hdr.words.w3; }"
    assert report(steps, "first(); second();").fits
    in_place = "md.s = hdr.words.w0 + hdr.words.w1; hdr.words.w2 = md.s + hdr.words.w3;"
    assert not report("", in_place).fits


@pytest.mark.parametrize(("before", "fits"), [("@in_hash", True), ("", False)])
def test_a_hash_computes_what_is_in_a_block_of_it(before: str, fits: bool) -> None:
    xor = "hdr.words.w0 = hdr.words.w1 ^ hdr.words.w2 ^ (hdr.words.w3[7:0] ++ hdr.words.w3[31:8]);"
    found = report(f"action mix() {{ {before} {{ {xor} }} }}", "mix();").pipelines[0]
    assert found.fits == fits
    assert used(found.placement.stages)["hash_units"] == (2 if fits else 0)


def test_blocks_that_hashes_compute_are_actions_of_their_own() -> None:
    xors = "".join(
        f"@in_hash {{ hdr.words.w{n} = hdr.words.w{n} ^ hdr.ip.src ^ hdr.ip.dst; }}"
        for n in range(3)
    )
    found = report("", xors).pipelines[0]
    assert found.fits and len(found.tables) == 3


def test_a_condition_does_not_ask_for_what_a_block_computes() -> None:
    body = "@in_hash { md.a = (bit<16>)hdr.ip.id[0:0] ^ (bit<16>)hdr.ip.id[1:1]; }"
    body += "if (md.a == 0) { hdr.ip.tos = 1; }"
    (overrun,) = report("", body).pipelines[0].overruns
    assert "the condition asks for md.a, computed in a statement before it" in overrun.what


def test_a_condition_reads_what_a_field_is_a_copy_of() -> None:
    body = "md.a = hdr.ip.id; if (hdr.ip.isValid()) { if (md.a == 7) { hdr.ip.tos = 1; } }"
    assert report("", body).pipelines[0].stages == 1


def test_a_hash_that_another_action_uses_is_in_a_stage_before_it() -> None:
    declarations = """Register<bit<32>, bit<8>>(256) r;
        Hash<bit<8>>(HashAlgorithm_t.CRC8) hash;
        RegisterAction<bit<32>, bit<8>, bit<32>>(r) add = {
            void apply(inout bit<32> value, out bit<32> now) { value = value + 1; now = value; } };
        bit<8> index; bit<32> count;
        action access() { count = add.execute(index); }"""
    hashed = "index = hash.get({ hdr.ip.src });"
    use = "hdr.words.w0 = min(count, hdr.words.w1);"
    one = report(declarations, f"{hashed} hdr.words.w0 = add.execute(index);").pipelines[0]
    three = report(declarations, f"{hashed} access(); {use}").pipelines[0]
    assert (one.stages, three.stages) == (1, 3)


def test_a_table_is_in_no_stage_before_the_one_that_its_pragma_asks_for() -> None:
    entries = "@stage(5)" + table("one", "hdr.ip.dst", "act")
    found = report("action act() { hdr.ip.tos = 1; }" + entries, "one.apply();").pipelines[0]
    (one,) = [t for t in found.tables if t.name.endswith("one")]
    assert found.placement.first_stage_of(one) == 5


@pytest.mark.parametrize(
    "sum_",
    ["hdr.ip.length + 20 - 6", "hdr.ip.length * 8", "hdr.ip.length / 2", "hdr.ip.length % 4"],
)
def test_constants_are_added_up_and_powers_of_two_shift_and_mask(sum_: str) -> None:
    assert report("", f"hdr.ip.id = {sum_};").fits


def test_a_minimum_is_not_put_into_later_statements() -> None:
    body = "md.s = min(hdr.words.w0, hdr.words.w1); md.s = min(md.s, hdr.words.w2);"
    found = report("", f"{body} hdr.words.w3 = md.s;").pipelines[0]
    assert found.fits, found.overruns
    assert found.stages == 3


def test_a_conditional_checksum_is_a_table_after_what_decides_about_it() -> None:
    fields = "{ hdr.udp.src, hdr.udp.dst, hdr.ip.src, hdr.ip.dst }"
    updates = " ".join(
        f"if (md.a == {n}) {{ hdr.{header}.checksum = {header}_sum.update({fields}); }}"
        for n, header in enumerate(("ip", "udp"))
    )
    text = f"""#define METADATA bit<1> a;
    #define INGRESS_DEPARSER_LOCALS Checksum() ip_sum; Checksum() udp_sum;
    #define INGRESS_DEPARSER_FIRST {updates}
    #include "stack.p4"
    control Ingress(INGRESS_ARGS) {{ apply {{ md.a = hdr.udp.src[0:0]; }} }}
    #include "stack_end.p4"
    """
    path = PROGRAMS / "generated.p4"
    found = fit(compile_program(path, text=text), CHIPS["tofino"]).pipelines[0]
    kinds_ = [t.name.split()[0] for t in found.tables]
    assert kinds_ == ["md.a", "condition", "condition"]
    assert [found.placement.stage_of(t) for t in found.tables] == [0, 1, 2]


def test_a_checksum_that_depends_on_its_header_alone_takes_no_table() -> None:
    """Unless a field is added up twice, which is copied before."""
    update = "hdr.udp.checksum = udp_sum.update({{ hdr.udp.src, hdr.udp.length, {} }});"
    headers = "hdr.udp.isValid()", "hdr.udp.isValid() && hdr.ip.isValid()"
    names = []
    for condition, more in ((headers[0], "hdr.ip.src"), (headers[1], "hdr.udp.length")):
        text = f"""#define INGRESS_DEPARSER_LOCALS Checksum() udp_sum;
        #define INGRESS_DEPARSER_FIRST if ({condition}) {{ {update.format(more)} }}
        #include "stack.p4"
        control Ingress(INGRESS_ARGS) {{ apply {{ }} }}
        #include "stack_end.p4"
        """
        compiled = compile_program(PROGRAMS / "generated.p4", text=text)
        tables = fit(compiled, CHIPS["tofino"]).pipelines[0].tables
        names.append([t.name.split(" (")[0] for t in tables])
    assert names == [[], ["copies for checksum", "condition of checksum"]]


def test_a_sweep_is_one_access_without_conditions() -> None:
    declarations = """Register<bit<32>, bit<8>>(256) r;
        RegisterAction<bit<32>, bit<8>, bit<32>>(r) age = {
            void apply(inout bit<32> value) { value = value - 1; } };"""
    found = report(declarations, "age.sweep();", "tofino2")
    assert found.fits
    assert [u.instance.name for t in found.pipelines[0].tables for u in t.uses] == ["Ingress.r"]


def test_recirculation_and_resubmission_are_found() -> None:
    found = report("", "tm.ucast_egress_port = 68; hdr.ip.tos = 1;").pipelines[0]
    assert [a.kind for a in found.again] == ["recirculation"]


def test_what_no_chip_has_room_for_is_said() -> None:
    declared = table("one", "hdr.ip.dst", "set_a").replace("512", str(2**31 - 1))
    found = report(declared, "one.apply(); hdr.ip.id = md.a;").pipelines[0]
    assert [o.what[:24] for o in found.overruns] == ["96 stages are needed, To"]


def test_a_large_table_is_split_and_no_stage_is_overfull() -> None:
    found = fit(compile_program(PROGRAMS / "exact_1m.p4"), CHIPS["tofino"]).pipelines[0]
    parts = [p for s in found.placement.stages for p in s.parts if p.table.name == "Ingress.mac"]
    assert sum(p.entries for p in parts) == 1048576
    for stage in found.placement.stages:
        assert all(n <= STAGE[name].amount for name, n in stage.taken.totals().items())


def test_programs_for_another_chip_or_architecture_are_refused() -> None:
    with pytest.raises(CompileError, match="written for Tofino 1"):
        fit(compile_program(PROGRAMS / "chain4.p4"), CHIPS["tofino2"])
    v1model = (PROGRAMS / "../../../src/gradplane/p4/thc.p4").resolve()
    folders = [v1model.parent, v1model.parent / "include"]
    with pytest.raises(CompileError, match="which is not Tofino 1's"):
        fit(compile_program(v1model, folders), CHIPS["tofino"])


SHIPPED = Path(__file__).parents[2] / "p4"


@pytest.mark.parametrize(
    ("name", "defines", "chip", "stages", "fits"),
    [
        ("thc_tna.p4", {"CODES_A_LOOKUP": "2"}, "tofino2", 20, True),
        ("thc_tna.p4", {"CODES_A_LOOKUP": "2", "CODE_BITS": "1"}, "tofino2", 20, True),
        ("thc_tna.p4", {"CODES_A_LOOKUP": "2", "CODE_BITS": "2"}, "tofino2", 20, True),
        ("thc_tna.p4", {"SUM_BITS": "32"}, "tofino2", 20, True),
        ("thc_tna.p4", {"CODES_A_LOOKUP": "2", "ROLE": "leaf"}, "tofino2", 20, True),
        ("thc_tna.p4", {"CODES_A_LOOKUP": "2", "ROLE": "node"}, "tofino2", 20, True),
        ("shared_tna.p4", {"CODES_A_LOOKUP": "2"}, "tofino2", 20, True),
        ("shared_tna.p4", {"SUM_BITS": "32"}, "tofino2", 20, True),
        ("tos_compress_tna.p4", {}, "tofino2", 20, True),
    ],
)
def test_the_shipped_programs(name, defines, chip, stages, fits) -> None:
    """The numbers are in docs/tofino.md."""
    number = str(list(CHIPS).index(chip) + 1)
    compiled = compile_program(SHIPPED / name, defines={"__TARGET_TOFINO__": number, **defines})
    found = fit(compiled, CHIPS[chip], name)
    assert (found.pipelines[0].stages, found.fits) == (stages, fits)


@pytest.mark.parametrize(
    ("precision", "match", "blocks"),
    [
        ("", "exact", 4),
        ("@idletime_precision(6)", "exact", 8),
        ("@idletime_precision(1)", "exact", 1),
        ("", "ternary", 4),
    ],
)
def test_idle_timeouts_take_map_ram(precision: str, match: str, blocks: int) -> None:
    """Three bits each unless a pragma says how many: two in a row of map RAM."""
    declarations = f"""action known() {{ hdr.ip.ttl = 1; }}
        {precision} table seen {{
            key = {{ hdr.ip.src : {match}; }} actions = {{ known; NoAction; }}
            idle_timeout = true; size = 8192;
        }}"""
    found = report(declarations, "seen.apply();")
    assert used(found.pipelines[0].placement.stages)["map_ram"] == blocks


def test_a_ghost_control_shares_the_stages_and_the_registers() -> None:
    """The ghost of Tofino 2 sets a register that ingress reads: one ALU, in one stage."""
    ghost = """Register<bit<32>, bit<11>>(2048) lengths;
    control Ghost(in ghost_intrinsic_metadata_t g) {
        RegisterAction<bit<32>, bit<11>, bit<32>>(lengths) follow = {
            void apply(inout bit<32> length) { length = (bit<32>) g.qlength; } };
        apply { follow.execute(g.qid); }
    }
    Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(),
             EgressDeparser(), Ghost()) pipe;
    Switch(pipe) main;
    """
    reads = """RegisterAction<bit<32>, bit<11>, bit<32>>(lengths) read = {
        void apply(inout bit<32> held, out bit<32> found) { found = held; } };"""
    text = CONTROL.format(declarations=reads, body="hdr.ip.src = read.execute(hdr.ip.id[10:0]);")
    end = (PROGRAMS / "frame_end.p4").read_text()
    end = end[: end.index("Pipeline(")]
    register, control = ghost.split("control", 1)
    text = text.replace("control Ingress", f"{register}control Ingress")
    text = text.replace('#include "frame_end.p4"', f"{end}control{control}")
    compiled = compile_program(
        PROGRAMS / "generated.p4", defines={"__TARGET_TOFINO__": "2"}, text=text
    )
    found = fit(compiled, CHIPS["tofino2"]).pipelines[0]
    assert [t.gress for t in found.tables] == ["ingress", "ghost"]
    assert used(found.placement.stages)["meter_alus"] == 1 and found.stages == 1
    assert set(found.chains) == {"ingress", "ghost"}


def test_zero_is_set_where_the_parser_looked_ahead() -> None:
    """A field that the parser sets by a lookahead is not zero any more."""
    text = CONTROL.format(
        declarations="", body="if (hdr.ip.tos == 1) { md.a = 0; } hdr.ip.id = md.a;"
    )
    end = (PROGRAMS / "frame_end.p4").read_text()
    names = []
    for more in ("", "md.a = pkt.lookahead<bit<16>>();"):
        parsers = end.replace("pkt.extract(ig);", f"pkt.extract(ig); {more}")
        whole = text.replace('#include "frame_end.p4"', parsers)
        compiled = compile_program(PROGRAMS / "generated.p4", text=whole)
        tables = fit(compiled, CHIPS["tofino"]).pipelines[0].tables
        names.append([place.name for t in tables for place in t.writes])
    assert ["md.a" in found for found in names] == [False, True]


def test_one_pipeline_in_both_places_of_a_switch_is_reported_once() -> None:
    end = (PROGRAMS / "frame_end.p4").read_text().replace("Switch(pipe)", "Switch(pipe, pipe)")
    text = CONTROL.format(declarations="", body="hdr.ip.tos = 1;")
    text = text.replace('#include "frame_end.p4"', end)
    found = fit(compile_program(PROGRAMS / "generated.p4", text=text), CHIPS["tofino"])
    assert [p.name for p in found.pipelines] == ["pipe"]


def test_a_table_that_is_applied_in_several_branches_is_one() -> None:
    """It is behind what is before it in either branch, and before what follows in one."""
    tables = table("routes", "hdr.ip.dst", "use_a").replace("exact", "lpm")
    tables += table("first", "hdr.ip.src", "set_a") + table("last", "hdr.ip.id", "write_ports")
    body = "if (hdr.ip.tos == 1) { first.apply(); routes.apply(); } else { routes.apply();"
    found = report(tables, f"{body} last.apply(); }}").pipelines[0]
    assert [t.name[8:] for t in found.tables if t.key and t.table] == ["first", "routes", "last"]
    assert used(found.placement.stages)["tcam"] == 1
    assert found.stages == 3


@pytest.mark.parametrize(
    ("pragma", "keys", "blocks"),
    [
        ("", "hdr.ports.src : range;", 5),
        ("", "hdr.ports.src : range; hdr.ip.dst : ternary;", 10),
        ("", "hdr.ports.src : range; hdr.ip.id : range;", 10),
        ("", "hdr.ports.src : range; hdr.ports.dst : range;", 20),
        ("@entries_with_ranges(1024)", "hdr.ports.src : range;", 14),
    ],
)
def test_ranges_take_rows_and_blocks_as_the_compiler_reserves_them(
    pragma: str, keys: str, blocks: int
) -> None:
    declarations = f"""{pragma} table rules {{ key = {{ {keys} }} actions = {{ use_a; NoAction; }}
        const default_action = NoAction(); size = 1024; }}"""
    found = report(declarations, "rules.apply();").pipelines[0]
    assert used(found.placement.stages)["tcam"] == blocks


def test_the_colours_of_a_meter_are_in_map_ram() -> None:
    declarations = "Meter<bit<14>>(16384, MeterType_t.BYTES) rates;"
    body = "hdr.ip.ttl = rates.execute(hdr.ip.id[13:0]);"
    sums = used(report(declarations, body).pipelines[0].placement.stages)
    assert (sums["sram"], sums["map_ram"]) == (17, 21)


@pytest.mark.parametrize(
    ("keys", "blocks"),
    [
        ("hdr.ip.dst : lpm;", 1),
        ("hdr.eth.dst : ternary;", 2),
        ("ig.ingress_port : exact; hdr.ip.dst : lpm;", 2),
        ("hdr.ip.src : ternary; hdr.ip.dst : ternary; hdr.ip.id : ternary;", 2),
        ("hdr.ip.src : ternary; hdr.ip.dst : ternary; hdr.eth.src : ternary;", 3),
    ],
)
def test_a_key_of_more_than_five_bytes_takes_two_blocks(keys: str, blocks: int) -> None:
    declarations = f"""table rules {{ key = {{ {keys} }} actions = {{ use_a; NoAction; }}
        const default_action = NoAction(); size = 512; }}"""
    found = report(declarations, "rules.apply();").pipelines[0]
    assert used(found.placement.stages)["tcam"] == blocks


def test_an_array_takes_what_its_elements_would() -> None:
    def demand(fields: str, first: str, second: str) -> tuple[object, ...]:
        declarations = f"""{fields} action set(bit<16> n) {{ {first} = n; }}
            table one {{ key = {{ hdr.ip.dst : exact; }} actions = {{ set; }} size = 64;
                default_action = set(0); }}"""
        found = report(declarations, f"{second} = hdr.ip.id; one.apply(); hdr.ip.id = {first};")
        phv = found.pipelines[0].phv
        return len(found.pipelines[0].placement.stages), [phv.count(size) for size in (8, 16, 32)]

    assert demand("bit<16>[2] v;", "v[0]", "v[1]") == demand("bit<16> v; bit<16> w;", "v", "w")


def test_a_table_that_a_packet_passes_twice_with_what_its_action_decides_between() -> None:
    """The table must be before the statement and after it: one error, and no register is named."""
    found = report(table("t", "md.a", "set_a"), "t.apply(); md.a = md.a + 1; t.apply();")
    [said] = [overrun.what for one in found.pipelines for overrun in one.overruns]
    assert "a packet may pass Ingress.t a second time here" in said
