"""Packets that no switch sums take one of several equal ways, which their flow decides."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import finsy
import pytest
from finsy import p4entity

from gradplane._p4runtime import p4r
from gradplane.controller import forwarding, targets
from gradplane.controller.connection import parse_p4info
from gradplane.controller.plan import Route, udp_flow
from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ.bmv2_switch import Bmv2Switch
from gradplane.experiment.p4_programs import P4Program
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text
from gradplane.topologies import Topology, build
from gradplane.topologies.sim import frames
from gradplane.topologies.sim.frames import internet_checksum

Process = Callable[[int, bytes], list[tuple[int, bytes]]]
PROGRAMS = ("p4/thc.p4", "p4/tos_compress.p4")
FABRIC = build("leaf-spine", workers=4, spines=3)
PORTS = 3, 4, 5  # of s1, to the spines


def routes(network: Topology, switch: str) -> list[Route]:
    return [
        Route(network.host[host].ip, 32, ways.ports[0], network.host[host].mac, ways)
        for host, ways in network.ways(switch).items()
    ]


def embedded(program: str) -> Process:
    """Return s1 with its routes as a function from packets to packets."""
    made = compile_program(program)
    switch = Switch(made, engine="jit")
    schema = finsy.P4Schema(parse_p4info(p4info_text(build_p4info(made)).encode()))
    for entry in forwarding.entries(routes(FABRIC, "s1"), schema):
        match = dict(entry.match)
        if "hdr.ipv4.dst_addr" in match:
            match["hdr.ipv4.dst_addr"] = (match["hdr.ipv4.dst_addr"].split("/")[0], 32)
        switch.table(entry.table_id).add(match, entry.action.name, dict(entry.action.args))
    return switch.process


@pytest.fixture
def on_bmv2() -> Iterator[Callable[[str], Process]]:
    """Provide the same on BMv2."""
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    with Bmv2Switch(Bmv2("bmv2")) as switch:

        def started(program: str) -> Process:
            pipeline = targets.get("bmv2").pipeline(P4Program(Path(program).absolute(), {}))
            switch.load(*pipeline)
            schema = finsy.P4Schema(pipeline[0])
            for entry in forwarding.entries(routes(FABRIC, "s1"), schema):
                (entity,) = p4entity.encode_entities([entry], schema)
                assert switch.write(p4r.Update.INSERT, entity) == ("OK", "")
            return switch.process

        yield started


def udp(port: int, to: str = "h3") -> bytes:
    """Return a packet from h1, between equal UDP ports."""
    source, host = FABRIC.host["h1"], FABRIC.host[to]
    ends = frames.Address(source.mac, source.ip, port), frames.Address(host.mac, host.ip, port)
    return frames.build(*ends, bytes(20))


def changed(frame: bytes, at: int, value: bytes) -> bytes:
    """Return a frame with other bytes at a place of its IP header, whose checksum is right."""
    head = bytearray(frame[14:34])
    head[at : at + len(value)] = value
    head[10:12] = bytes(2)
    head[10:12] = internet_checksum(bytes(head)).to_bytes(2, "big")
    return frame[:14] + bytes(head) + frame[34:]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_flow_has_one_way_and_flows_have_all(program: str) -> None:
    process, ways = embedded(program), FABRIC.ways("s1")["h3"]
    assert ways.ports == PORTS
    found = Counter[int]()
    for port in range(20_000, 20_300):
        ((left, _),) = process(1, udp(port))
        flow = udp_flow(FABRIC.host["h1"].ip, FABRIC.host["h3"].ip, port, port)
        assert left == ways.port(flow)
        found[left] += 1
    assert min(found[port] for port in PORTS) > 80
    assert [left for left, _ in process(1, udp(9, "h2"))] == [2]


@pytest.mark.parametrize("program", PROGRAMS)
def test_fragments_and_other_protocols_go_by_addresses_alone(program: str) -> None:
    process = embedded(program)
    whole = [udp(port) for port in range(5000, 5020)]
    for place, value in ((6, b"\x20\x00"), (6, b"\x00\x10"), (9, b"\x06")):  # fragments, TCP
        left = {process(1, changed(frame, place, value))[0][0] for frame in whole}
        assert len(left) == 1, (place, value)


@pytest.mark.parametrize("program", PROGRAMS)
def test_bmv2_chooses_as_we_do(program: str, on_bmv2: Callable[[str], Process]) -> None:
    ours, theirs = embedded(program), on_bmv2(program)
    for port in range(20_000, 20_020):
        assert theirs(1, udp(port)) == ours(1, udp(port))


def test_switches_behind_one_another_decide_by_themselves() -> None:
    """In a fat-tree the flows of one aggregation switch have all of its cores."""
    tree = build("fat-tree", workers=16)
    found = Counter[tuple[str, str]]()
    for port in range(400):
        nodes = [node for node, _ in tree.path("h1", "h16", port)]
        found[nodes[2], nodes[3]] += 1
    assert len(found) == 4
    assert min(found.values()) > 60


def test_a_program_without_the_choice_has_one_port_for_each_host() -> None:
    made = compile_program("p4/thc_tna.p4")
    schema = finsy.P4Schema(parse_p4info(p4info_text(build_p4info(made)).encode()))
    entries = list(forwarding.entries(routes(FABRIC, "s1"), schema))
    assert {entry.action.name for entry in entries} == {"ThcIngress.forward"}
