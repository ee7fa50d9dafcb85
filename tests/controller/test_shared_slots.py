"""The controller and programs whose jobs share slots: over P4Runtime, and BFRuntime to a driver."""

import pytest
from controller_cases import MEMBERS, THC, Server, pipeline_of, small

from gradplane.controller import Setup, configure, plan
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.program_cache import load_program

SHARED, SHARED_TNA = (THC.with_name(name) for name in ("shared.p4", "shared_tna.p4"))
ABOVE = plan.Server(9, "00:00:00:00:00:09", "10.0.0.9", 20000, 6)


def setup(*numbers: int) -> Setup:
    jobs = [small(number, workers=2, server=ABOVE) for number in numbers]
    return Setup("10.0.0.254", "00:00:00:00:00:fe", (), jobs)


@pytest.mark.parametrize(("path", "tag"), [(SHARED, 2 << 56), (SHARED_TNA, 5 << 32 | 2 << 24)])
def test_a_job_that_starts_anew_gets_an_epoch_that_no_slot_has(path, tag):
    with Server() as server:
        pipeline = pipeline_of(path)

        def begin(*numbers):
            return [
                p.epoch for p in configure(server.address, pipeline, setup(*numbers), anew=True)
            ]

        assert begin(1, 2) == [1, 1]
        server.state.registers["ThcIngress.cell_tag"].write(9, tag)
        assert begin(3) == [16]


def test_a_driver_gets_the_way_of_evictions_once():
    server = Server(BfRuntimeServer)
    server.device.load(load_program(SHARED_TNA))
    with server as driver:
        for _ in range(2):
            configure(driver.address, pipeline_of(SHARED_TNA), setup(1, 2), target="tofino")
        groups = driver.state.multicast
        assert sorted(groups) == [2, 3, 0xFFFF]
        assert [(replica.port, replica.instance) for replica in groups[0xFFFF]] == [(6, 1)]
        assert len(driver.entries(MEMBERS)) == 4
