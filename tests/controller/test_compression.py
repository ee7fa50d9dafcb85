"""The configuration of compression on an edge switch, and its counters, with p4/tos_compress.p4 and
p4/tos_compress_tna.p4."""

import re

import pytest
from controller_cases import THC, pipeline_of, session

from gradplane.controller import (
    Bound,
    Compression,
    ControllerError,
    Format,
    PlanError,
    Route,
    Setup,
    configure,
    read_counters,
    set_bound,
)
from gradplane.controller.compression import REASONS, statistics

TOS = THC.parent / "tos_compress.p4"
TOS_TNA = TOS.with_name("tos_compress_tna.p4")
H1, H2 = 0x0A000001, 0x0A000002
ROUTE = Route("10.0.0.1", 32, 1, "00:00:00:00:00:01")
PLAN = Compression(
    (1, 2),
    (Bound("10.0.0.1", 32, 10), Bound("10.0.0.0", 24, 6)),
    (Format(21000, 16), Format(9000, 0, little_endian=True)),
)


@pytest.fixture(scope="module")
def tos():
    return pipeline_of(TOS)


@pytest.fixture(scope="module", params=[TOS, TOS_TNA], ids=lambda path: path.stem)
def either(request):
    """Provide both programs, which have the same tables."""
    return pipeline_of(request.param)


def setup(plan=PLAN):
    return Setup("10.0.0.254", "00:00:00:00:00:fe", [ROUTE], [], plan)


def test_an_edge_switch_gets_everything(server, either):
    configure(server.address, either, setup())
    assert server.entries("TosIngress.routes") == {(H1,): (0, (1, 1))}
    for table in ("TosIngress.host_ports", "TosEgress.to_host_ports"):
        assert server.entries(table) == {(1,): (0, ()), (2,): (0, ())}
    assert server.entries("TosEgress.bounds") == {(H1,): (0, (10,)), (0x0A000000,): (0, (6,))}
    formats = server.entries("TosEgress.formats")
    assert {key: formats[key] for key in ((21000,), (9000,))} == {
        (21000,): (0, (16, 0)),
        (9000,): (0, (0, 1)),
    }
    assert (18257,) not in formats  # the program knows that port by itself


def test_a_core_switch_only_forwards(server, either):
    configure(server.address, either, setup(Compression()))
    assert server.entries("TosIngress.routes") == {(H1,): (0, (1, 1))}
    assert server.entries("TosIngress.host_ports") == {}


def test_a_second_plan_leaves_nothing_of_the_first(server, either):
    configure(server.address, either, setup())
    configure(server.address, either, setup(Compression((3,), (Bound("10.0.0.2", 32, 8),))))
    assert server.entries("TosIngress.host_ports") == {(3,): (0, ())}
    assert server.entries("TosEgress.bounds") == {(H2,): (0, (8,))}


