"""p4/shared.p4 or shared_tna.p4 on the embedded switch with two jobs installed, and their rules as
plain Python."""

import functools
import struct
import zlib
from collections import Counter
from dataclasses import dataclass, field

import finsy
import numpy as np
from thc_switch import OVERHEAD, checksum

from gradplane import codecs
from gradplane.controller import thc
from gradplane.controller.connection import parse_p4info, schema_of
from gradplane.controller.plan import JobPlan, Member, Server
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import DIRECT, Header, Type
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_program
from gradplane.switch.ir import nodes as ir
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text

JOBS, WORKERS, CHUNK_SLOTS, PATIENCE, EPOCH = (3, 4), 3, 4, 4, 17
SLOTS = 2
PROGRAMS = ("p4/shared.p4", "p4/shared_tna.p4")
TABLE = codecs.get("thc").table
NORMS = [aggregation.norm_bits(1.0), aggregation.norm_bits(2.5)]
LOCAL_IP, LOCAL_MAC = "10.0.0.254", "00:00:00:00:00:fe"
Out = list[tuple[int, bytes]]


def port_of(job: int, worker: int) -> int:
    """Return a worker's port; that of its server is WORKERS's. A Tofino's own are below."""
    return 9 + (job - JOBS[0]) * (WORKERS + 1) + worker


def udp_port(job: int) -> int:
    return 20000 + job


def plan(
    job: int, table: tuple[int, ...] = TABLE, sum_bits: int = 8, code_bits: int = 4
) -> JobPlan:
    def address(worker: int) -> tuple[int, str, str, int]:
        port = port_of(job, worker)
        return port, f"00:00:00:00:00:{port:02x}", f"10.0.0.{port}", udp_port(job)

    members = tuple(Member(worker, *address(worker)) for worker in range(WORKERS))
    server = Server(*address(WORKERS), PATIENCE)
    sizes = (WORKERS, CHUNK_SLOTS, 0, sum_bits, table, max(table))
    return JobPlan(job, members, *sizes, epoch=EPOCH, code_bits=code_bits, server=server)


@functools.cache
def program(path: str, sum_bits: int, code_bits: int, ecn: int | None = None) -> ir.Program:
    limits = {"SUM_BITS": sum_bits, "CODE_BITS": code_bits, "SLOTS": SLOTS}
    if ecn is not None:
        limits["ECN_THRESHOLD"] = ecn
    return compile_program(path, defines={n: str(v) for n, v in limits.items()})


def frame(port: int, job: int, payload: bytes, tos: int = 0) -> bytes:
    """Return the datagram of the host at a port as an Ethernet frame."""
    source, target = bytes([10, 0, 0, port]), bytes(map(int, LOCAL_IP.split(".")))
    udp = struct.pack(">HHHH", udp_port(job), 18256, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, tos, 20 + len(udp), port, 0, 64, 17, 0) + source + target
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    return bytes.fromhex("0000000000fe") + bytes([0, 0, 0, 0, 0, port]) + b"\x08\x00" + ip + udp


class SharedSwitch:
    """A switch with both jobs' entries, as the controller makes them."""

    def __init__(
        self,
        engine: str = "jit",
        sum_bits: int = 8,
        code_bits: int = 4,
        ecn: int | None = None,
        path: str = PROGRAMS[0],
        **own,
    ) -> None:
        found = program(path, sum_bits, code_bits, ecn)
        self.schema = schema_of(parse_p4info(p4info_text(build_p4info(found)).encode()))
        self.switch = Switch(found, engine=engine)
        for entity in thc.local(LOCAL_IP, self.schema):
            self._put(entity)
        for job in JOBS:
            made = plan(job, sum_bits=sum_bits, code_bits=code_bits, **own)
            for entity in thc.job_entries(made, self.schema, LOCAL_IP, LOCAL_MAC):
                self._put(entity)

    def _put(self, entity) -> None:
        if isinstance(entity, finsy.P4MulticastGroupEntry):
            replicas = [tuple(replica) for replica in entity.replicas]
            self.switch.multicast(entity.multicast_group_id, replicas)
            return
        match = dict(entity.match)
        if "hdr.ipv4.dst_addr" in match:
            match["hdr.ipv4.dst_addr"] = (match["hdr.ipv4.dst_addr"].split("/")[0], 32)
        action = entity.action.name, dict(entity.action.args)
        self.switch.table(entity.table_id).add(match, *action)

    def clear(self) -> None:
        """Forget all packets."""
        for cells in (*self.switch.state.registers.values(), *self.switch.state.counters.values()):
            cells.clear()

    def send(self, port: int, job: int, payload: bytes) -> Out:
        """Return all results of a payload: (port, UDP payload), addressed as they should be."""
        return opened(job, self.switch.process(port, frame(port, job, payload)))

    def events(self, job: int) -> dict[str, int]:
        counter = self.switch.counter("shared_events")
        names = enumerate(thc.SHARED_EVENT_NAMES)
        counts = {name: counter.read(job * 16 + n)[0] for n, name in names}
        return {name: count for name, count in counts.items() if count}


