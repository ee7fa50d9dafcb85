"""Scripts of operations: their text, what is documented, and both switches where
simple_switch_grpc is on PATH."""

import os
import shutil
import signal
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from v1programs import source

from gradplane.controller import targets
from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ import difference
from gradplane.differ.bmv2_switch import Bmv2Switch, DiffError
from gradplane.differ.operations import Answer, Operation, Ours, compare, parse, units
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.p4info import build_p4info

PROGRAMS = Path(__file__).parents[1] / "switch" / "stf" / "exercises"
SELECTORS = PROGRAMS.parents[1] / "jit" / "programs" / "tables.p4"
real = pytest.mark.skipif(
    shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH"
)
PROGRAM = compile_program(PROGRAMS / "router.p4")
INFO = build_p4info(PROGRAM)
SCRIPT = """
# a route, used once
insert table_entry { table_id: $routes match { field_id: 1 lpm { value: "\\n" prefix_len: 32 } } }
packet 1 00ff  # short
packet_out payload: "x"
"""


class Script:
    """Stands for BMv2: gives the answers of a list."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.seen = list(answers), list[str]()

    def run(self, operation: Operation, expected: Answer = ()) -> Answer:
        self.seen.append(str(operation))
        return self.answers.pop(0)

    def batch(self) -> AbstractContextManager[None]:
        return nullcontext()


def ours() -> Ours:
    return Ours(difference._device(PROGRAM, 510), units(INFO))


def test_a_script_is_read_as_it_is_written() -> None:
    read = parse(SCRIPT, INFO, "x.ops")
    assert [operation.kind for operation in read] == ["insert", "packet", "packet_out"]
    [routes] = [t.preamble.id for t in INFO.tables if t.preamble.alias == "routes"]
    assert read[0].message.table_entry.table_id == routes
    assert read[1].message == (1, b"\0\xff")
    assert parse("\n".join(map(str, read)), INFO, "y.ops") == read


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        ("insert", ["insert"], ["insert", "delete"]),
        ("modify", ["modify", "delete"], ["modify", "delete"]),
    ],
)
def test_after_a_write_that_one_refuses_both_have_the_same(
    kind: str, left: list[str], right: list[str]
) -> None:
    """A one-shot beyond the profile's size, which BMv2 takes."""
    entry = (
        "table_entry { table_id: $routes match { field_id: 1 exact { value: 'x' } }"
        " action { action_profile_action_set { } } }"
    )
    ours, theirs = Script(("RESOURCE_EXHAUSTED",), ("OK",)), Script(("OK",), ("OK",))
    found = compare(parse(f"{kind} {entry}", INFO, "x.ops"), ours, theirs)  # type: ignore[arg-type]
    assert found.difference == "" and sum(found.documented.values()) == 1
    assert [seen.split()[0] for seen in ours.seen] == left
    assert [seen.split()[0] for seen in theirs.seen] == right


def test_a_group_that_is_refused_is_deleted_where_it_is_left() -> None:
    """BMv2 has it afterwards; not one that was there before."""
    group = "insert action_profile_group { action_profile_id: 1 group_id: 2 }"
    codes = ["INVALID_ARGUMENT", "ALREADY_EXISTS"]
    ours = Script(*((code,) for code in codes))
    theirs = Script(("INVALID_ARGUMENT",), ("OK",), ("ALREADY_EXISTS",))
    found = compare(parse(f"{group}\n{group}", INFO, "x.ops"), ours, theirs)  # type: ignore[arg-type]
    assert found.text() == "equal: 2 operations\n1 differ as documented: a group that is refused"
    assert [seen.split()[0] for seen in theirs.seen] == ["insert", "delete", "insert"]


def test_a_member_that_is_read_as_often_as_its_weight() -> None:
    read = parse("read action_profile_member { }", INFO, "x.ops")
    ours, theirs = Script(("OK", "one", "two")), Script(("OK", "one", "one", "two"))
    found = compare(read, ours, theirs)  # type: ignore[arg-type]
    assert found.text().endswith(
        "differ as documented: a read of a member that has a weight in a group"
    )


@pytest.mark.parametrize("value", [b"#", b"$routes", b'"#$', b"'\\#", b"\\"])
def test_a_saved_script_is_read_whatever_its_values_are(value: bytes) -> None:
    """`#` and `$` in a quoted value are bytes of it."""
    written = Operation("packet_out", p4r.PacketOut(payload=value))
    assert parse(f"{written} # $other", INFO, "x.ops") == [written]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("put x", 'x.ops:2: "put" is no operation; expected one of insert, modify, delete, read,'
                  " packet_out, packet"),
        ("read table_entry { table_id: $other }", "x.ops:2: P4Info has no other; there are: "),
        ("read table_entry { tab: 1 }", "x.ops:2: 1:15 : "),
        ("packet 1 0x", "x.ops:2: non-hexadecimal number"),
    ],
)  # fmt: skip
def test_lines_that_are_no_operation(line: str, message: str) -> None:
    with pytest.raises(DiffError) as error:
        parse(f"\n{line}", INFO, "x.ops")
    assert str(error.value).startswith(message)


