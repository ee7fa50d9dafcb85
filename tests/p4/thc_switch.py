"""p4/thc.p4 or p4/thc_tna.p4 on the embedded switch with one job installed, spoken to in UDP
payloads."""

import functools
import struct
from collections.abc import Sequence

import numpy as np

from gradplane import codecs
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type
from gradplane.switch import Recirculated, Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.ir import nodes as ir

CODEC = codecs.get("thc")
JOB, SLOT_BASE, SLOTS, GROUP = 3, 5, 4, 7
PROGRAMS = ("p4/thc.p4", "p4/thc_tna.p4")
OVERHEAD = 14 + 20 + 8  # bytes before the UDP payload
RECIRCULATION = 7  # bytes that thc_tna.p4 puts before a packet between two passes
TABLE = np.array(CODEC.table)
NORMS = [aggregation.norm_bits(1.0), aggregation.norm_bits(2.5)]
NOTICES = 0x25, 0x28  # version and type of straggler and epoch notices

Out = list[tuple[int, bytes]]


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(">10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(
    worker: int, payload: bytes, to: str = "10.0.0.254", port: int = 18256, tos: int = 0
) -> bytes:
    """Return a worker's datagram as an Ethernet frame."""
    source, target = (bytes(map(int, ip.split("."))) for ip in (f"10.0.0.{worker + 1}", to))
    udp = struct.pack(">HHHH", 20000 + JOB, port, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, tos, 20 + len(udp), worker, 0, 64, 17, 0) + source + target
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    ethernet = bytes.fromhex("0000000000fe") + bytes([0, 0, 0, 0, 0, worker + 1])
    return ethernet + b"\x08\x00" + ip + udp


@functools.cache
def program(path: str, sum_bits: int, code_bits: int = 4, ecn: int | None = None) -> ir.Program:
    limits = {"SUM_BITS": sum_bits, "CODE_BITS": code_bits, "SLOTS": 16}
    if ecn is not None:
        limits["ECN_THRESHOLD"] = ecn
    return compile_program(path, defines={name: str(value) for name, value in limits.items()})


def fresh_switch(path: str, workers: int, quorum: int, next_only: bool = False) -> "ThcSwitch":
    """Return a switch (JIT) that has seen no packet; it is made once and cleared."""
    made = _made(path, workers, quorum, next_only)
    state = made.switch.state
    for cells in (*state.registers.values(), *state.counters.values()):
        cells.clear()
    return made


@functools.cache
def _made(path: str, workers: int, quorum: int, next_only: bool) -> "ThcSwitch":
    return ThcSwitch(path, workers, quorum, engine="jit", next_only=next_only)