def opened(job: int, outputs: list[tuple[int, bytes]]) -> Out:
    """Return (port, UDP payload) of packets; checks their headers, and `job` where one is given."""
    found = []
    for port, packet in outputs:
        ip, (source, to, size, zero) = packet[14:34], struct.unpack(">HHHH", packet[34:42])
        payload = packet[OVERHEAD:]
        assert packet[:12] == bytes([0, 0, 0, 0, 0, port]) + bytes.fromhex("0000000000fe")
        assert checksum(ip) == 0 and ip[12:] == bytes([10, 0, 0, 254, 10, 0, 0, port])
        assert (source, to, size, zero) == (18256, udp_port(payload[2]), len(packet) - 34, 0)
        assert struct.unpack(">H", ip[2:4])[0] == len(packet) - 14
        assert aggregation.checksum(payload) == 0
        found.append((port, payload))
    return sorted(found)


@functools.cache
def codes(job: int, worker: int, slot: int, round: int, lanes: int, bits: int) -> np.ndarray:
    """Return the codes that a worker sends of a chunk: uint8[lanes]."""
    rng = np.random.default_rng([job, worker, slot, round])
    return rng.integers(0, 1 << bits, lanes, dtype=np.uint8)


def indices(
    job: int,
    worker: int,
    slot: int,
    round: int,
    direct: bool = False,
    norm: int = NORMS[0],
    epoch: int = EPOCH,
    sum_bits: int = 8,
    code_bits: int = 4,
) -> bytes:
    """Return the packet of a worker's codes."""
    values = codes(job, worker, slot, round, aggregation.LANES[sum_bits], code_bits)
    flags = DIRECT if direct else 0
    place = Type.INDICES, job, worker, slot, round, sum_bits, norm
    header = Header(*place, flags=flags, epoch=epoch, code_bits=code_bits)
    return header.pack() + aggregation.pack_indices(values, sum_bits, code_bits)


def values(payload: bytes, table: tuple[int, ...] = TABLE) -> np.ndarray:
    """Return what a packet of codes adds to sums."""
    looked_up = np.zeros(256, np.int64)
    looked_up[: len(table)] = table
    header, body = aggregation.parse(payload)
    return looked_up[aggregation.unpack_indices(body, header.code_bits)]


# -- the rules ----------------------------------------------------------------------------------


def slot_of(job: int, slot: int, round: int, slots: int = SLOTS) -> int:
    """Return the slot of the switch that a chunk has."""
    return zlib.crc32(struct.pack(">BIH", job, round, slot)) % slots


Tag = tuple[int, int, int, int]  # epoch, job, slot and round of a chunk


@dataclass
class Cell:
    tag: Tag = (0, 0, 0, 0)
    bitmap: int = 0
    sums: np.ndarray = field(default_factory=lambda: np.zeros(128, np.int64))


@dataclass
class Slot:
    cells: list[Cell]
    norm: int = 0
    others: int = 0


@dataclass
class Flight:
    """A packet between two passes. before: bitmap and tag that cells must have; None: any."""

    does: str
    slot: int
    tag: Tag
    header: Header  # of what leaves in the end
    own: np.ndarray
    before: tuple[int, Tag] | None
    after: int
    leaves: bool
    sums: list[np.ndarray] = field(default_factory=list)
    broken: bool = False


