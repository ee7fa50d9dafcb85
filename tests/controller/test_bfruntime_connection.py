"""The controller over BFRuntime, as to a Tofino's driver, against the embedded switch's server."""

import numpy as np
import pytest
from controller_cases import (
    MEMBERS,
    TABLE,
    THC_TNA,
    Server,
    check_installed,
    pipeline_of,
    plan,
    session,
    small,
)

from gradplane.controller import (
    Bound,
    Capacity,
    Compression,
    Controller,
    ControllerError,
    Format,
    RequestError,
    Route,
    Setup,
    capacity_of,
    configure,
    events,
    read_counters,
    set_bound,
)
from gradplane.controller.compression import statistics
from gradplane.hosts.wire.aggregation import Header, Type, norm_bits, pack_indices, unpack_sums
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.program_cache import load_program
from gradplane.topologies.sim import frames
from gradplane.topologies.sim.frames import Address

ROUTE = Route("10.0.0.1", 32, 1, "00:00:00:00:00:01")
TOFINO = {"target": "tofino"}


@pytest.fixture(scope="module")
def pipeline():
    return pipeline_of(THC_TNA)


@pytest.fixture(scope="module")
def program():
    return load_program(THC_TNA)


@pytest.fixture
def driver(program):
    """Provide a switch that runs thc_tna.p4 under BFRuntime, as a driver is started with it."""
    server = Server(BfRuntimeServer)
    server.device.load(program)
    with server as running:
        yield running


def setup(*jobs, routes=(ROUTE,)):
    return Setup("10.0.0.254", "00:00:00:00:00:fe", routes, jobs)


def test_all_that_a_job_needs_is_installed(driver, pipeline):
    configure(driver.address, pipeline, setup(plan(3, workers=2, slot_base=16)), **TOFINO)
    check_installed(driver)


def test_a_changed_job_leaves_nothing_of_the_old(driver, pipeline):
    configure(driver.address, pipeline, setup(small(workers=4)), **TOFINO)

    async def install(controller):
        await controller.install_local("10.0.0.254", "00:00:00:00:00:fe")
        await controller.install_job(small(workers=2, group=40))
        return await controller.jobs()

    assert [claim.group for claim in session(driver, install, **TOFINO)] == [40]
    assert sorted(driver.entries(MEMBERS)) == [(0, 0, 1), (0, 1, 2)]
    assert sorted(driver.state.multicast) == [40]
    assert len(driver.state.multicast[40]) == 2


def test_a_run_begins_without_what_an_earlier_one_left(driver, pipeline):
    configure(driver.address, pipeline, setup(small(1, slot_base=8)), **TOFINO)
    driver.state.registers["ThcIngress.norm_max"].write(9, 77)
    driver.state.counters["ThcIngress.events"].write(16, 5, 0)
    configure(driver.address, pipeline, setup(small(0, workers=1)), **TOFINO)
    assert sorted(driver.entries(MEMBERS)) == [(0, 0, 1)]
    assert sorted(driver.state.multicast) == [1]
    assert driver.lookup_entries(1) == {}
    assert driver.state.registers["ThcIngress.norm_max"].read(9) == 0
    assert read_counters(driver.address, **TOFINO) == {}


def test_counters_by_name(driver, pipeline):
    configure(driver.address, pipeline, setup(small()), **TOFINO)
    driver.state.counters["ThcIngress.events"].write(2 * 16 + 5, 7, 0)
    driver.state.counters["ThcIngress.completions"].write(2 * 16 + 3, 2, 0)
    found = read_counters(driver.address, **TOFINO)
    assert found["ThcIngress.events"] == {37: {"packets": 7, "bytes": 0}}
    assert events(found) == {2: {"straggler notice": 7, "completed sums": 2}}


def test_only_one_controller_may_write_and_others_read(driver, pipeline):
    configure(driver.address, pipeline, setup(small()), **TOFINO)

    async def two(first):
        await first.load(pipeline)

        async def write(second):
            assert [claim.number for claim in await second.jobs()] == [0]
            await second.install_routes([ROUTE])

        async with Controller(driver.address, **TOFINO) as second:
            await write(second)

    with pytest.raises(RequestError, match="another client is bound to thc_tna: stop it first"):
        session(driver, two, **TOFINO)