class ThcSwitch:
    """Worker w sits on port w + 1, or on ports[w]. Its job's slots begin with SLOT_BASE."""

    def __init__(
        self,
        path: str,
        workers: int,
        quorum: int,
        sum_bits: int = 8,
        engine: str = "interpreter",
        ports: Sequence[int] = range(1, 65),
        next_only: bool = False,
        table: Sequence[int] = CODEC.table,
        code_bits: int = 4,
        ecn: int | None = None,
    ) -> None:
        self.ports, self.next_only = ports, next_only
        self.switch = Switch(program(path, sum_bits, code_bits, ecn), engine=engine)
        self.counters, self.lanes = ["events"], 4
        if path.endswith("_tna.p4"):  # counts completions apart: a counter counts once in a pass
            self.counters.append("completions")
            self.lanes = 32 // sum_bits
        self.workers = workers
        self._routes()
        self._lookups(table)
        for w in range(workers):
            self._member(w, quorum)
        self.switch.multicast(GROUP, [(ports[w], w + 1) for w in range(workers)])

    def _routes(self) -> None:
        routes = self.switch.table("routes")
        routes.add(match={"hdr.ipv4.dst_addr": ("10.0.0.254", 32)}, action="aggregate")
        forward = {"mac": "00:00:00:00:00:02", "port": 2}
        routes.add(match={"hdr.ipv4.dst_addr": ("10.0.0.2", 32)}, action="forward", params=forward)

    def _lookups(self, table: Sequence[int]) -> None:
        for block in range(32):
            for lane in range(self.lanes):
                lookup = self.switch.table(f"block{block}.lookup{lane}")
                action = f"block{block}.set{lane}"
                for index, value in enumerate(table):
                    match = {"job": JOB, "index": index}
                    lookup.add(match=match, action=action, params={"value": value})

    def _member(self, w: int, quorum: int) -> None:
        self.switch.table("members").add(*self._admission(w, quorum, epoch=1))
        self.switch.table("receivers").add(
            match={"job": JOB, "worker": w},
            action="deliver",
            params={
                "src_mac": "00:00:00:00:00:fe",
                "mac": f"00:00:00:00:00:{w + 1:02x}",
                "src_ip": "10.0.0.254",
                "ip": f"10.0.0.{w + 1}",
                "port": 20000 + JOB,
            },
        )

    def _admission(self, w: int, quorum: int, epoch: int) -> tuple[dict, str, dict]:
        params = {
            "workers": self.workers,
            "quorum": quorum,
            "slot_base": SLOT_BASE,
            "slots": SLOTS,
            "group": GROUP,
            "worker_bit": 1 << w,
            "epoch": epoch,
            "next_only": int(self.next_only),
        }
        return {"job": JOB, "worker": w, "port": self.ports[w]}, "admit", params

    def send(self, port: int, payload: bytes) -> Out:
        """Return all results of a payload: (worker, UDP payload), addressed as they should be."""
        return self._open(self.switch.process(port, frame(port - 1, payload)))

    def step(self, port: int, packet: bytes | Recirculated) -> tuple[Out, list[Recirculated]]:
        """Run one pass of a frame, or of the result of an earlier pass.

        A notice that leaves after a pass of its own, as on Tofino, leaves at once.
        """
        outputs, again = self.switch.run_once(port, packet)
        if self.counters[1:] and again and again[0].packet[RECIRCULATION + OVERHEAD] in NOTICES:
            outputs, again = self.switch.run_once(port, again[0])
        return self._open(outputs), again

    def raise_epoch(self, epoch: int) -> None:
        """Give the job, whose quorum is all workers, another epoch, as a controller does."""
        for w in range(self.workers):
            self.switch.table("members").modify(*self._admission(w, self.workers, epoch))

    def counted(self, name: str) -> dict[int, int]:
        """Return a counter by port."""
        cells = {port: self.switch.counter(name).read(port)[0] for port in range(8)}
        return {port: count for port, count in cells.items() if count}

    def events(self) -> dict[int, int]:
        found = [self.switch.counter(name) for name in self.counters]
        counts = {e: sum(c.read(JOB * 16 + e)[0] for c in found) for e in range(16)}
        return {e: n for e, n in counts.items() if n}

    def _open(self, outputs: Sequence[tuple[int, bytes]]) -> Out:
        return sorted((port - 1, self._payload(port, packet)) for port, packet in outputs)

    @staticmethod
    def _payload(port: int, packet: bytes) -> bytes:
        ip = packet[14:34]
        assert checksum(ip) == 0
        assert packet[:6] == bytes([0, 0, 0, 0, 0, port]), "Ethernet address of the receiver"
        assert ip[16:] == bytes([10, 0, 0, port])
        assert struct.unpack(">HHHH", packet[34:42]) == (18256, 20000 + JOB, len(packet) - 34, 0)
        assert struct.unpack(">H", ip[2:4])[0] == len(packet) - 14
        return packet[OVERHEAD:]


@functools.cache
def codes(worker: int, slot: int, round: int, lanes: int = 1024) -> np.ndarray:
    """Return the codes that a worker sends in a slot's round: uint8[lanes]."""
    rng = np.random.default_rng([worker, slot, round])
    return rng.integers(0, 16, lanes, dtype=np.uint8)


def indices(
    worker: int,
    slot: int,
    round: int,
    norm: int = NORMS[0],
    sum_bits: int = 8,
    epoch: int = 1,
    owner: int = 0,
) -> bytes:
    values = codes(worker, slot, round, aggregation.LANES[sum_bits])
    return packed(values, worker, slot, round, norm, sum_bits, epoch, owner=owner)


def packed(
    values: np.ndarray,
    worker: int,
    slot: int,
    round: int,
    norm: int = NORMS[0],
    sum_bits: int = 8,
    epoch: int = 1,
    code_bits: int = 4,
    owner: int = 0,
) -> bytes:
    """Return the packet of a worker's codes. owner: who alone needs the sums, plus 1."""
    place = Type.INDICES, JOB, worker, slot, round, sum_bits, norm
    header = Header(*place, count=owner, epoch=epoch, code_bits=code_bits)
    return header.pack() + aggregation.pack_indices(values, sum_bits, code_bits)


def short(
    kind: Type, worker: int, slot: int, round: int, norm: int = 0, flags: int = 0, epoch: int = 1
) -> bytes:
    return Header(kind, JOB, worker, slot, round, 8, norm, flags=flags, epoch=epoch).pack()