def test_the_first_difference_that_is_not_documented_ends_the_comparison() -> None:
    missing = Operation("delete", parse(SCRIPT, INFO, "x")[0].message)
    theirs = Script(("NOT_FOUND",), ("OK",))
    found = compare([missing, missing, missing], ours(), theirs)  # type: ignore[arg-type]
    assert (found.operations, found.documented) == (1, Counter())
    assert found.text().startswith("first difference: delete table_entry {")
    assert found.text().endswith(
        "embedded:\n  NOT_FOUND\nbmv2:\n  OK\ndifferent, after: 1 operations"
    )


def test_what_is_documented_is_counted_and_taken_back() -> None:
    wide = p4r.Entity()
    wide.CopyFrom(parse(SCRIPT, INFO, "x")[0].message)
    wide.table_entry.match[0].lpm.value = b"\1" * 5
    theirs = Script(("OK",), ("OK",))
    found = compare([Operation("insert", wide)], ours(), theirs)  # type: ignore[arg-type]
    assert found.text() == (
        "equal: 1 operations\n1 differ as documented: a value that is too wide, or of no bytes"
    )
    assert [line.split()[0] for line in theirs.seen] == ["insert", "delete"]


GROUP_0 = (
    "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 9"
    ' replicas { port: "\\000" } } }'
)
ONE = "table_entry { table_id: $routes match { field_id: 1 %s } }"
RANGE = 'range { low: "\\377" high: "\\001" }'


@pytest.mark.parametrize(
    ("line", "ours", "theirs", "row"),
    [
        (f"insert {GROUP_0}", "OK", "INVALID_ARGUMENT", "port 0 of a replica"),
        (f"insert {GROUP_0}", "OUT_OF_RANGE", "OK", "an instance of 70000"),
        (f"read {GROUP_0}", "OK", "NOT_FOUND", "a read of a multicast group or clone session"),
        (f"insert {GROUP_0}", "OK", "NOT_FOUND", ""),
        (f"modify {ONE % 'exact {}'}", "OK", "INVALID_ARGUMENT", "MODIFY without an action"),
        (f"insert {ONE % 'exact {}'}", "OK", "INVALID_ARGUMENT", ""),
        (f"insert {ONE % RANGE}", "OK", "INVALID_ARGUMENT", "a range of a signed key"),
        (f"insert {ONE % RANGE}", "INVALID_ARGUMENT", "OK", "a range of all values"),
        (f"insert {ONE % 'exact {}'}", "INVALID_ARGUMENT", "UNKNOWN", "a negative priority"),
        (f"insert {ONE % 'exact {}'}", "OK", "UNKNOWN", ""),
    ],
)
def test_codes_have_the_row_of_what_was_asked(line: str, ours: str, theirs: str, row: str) -> None:
    there = Script((theirs,), ("OK",))
    found = compare(parse(line, INFO, "x"), Script((ours,), ("OK",)), there)  # type: ignore[arg-type]
    assert [known.startswith(row) for known in found.documented] == [True] * bool(row)
    assert bool(found.difference) == (not row)


def test_every_row_is_in_the_document() -> None:
    from gradplane.differ import operations

    text = (Path(__file__).parents[2] / "docs" / "coming-from-bmv2.md").read_text()
    rows = {row for *_, row in operations.DOCUMENTED}
    assert [r for row in rows for r in row.split("; ") if f"{r.split(', ')[0]}" not in text] == []


@real
@pytest.mark.parametrize(
    ("program", "seed"),
    [
        (PROGRAMS / "cpu_port.p4", 3),
        (PROGRAMS / "learning.p4", 3),
        (SELECTORS, 2),  # with groups
        (SELECTORS, 3),  # with one-shots
    ],
    ids=lambda value: getattr(value, "stem", value),
)
def test_both_switches_do_the_same(program: Path, seed: int, tmp_path: Path) -> None:
    """Packet-ins and packet-outs; digests; selectors, one-shots and every match kind."""
    saved, copy = tmp_path / "x.ops", tmp_path / "x.p4"
    # A selector's width is the hash's: BMv2's JSON has none.
    copy.write_text(
        program.read_text().replace("64, 10)", "64, 16)").replace("../", f"{program.parents[1]}/")
    )
    result = difference.diff_operations(copy, count=60, seed=seed, save=saved)
    assert not result.difference, result.text()
    assert len(saved.read_text().splitlines()) == result.operations


