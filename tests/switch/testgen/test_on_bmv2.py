"""Tests made from programs, on the real simple_switch_grpc: those that need no table content."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("z3")

from gradplane.controller import targets  # noqa: E402
from gradplane.controller.targets.bmv2 import Bmv2  # noqa: E402
from gradplane.differ.bmv2_switch import Bmv2Switch  # noqa: E402
from gradplane.experiment import p4_programs  # noqa: E402
from gradplane.switch.stf.tester import Expected  # noqa: E402
from tests.switch.testgen.test_made_tests import CASES, made  # noqa: E402
from tests.switch.v1programs import source  # noqa: E402


@pytest.fixture(scope="module")
def bmv2() -> Iterator[Bmv2Switch]:
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    target = targets.get("bmv2")
    assert isinstance(target, Bmv2)
    with Bmv2Switch(target) as switch:
        yield switch


@pytest.mark.parametrize("case", ["branches", "registers", "checksum"])
def test_bmv2_sends_what_the_tests_expect(case: str, bmv2: Bmv2Switch, tmp_path: Path) -> None:
    file, result = made(tmp_path, source(**CASES[case]))
    found = p4_programs.compiled(file)
    p4info = p4_programs.p4info(found.program, "bmv2").encode()
    config = p4_programs.compiled_for("bmv2", found).encode()
    run = [test for test in result.tests if not test.setup]
    assert run
    for test in run:
        bmv2.load(p4info, config)
        for given, expected in zip(test.packets, test.expected, strict=True):
            left = bmv2.process(given.port, given.data)
            assert [port for port, _ in left] == [port for port, _ in expected], test
            for (_, data), (_, digits) in zip(left, expected, strict=True):
                assert not Expected(0, digits, True).difference(data), test
