"""Queues beside simple_switch's (behavioral-model 1.15.5): the row "queues" of
docs/coming-from-bmv2.md, and the turns of two priorities."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import bmv2_runner
import pytest
from packet_files import PacketFiles
from v1programs import packet, source

from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.compiler import Compiled, compile_source
from gradplane.switch.runtime.egress_queues import EgressQueues
from gradplane.switch.runtime.links import Links

RATE = 2  # packets a second: a burst takes less than the half second between two
BY_PRIORITY = compile_source(
    "queues.p4", text=source(ingress="s.egress_spec = 1; s.priority = (bit<3>) h.a.kind;")
)
SLOW_EGRESS = compile_source(
    "slow.p4",
    text=source(ingress="s.mcast_grp = 1;", egress=500 * "h.a.z = h.a.z + h.a.x;"),
)
COPIES = 30
REPLICAS = [
    "mc_mgrp_create 1",
    *(f"mc_node_create {n} 1" for n in range(COPIES)),
    *(f"mc_node_associate 1 {n}" for n in range(COPIES)),
]
Collect = Callable[[int], list[bytes]]


@contextmanager
def theirs(
    folder: Path, program: Compiled, commands: Sequence[str], packets: Sequence[bytes]
) -> Iterator[tuple[Callable[[], None], Collect]]:
    """Provide what lets the next packet into a simple_switch of 8 priorities, and what returns the
    next so many packets that leave, or all, for 0, that do so within four times the rate's."""
    if not bmv2_runner.available():
        pytest.skip("simple_switch and its command line are not on PATH")
    options = bmv2_runner._help("simple_switch")
    if "--priority-queues" not in options:
        pytest.skip("this simple_switch has no --priority-queues")
    (file := folder / "queues.json").write_text(p4_programs.compiled_for("bmv2", program))
    with ExitStack() as stack:
        files = PacketFiles(folder, [(0, one) for one in packets], {0, 1})
        stack.callback(files.close)
        thrift = str(bmv2_runner._free_port())
        command = ["simple_switch", str(file), *files.options(), "--thrift-port", thrift]
        if "--notifications-addr" in options:
            command += ["--notifications-addr", f"ipc://{folder / 'notes'}"]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(
            [*command, "--", "--priority-queues", "8"], stdout=quiet, stderr=quiet
        )
        stack.callback(bmv2_runner._end, process)
        ask = stack.enter_context(bmv2_runner._cli("simple_switch_CLI", thrift, process, file))
        for line in commands:
            assert "Invalid" not in ask(line), line
        left = list[bytes]()

        def collect(count: int) -> list[bytes]:
            end = time.monotonic() + (bmv2_runner.LONGEST if count else 4 / RATE)
            while (not count or len(left) < count) and time.monotonic() < end:
                time.sleep(0.01)
                left.extend(data for _, data in files.sent())
            return [left.pop(0) for _ in range(min(count or len(left), len(left)))]

        yield files.send, collect


@contextmanager
def ours(
    folder: Path, program: Compiled, commands: Sequence[str], packets: Sequence[bytes]
) -> Iterator[tuple[Callable[[], None], Collect]]:
    """Provide the same of our switch, on a clock of its own."""
    now, waiting, left = [0], list(packets), list[bytes]()
    switch = Switch(program.program, clock=lambda: now[0], links=Links(queues=EgressQueues(8)))
    switch.run_commands("\n".join(commands))

    def send() -> None:
        left.extend(data for _, data in switch.process(0, waiting.pop(0)))

    def collect(count: int) -> list[bytes]:
        left.extend(data for _, data in switch.poll())
        for _ in range(COPIES):
            if count and len(left) >= count:
                break
            now[0] += 1_000_000_000 // RATE
            left.extend(data for _, data in switch.poll())
        return [left.pop(0) for _ in range(min(count or len(left), len(left)))]

    yield send, collect


both = pytest.mark.parametrize("switch", [ours, theirs], ids=["here", "there"])


@both
def test_a_depth_alone_drops_there_and_not_here(tmp_path: Path, switch: Any) -> None:
    """Replicas come faster than a slow egress takes them."""
    commands = [*REPLICAS, "set_queue_depth 1 1"]
    with switch(tmp_path, SLOW_EGRESS, commands, [packet()]) as (send, left):
        send()
        found = len(left(0))
    assert found == COPIES if switch is ours else 1 <= found < COPIES


@both
def test_a_depth_of_0_drops_every_packet(tmp_path: Path, switch: Any) -> None:
    with switch(tmp_path, BY_PRIORITY, ["set_queue_depth 0 1"], [packet()]) as (send, left):
        send()
        assert left(0) == []


@both
def test_a_queue_with_a_rate_drops_beyond_its_depth(tmp_path: Path, switch: Any) -> None:
    """The first packet leaves at once, and of five that come before the next may, two wait."""
    commands = [f"set_queue_rate {RATE} 1", "set_queue_depth 2 1"]
    packets = [packet(x=n) for n in range(6)]
    with switch(tmp_path, BY_PRIORITY, commands, packets) as (send, left):
        send()
        assert left(1) == packets[:1]
        for _ in packets[1:]:
            send()
        assert left(0) == packets[1:3]


@both
def test_of_two_priorities_with_one_rate_one_leaves_of_each_in_turn(
    tmp_path: Path, switch: Any
) -> None:
    """The first of each leaves at once; the others wait."""
    first, last = [packet(n) for n in (0, 5)], [packet(n, x) for n in (0, 5) for x in (1, 2, 3)]
    with switch(tmp_path, BY_PRIORITY, [f"set_queue_rate {RATE} 1"], first + last) as (send, left):
        send()
        send()
        assert sorted(left(2)) == first
        for _ in last:
            send()
        found = [(data[0], data[1]) for data in left(6)]
    assert [sorted(found[n : n + 2]) for n in (0, 2, 4)] == [[(0, x), (5, x)] for x in (1, 2, 3)]