@real
def test_a_file_of_operations(tmp_path: Path) -> None:
    (file := tmp_path / "x.ops").write_text(SCRIPT)
    result = difference.diff_operations(PROGRAMS / "router.p4", file)
    assert result.text() == "equal: 3 operations"


def test_units_are_those_of_the_program() -> None:
    assert set(units(INFO).values()) <= set(p4i.CounterSpec.Unit.values())


def test_a_crash_of_bmv2_is_the_first_difference() -> None:
    class Crashed(Script):
        def run(self, operation: Operation, expected: Answer = ()) -> Answer:
            raise DiffError("bmv2 has crashed: simple_switch_grpc ended with signal 11")

    ours = Ours(difference._device(PROGRAM), units(INFO))
    found = compare(parse("packet 1 00ff", INFO, "x"), ours, Crashed())  # type: ignore[arg-type]
    assert found.difference.splitlines()[::3] == [
        "first difference: packet 1 00ff",
        "bmv2 has crashed: simple_switch_grpc ended with signal 11",
    ]


@real
def test_a_process_that_ends_is_told_from_a_refusal() -> None:
    target = targets.get("bmv2")
    assert isinstance(target, Bmv2)
    with Bmv2Switch(target) as switch:
        os.kill(switch.pid, signal.SIGSEGV)
        with pytest.raises(DiffError) as error:
            switch.write(p4r.Update.INSERT, p4r.Entity(table_entry=p4r.TableEntry(table_id=1)))
    assert str(error.value) == "bmv2 has crashed: simple_switch_grpc ended with signal 11"


SPECIAL = source(
    types="""@p4runtime_translation("p", 32) type bit<9> wide_t;
        @p4runtime_translation("q", 9) type bit<9> same_t;
        @p4runtime_translation("r", string) type bit<9> name_t;""",
    metadata="wide_t wide; same_t same; name_t name;",
    ingress_locals="direct_counter(CounterType.packets) tally;"
    " action set(bit<8> v) { h.a.y = v; } action to(name_t p) { s.egress_spec = (bit<9>) p; }"
    " table given { key = { h.a.x : exact; } actions = { set; NoAction; } counters = tally;"
    " entries = { 1 : set(1); } }"
    + "".join(
        f" table {name} {{ key = {{ {key} : exact; }} actions = {{ set; to; NoAction; }} }}"
        for name, key in {
            "wide": "m.wide", "same": "m.same", "named": "m.name", "plain": "h.a.x"
        }.items()
    ),
    ingress="s.egress_spec = 1; given.apply(); wide.apply(); same.apply(); named.apply();"
    " plain.apply();",
)  # fmt: skip
WRITES = """
insert table_entry { table_id: $given KEY2 SET }
modify table_entry { table_id: $given KEY1 SET }
delete table_entry { table_id: $given KEY1 }
insert table_entry { table_id: $given KEY1 SET }
modify direct_counter_entry { table_entry { table_id: $given KEY1 } data { packet_count: 5 } }
insert table_entry { table_id: $wide KEY1 SET }
insert table_entry { table_id: $named KEY1 SET }
insert table_entry { table_id: $plain KEY1 action { action { action_id: $to PARAM } } }
"""
SAME = """
insert table_entry { table_id: $same KEY1 SET }
modify table_entry { table_id: $given is_default_action: true SET }
packet 2 00010203
packet 2 00020203
read direct_counter_entry { table_entry { table_id: $given } }
read table_entry { table_id: $wide }
read table_entry { table_id: $plain }
"""


def special_script(text: str) -> str:
    param = 'params { param_id: 1 value: "\\007" }'
    for mark, value in {
        "KEY1": 'match { field_id: 1 exact { value: "\\001" } }',
        "KEY2": 'match { field_id: 1 exact { value: "\\002" } }',
        "SET": f"action {{ action {{ action_id: $set {param} }} }}",
        "PARAM": param,
    }.items():
        text = text.replace(mark, value)
    return text


@real
def test_what_bmv2_does_not_write_is_documented_and_taken_back(tmp_path: Path) -> None:
    """Entries of the source, and translated keys and names."""
    (program := tmp_path / "x.p4").write_text(SPECIAL)
    (file := tmp_path / "x.ops").write_text(special_script(WRITES + SAME))
    result = difference.diff_operations(program, file)
    assert result.text() == (
        "equal: 15 operations\n"
        "5 differ as documented: entries that the source gives to a table without `const`\n"
        "3 differ as documented: a key of a type with `@p4runtime_translation`"
    )


@real
def test_random_operations_write_there_too(tmp_path: Path) -> None:
    (program := tmp_path / "x.p4").write_text(SPECIAL)
    result = difference.diff_operations(program, count=60, seed=1)
    assert not result.difference, result.text()
    assert len(result.documented) >= 2