def test_bounds_change_while_it_runs(server, either):
    configure(server.address, either, setup())
    state = server.state
    set_bound(server.address, "10.0.0.1", 32, 8)
    set_bound(server.address, "10.0.0.2", 32, 6)
    set_bound(server.address, "10.0.0.0", 24, None)
    assert server.entries("TosEgress.bounds") == {(H1,): (0, (8,)), (H2,): (0, (6,))}
    assert server.state is state
    with pytest.raises(PlanError) as error:
        set_bound(server.address, "10.0.0.1", 32, 9)
    assert str(error.value) == ("bound 9 for 10.0.0.1/32: an error bound is 2^-k with k = 6, 8, 10")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            lambda: Compression((), (Bound("10.0.0.1", 32, 6), Bound("10.0.0.1", 32, 8))),
            "10.0.0.1/32 has the bounds 2^-6 and 2^-8: give each destination one",
        ),
        (
            lambda: Compression((), (), (Format(9, 16), Format(9, 0))),
            "UDP port 9 has two formats: give it one",
        ),
        (
            lambda: Format(9, 12),
            "UDP port 9: a header of 12 bytes; a message has 0 or 16 bytes before its values",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(plan, message):
    with pytest.raises(PlanError) as error:
        plan()
    assert str(error.value) == message


def test_a_program_that_compresses_nothing(server, pipeline):
    with pytest.raises(ControllerError) as error:
        configure(server.address, pipeline, setup())
    assert str(error.value) == (
        "the program on the switch has no table TosEgress.bounds, so it cannot compress:"
        " load tos_compress.p4"
    )


def test_a_program_that_aggregates_nothing(server, tos):
    from controller_cases import plan

    with pytest.raises(ControllerError) as error:
        configure(server.address, tos, Setup("10.0.0.254", "00:00:00:00:00:fe", [], [plan()]))
    assert str(error.value).startswith("the program on the switch is not p4/thc.p4")


def test_a_program_without_routes(server, tmp_path):
    from controller_cases import OTHER

    program = tmp_path / "other.p4"
    program.write_text(OTHER)

    async def install(controller):
        await controller.load(pipeline_of(program))
        await controller.install_routes([ROUTE])

    with pytest.raises(ControllerError) as error:
        session(server, install)
    assert str(error.value) == (
        'the program on the switch has no table "routes" (key hdr.ipv4.dst_addr: lpm, action'
        " forward(mac, port)) to install routes in"
    )


def test_counters_are_named(server, tos):
    configure(server.address, tos, setup())
    counters = server.state.counters
    counters["TosEgress.compressed"].write(0, 2, 2 * (58 + 64))
    counters["TosEgress.decompressed"].write(0, 3, 300)
    counters["TosEgress.passed"].write(9, 5, 500)
    counters["TosEgress.malformed"].write(0, 1, 60)
    for tag, count in enumerate((20, 8, 3, 1, 4)):
        counters["TosEgress.compress.tags"].write(tag, count, 0)
    found = statistics(read_counters(server.address))
    packed = 4 * 2 + 8 + 3 * 2 + 4
    assert found == {
        "compressed": {"packets": 2, "bytes": 244, "bytes_after": 244 - 128 + packed + 2 * 4},
        "decompressed": {"packets": 3, "bytes": 300},
        "passed": {"no bound": 5},
        "malformed": 1,
        "tags": {"0": 20, "8": 8, "16": 3, "32": 1},
        "ratio": 128 / packed,
    }


def test_counters_of_frame_sizes_and_of_single_values(server):
    """The program for Tofino counts frames by size, and the classes at each of eight values."""
    configure(server.address, pipeline_of(TOS_TNA), setup())
    counters = server.state.counters
    counters["TosEgress.compressed_sizes"].write(122, 2, 0)
    counters["TosEgress.decompressed_sizes"].write(80, 1, 0)
    counters["TosEgress.decompressed_sizes"].write(110, 2, 0)
    counters["TosIngress.malformed"].write(0, 1, 0)
    counters["TosIngress.tags"].write(4, 4, 0)
    counters["TosIngress.overtaken"].write(0, 3, 0)
    for value in range(8):
        for tag in range(4):
            counters[f"TosIngress.value{value}.tags"].write(tag, tag + value, 0)
    found = statistics(read_counters(server.address))
    assert (found["compressed"]["packets"], found["compressed"]["bytes"]) == (2, 244)
    assert found["decompressed"] == {"packets": 3, "bytes": 300}
    assert (found["malformed"], found["overtaken"]) == (1, 3)
    assert found["tags"] == {"0": 28, "8": 36, "16": 44, "32": 52}


def test_a_switch_that_compressed_nothing_has_no_ratio():
    assert statistics({})["ratio"] is None


def test_the_reasons_are_the_programs():
    """The constants, in the order that both programs include."""
    text = TOS.with_name("include").joinpath("marked_packets.p4").read_text()
    constants = re.findall(r"const reason_t \w+ = (\d+);", text)
    assert [int(number) for number in constants] == list(range(len(REASONS)))
