"""Tests made from programs, on the real simple_switch_grpc, their entries over P4Runtime."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bmv2_runner
import pytest
from finsy.proto import p4r
from v1programs import source

pytest.importorskip("z3")

from made_cases import CASES, made  # noqa: E402

from gradplane.controller import targets  # noqa: E402
from gradplane.controller.targets.bmv2 import Bmv2  # noqa: E402
from gradplane.differ import difference  # noqa: E402
from gradplane.differ.bmv2_switch import Bmv2Switch  # noqa: E402
from gradplane.experiment import p4_programs  # noqa: E402
from gradplane.switch.compiler import compile_source  # noqa: E402
from gradplane.switch.ir import nodes as ir  # noqa: E402
from gradplane.switch.p4runtime.device import Device  # noqa: E402
from gradplane.switch.p4runtime.read import read  # noqa: E402
from gradplane.switch.stf import tester as stf  # noqa: E402
from gradplane.switch.stf.stf_grammar import parse  # noqa: E402
from gradplane.switch.testgen.explorer import Limits  # noqa: E402
from gradplane.switch.testgen.generate import Generated, generate, write  # noqa: E402


@pytest.fixture(scope="module")
def bmv2() -> Iterator[Bmv2Switch]:
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    target = targets.get("bmv2")
    assert isinstance(target, Bmv2)
    with Bmv2Switch(target) as switch:
        yield switch


# Not those with entries in the source, which BMv2 gives no access to, with value sets, and with
# times, digests and random numbers, which are not repeatable.
CASES_HERE = [
    "branches",
    "registers",
    "checksum",
    "sums",
    "states",
    "lookups",
    "defaults",
    "copies",
]


@pytest.mark.parametrize("case", CASES_HERE)
def test_bmv2_sends_what_the_tests_expect(case: str, bmv2: Bmv2Switch, tmp_path: Path) -> None:
    file, result = made(tmp_path, source(**CASES[case]))
    assert result.tests
    sends_what_is_expected(file, result, bmv2)


@pytest.mark.parametrize("arch", ["v1model", "psa"])
def test_files_of_tests_pass_over_the_command_line(arch: str, tmp_path: Path) -> None:
    """Registers too, which BMv2 does not write over P4Runtime."""
    if not bmv2_runner.available(arch):
        pytest.skip(f"{bmv2_runner.SWITCHES[arch]} and its command line are not on PATH")
    drops = Path(__file__).parent.parent / "stf" / "psa" / "drops.p4"
    program = drops
    if arch == "v1model":
        (program := tmp_path / "contents.p4").write_text(source(**CASES["contents"]))
    limits = Limits(seconds=600, runs=1500)
    result = generate(compile_source(program, (), None).program, limits)
    assert any(test.made.cells for test in result.tests) == (arch == "v1model")
    for file in write(result, program, tmp_path / "made", ["stf"])[-2:]:
        (folder := tmp_path / file.stem).mkdir()
        assert bmv2_runner.run(program, folder, file) == [], file


def sends_what_is_expected(file: Path, result: Generated, bmv2: Bmv2Switch) -> None:
    found = p4_programs.compiled(file)
    p4info = p4_programs.p4info_message(found.program, "bmv2")
    config = p4_programs.compiled_for("bmv2", found).encode()
    for test in result.tests:
        bmv2.load(p4info, config)
        updates = list(set_up(found.program, test.setup))
        for kind, entity in updates:
            assert bmv2.write(kind, entity) == ("OK", ""), (test, entity)
        for given, expected in zip(test.packets, test.expected, strict=True):
            left = sorted(bmv2.process(given.port, given.data))
            wanted = sorted(expected)
            assert [port for port, _ in left] == [port for port, _ in wanted], test
            for (_, data), (_, digits) in zip(left, wanted, strict=True):
                assert not stf.Expected(0, digits, True).difference(data), test
        forget_groups(updates, bmv2)


def forget_groups(updates: list[tuple[int, Any]], bmv2: Bmv2Switch) -> None:
    """Delete multicast groups and clone sessions, which outlive their program there."""
    for _, entity in updates:
        if entity.HasField("packet_replication_engine_entry"):
            assert bmv2.write(p4r.Update.DELETE, entity) == ("OK", "")


def set_up(program: ir.Program, setup: list[str]) -> Iterator[tuple[int, Any]]:
    """Yield the updates that give a switch the state of a test: what ours has after its commands
    and has not without."""
    device, fresh = difference._device(program), difference._device(program)
    setting = stf.Tester(difference._switch(device), stf.Clock(), "test")
    for statement in parse("\n".join(setup), "test"):
        setting.run(statement)
    assert not setting.refused
    before = {entity.SerializeToString(deterministic=True) for entity in entities(fresh)}
    for entity in entities(device):
        if entity.SerializeToString(deterministic=True) not in before:
            default = entity.table_entry.is_default_action
            yield p4r.Update.MODIFY if default else p4r.Update.INSERT, entity


def entities(device: Device) -> list[Any]:
    query = p4r.Entity()
    query.table_entry.is_default_action = True
    defaults = [entity for answer in read(device.target, [query]) for entity in answer.entities]
    return [*difference.transferable(device), *defaults]


def test_there_replicas_outlive_a_program(bmv2: Bmv2Switch, tmp_path: Path) -> None:
    """A group that is made again after another push has the replicas of before, too."""
    (file := tmp_path / "group.p4").write_text(source(ingress="s.mcast_grp = 5;"))
    found = p4_programs.compiled(file)
    p4info = p4_programs.p4info_message(found.program, "bmv2")
    config = p4_programs.compiled_for("bmv2", found).encode()
    entity = p4r.Entity()
    group = entity.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = 5
    group.replicas.add(instance=1, port=b"\x03")
    for copies in (1, 2):
        bmv2.load(p4info, config)
        assert bmv2.write(p4r.Update.INSERT, entity) == ("OK", "")
        assert [port for port, _ in bmv2.process(1, bytes(4))] == [3] * copies
    assert bmv2.write(p4r.Update.DELETE, entity) == ("OK", "")
