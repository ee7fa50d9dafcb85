"""Measure BMv2's JSON of this package beside p4c's: python benchmarks/bmv2_compilers.py.

simple_switch_grpc runs each shipped program twice, once with either JSON and the same entries and
packets, and its processor time a packet is printed. Without simple_switch_grpc or p4c-bm2-ss on
PATH nothing is measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from tos_compress import FAR, HOST, datagram, install

from gradplane import codecs
from gradplane.controller import targets
from gradplane.controller.targets.bmv2 import COMPILERS, Bmv2
from gradplane.differ.bmv2_switch import Bmv2Switch
from gradplane.differ.difference import transferable
from gradplane.experiment import p4_programs
from gradplane.hosts.wire import aggregation
from gradplane.switch import Switch, backends
from gradplane.switch.p4runtime.device import Device

P4 = Path(__file__).parent.parent / "p4"
PACKETS, RUNS, VALUES, LANES = 60, 3, 256, 1024
JOB, SWITCH_IP, WORKER_IP = 1, "10.0.0.254", "10.0.0.1"
_TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print a line for each program."""
    for compiler in COMPILERS:
        if missing := targets.get("bmv2", compiler=compiler).missing():
            print(f"BMv2's JSON beside p4c's: not measured: {missing}")
            return
    rng = np.random.default_rng(1)
    vectors = [rng.normal(0, 0.01, VALUES).astype(np.float32) for _ in range(PACKETS)]
    compress = [datagram(FAR, x) for x in vectors]
    beside(f"thc.p4, {LANES} codes", "thc.p4", install_thc, [thc_packet(n) for n in range(PACKETS)])
    beside(f"tos_compress.p4, {VALUES} values", "tos_compress.p4", install, compress)


def beside(
    name: str, program: str, fill: Callable[[Switch], None], packets: Sequence[bytes]
) -> None:
    """Print the processor time of both compilers' JSON, the least of alternating runs."""
    least = dict.fromkeys(COMPILERS, float("inf"))
    for _ in range(RUNS):
        for compiler in COMPILERS:
            target = targets.get("bmv2", compiler=compiler)
            assert isinstance(target, Bmv2)
            least[compiler] = min(least[compiler], measured(target, program, fill, packets))
    ours, theirs = (least[c] * 1000 for c in COMPILERS)
    print(f"{name}: a packet {ours:.2f} ms, with p4c's JSON {theirs:.2f} ms", flush=True)


def measured(
    target: Bmv2, program: str, fill: Callable[[Switch], None], packets: Sequence[bytes]
) -> float:
    """Return the switch's processor time for a packet, in seconds."""
    loaded = p4_programs.P4Program(P4 / program, {})
    compiled = p4_programs.compiled(P4 / program, (), backends.macros("bmv2")).program
    device = Device(lambda source: compiled, Switch)
    device.load(compiled)
    assert device.pipeline is not None and isinstance(device.pipeline.switch, Switch)
    fill(device.pipeline.switch)
    with Bmv2Switch(target) as switch:
        switch.load(*target.pipeline(loaded))
        for entity in transferable(device):
            if said := switch.insert(entity):
                raise SystemExit(f"{program}: BMv2 refuses an entry: {said}")
        switch.process(HOST, packets[0])
        before = processor_time(switch.pid)
        for packet in packets:
            switch.process(HOST, packet)
        return (processor_time(switch.pid) - before) / len(packets)


def processor_time(pid: int) -> float:
    """Return the user and system time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def install_thc(switch: Switch) -> None:
    """Install a job of one worker on port 1."""
    codec = codecs.get("thc")
    switch.table("routes").add({"hdr.ipv4.dst_addr": (SWITCH_IP, 32)}, "aggregate")
    for block in range(32):
        for lane in range(4):
            for index, value in enumerate(codec.table):
                match = {"job": JOB, "index": index}
                lookup = switch.table(f"block{block}.lookup{lane}")
                lookup.add(match, f"block{block}.set{lane}", {"value": value})
    member = {"workers": 1, "quorum": 1, "slot_base": 0, "slots": 4, "group": 1, "worker_bit": 1}
    member |= {"epoch": 1, "next_only": 1}
    switch.table("members").add({"job": JOB, "worker": 0, "port": HOST}, "admit", member)
    macs = {"src_mac": "00:00:00:00:00:fe", "mac": "00:00:00:00:00:01"}
    deliver = {**macs, "src_ip": SWITCH_IP, "ip": WORKER_IP, "port": 20000 + JOB}
    switch.table("receivers").add({"job": JOB, "worker": 0}, "deliver", deliver)
    switch.multicast(1, [(HOST, 1)])


def thc_packet(number: int) -> bytes:
    """Return a worker's packet of a round's codes: each completes a round."""
    norm = aggregation.norm_bits(1.0)
    header = aggregation.Header(
        aggregation.Type.INDICES, JOB, 0, number % 4, 1 + number // 4, 8, norm
    )
    codes = np.random.default_rng(number).integers(0, 16, LANES, dtype=np.uint8)
    payload = header.pack() + aggregation.pack_indices(codes, 8, 4)
    udp = UDP(sport=20000 + JOB, dport=aggregation.UDP_PORT, chksum=0)
    return bytes(Ether() / IP(src=WORKER_IP, dst=SWITCH_IP) / udp / payload)


if __name__ == "__main__":
    main()