def test_a_driver_with_another_program(driver, pipeline, tmp_path):
    other = tmp_path / "thc_tna.p4"
    other.write_text(THC_TNA.read_text().replace("table members", "table workers")
                     .replace("members.apply", "workers.apply"))  # fmt: skip
    folder = THC_TNA.parent
    changed = load_program(other, (folder, folder / "include"))
    driver.device.load(changed)
    with pytest.raises(ControllerError, match="which has no table ThcIngress.members"):
        configure(driver.address, pipeline, setup(small()), **TOFINO)


def test_a_refused_entry_is_named(driver, pipeline):
    async def write(controller):
        await controller.load(pipeline)
        await controller.install_routes([Route("10.0.0.1", 32, 1 << 9, "00:00:00:00:00:01")])

    with pytest.raises(RequestError, match="invalid value for bitwidth 9: 512"):
        session(driver, write, **TOFINO)


def test_a_driver_that_is_not_there():
    with pytest.raises(RequestError, match="is this its BFRuntime address"):
        read_counters("127.0.0.1:1", **TOFINO)


def test_a_driver_without_a_program(pipeline):
    with Server(BfRuntimeServer) as server, pytest.raises(RequestError):
        configure(server.address, pipeline, setup(), **TOFINO)


def test_tables_of_two_codes_give_the_same_sums():
    """As compiled for the chip, a lookup takes two codes."""
    pipeline = pipeline_of(THC_TNA, CODES_A_LOOKUP="2")
    codes = np.random.default_rng(1).integers(0, 16, (2, 1024), dtype=np.uint8)
    with Server(engine="jit") as server:
        configure(server.address, pipeline, setup(plan(workers=2)), target="tna")
        assert capacity_of(pipeline.p4info) == Capacity(256, 8, workers=64, levels=False)
        out = []
        for worker in (0, 1):
            header = Header(Type.INDICES, 0, worker, 0, 1, 8, norm_bits(1.0))
            payload = header.pack() + pack_indices(codes[worker], 8, 4)
            host = Address(f"00:00:00:00:00:{worker + 1:02x}", f"10.0.0.{worker + 1}", 20000)
            switch = Address("00:00:00:00:00:fe", "10.0.0.254", 18256)
            frame = frames.build(host, switch, payload)
            out = server.device.pipeline.switch.process(worker + 1, frame)
    assert sorted(port for port, _ in out) == [1, 2]
    expected = np.array(TABLE)[codes].sum(axis=0)
    for _, frame in out:
        assert (unpack_sums(frame[14 + 20 + 8 + 30 :], 8) == expected).all()


def test_compression_is_configured_and_counted():
    """The names that tos_compress_tna.p4 shares with tos_compress.p4 are no paths in it."""
    tos = THC_TNA.with_name("tos_compress_tna.p4")
    server = Server(BfRuntimeServer)
    server.device.load(load_program(tos))
    plan = Compression((1, 2), (Bound("10.0.0.1", 32, 10),), (Format(21000, 16),))
    setup = Setup("10.0.0.254", "00:00:00:00:00:fe", [ROUTE], [], plan)
    with server as running:
        configure(running.address, pipeline_of(tos), setup, **TOFINO)
        set_bound(running.address, "10.0.0.1", 32, 8, **TOFINO)
        for table in ("TosIngress.host_ports", "TosEgress.to_host_ports"):
            assert running.entries(table) == {(1,): (0, ()), (2,): (0, ())}
        assert running.entries("TosEgress.bounds") == {(0x0A000001,): (0, (8,))}
        assert running.entries("TosEgress.formats")[(21000,)] == (0, (16, 0))
        running.state.counters["TosEgress.compressed_sizes"].write(122, 2, 0)
        running.state.counters["TosIngress.value3.tags"].write(1, 5, 0)
        found = statistics(read_counters(running.address, **TOFINO))
    assert (found["compressed"]["packets"], found["compressed"]["bytes"]) == (2, 244)
    assert found["tags"]["8"] == 5