class Oracle:
    """The switch of 8-bit sums; packets are valid, of members on their own ports."""

    passes = 8

    def __init__(self) -> None:
        self.slots = [Slot([Cell() for _ in range(self.passes)]) for _ in range(SLOTS)]
        self.events: Counter[tuple[int, str]] = Counter()

    def begin(self, payload: bytes) -> tuple[Out, Flight | None]:
        """Return what a worker's packet makes in its first pass."""
        header, _ = aggregation.parse(payload)
        job, bit = header.job, 1 << header.worker
        on = [(port_of(job, WORKERS), payload)]
        if header.epoch != EPOCH:
            return self._note(job, "other epoch", on)
        tag = (header.epoch, job, header.slot, header.round)
        number = slot_of(job, header.slot, header.round)
        slot = self.slots[number]
        cell = slot.cells[0]
        mine = cell.bitmap != 0 and cell.tag == tag
        known = mine and cell.bitmap & bit
        before, own = (cell.bitmap, cell.tag), values(payload)
        flight = Flight("take", number, tag, header, own, before, 0, True)
        if header.flags & DIRECT:
            if not known:
                return self._note(job, "sent again", on)
            event = "sent again, slot freed"
        elif known:
            return self._note(job, "duplicate", [])
        elif mine and slot.norm == header.norm:
            event, flight.does, flight.after = "accepted", "add", cell.bitmap | bit
            flight.leaves = flight.after == (1 << WORKERS) - 1
            if flight.leaves:
                event, flight.after = "completed sums", 0
        else:
            flight.does, flight.after, flight.leaves = "begin", bit, cell.bitmap != 0
            event = "evicted another" if flight.leaves else "accepted"
            if flight.leaves and min(slot.others + 1, 255) < PATIENCE:
                slot.others += 1
                return self._note(job, "slot taken", on)
            if not flight.leaves:
                flight.before = None
        self._note(job, event, [])
        slot.others = 0
        epoch, job, place, round = cell.tag if flight.leaves and flight.does == "begin" else tag
        out = {"epoch": epoch, "job": job, "slot": place, "round": round, "norm": slot.norm}
        bitmap = cell.bitmap | bit if flight.does == "add" else cell.bitmap
        flight.header = Header(
            Type.PARTIAL, worker=header.worker, sum_bits=8, bitmap=bitmap, flags=header.flags, **out
        )
        if flight.does == "begin":
            slot.norm = header.norm
        return self.step(flight)

    def _note(self, job: int, event: str, out: Out) -> tuple[Out, None]:
        self.events[job, event] += 1
        return out, None

    def step(self, flight: Flight) -> tuple[Out, Flight | None]:
        """Return what a packet makes in its next pass."""
        number = len(flight.sums)
        cell = self.slots[flight.slot].cells[number]
        own = flight.own[128 * number :][:128]
        out = cell.sums.copy()
        same = flight.before is None or flight.before == (cell.bitmap, cell.tag)
        flight.broken |= not same
        if flight.does == "begin":
            cell.tag, cell.bitmap, cell.sums = flight.tag, flight.after, own.copy()
        elif same:
            cell.bitmap = flight.after
            if flight.does == "add":
                cell.sums = out = out + own
        flight.sums.append(out)
        if len(flight.sums) < self.passes:
            return [], flight
        job = flight.tag[1]
        if flight.broken:
            return self._note(job, "lost between passes", [])
        if not flight.leaves:
            return [], None
        body = aggregation.pack_sums(np.concatenate(flight.sums), 8)
        port = port_of(flight.header.job, WORKERS)
        return [(port, flight.header.pack() + body)], None


class TofinoOracle(Oracle):
    """The rules of shared_tna.p4, of packets that come one after the other: what evicts is accepted
    when the slot is free, and a copy is a packet of the slot's own chunk, too."""

    def whole(self, payload: bytes) -> Out:
        """Return what a worker's packet makes in all passes."""
        header, _ = aggregation.parse(payload)
        copies = self.events[header.job, "duplicate"]
        out, flight = self.begin(payload)
        if self.events[header.job, "duplicate"] > copies:
            self.slots[slot_of(header.job, header.slot, header.round)].others = 0
        if flight is not None and flight.does == "begin" and flight.leaves:
            self.events[header.job, "accepted"] += 1
        while flight is not None:
            out, flight = self.step(flight)
        return sorted(out)
