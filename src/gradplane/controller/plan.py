"""The plan of a job on a switch, and the checks that refuse what cannot work before it starts."""

from __future__ import annotations

import dataclasses
import ipaddress
import struct
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gradplane import codecs
from gradplane.controller.compression import Compression
from gradplane.controller.controller_errors import PlanError

if TYPE_CHECKING:
    from gradplane.controller.connection import Entity

MAX_JOBS = 256
"""A job number has eight bits on the wire."""
EPOCHS = range(1, 256)
"""A job's epochs, likewise; registers that none has used have 0."""
LIFE = 16
"""Epochs of one life of a job, 16L to 16L + 15: its first, and one for each time that a switch lost
its state. Workers go on in a later one of their life, and end in another life's; in
hosts/wire/aggregation.py, too."""


@dataclass(frozen=True)
class TlsFiles:
    """PEM files of an encrypted connection: the authority that the server's certificate is of, and
    this side's certificate with its private key, where the server asks for one."""

    cacert: Path
    cert: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class ControlServer:
    """The control server of a switch that runs before and after a run.

    device_id: None for the target's default. tls: None for a plain connection.
    """

    address: str
    device_id: int | None = None
    tls: TlsFiles | None = None


@dataclass(frozen=True)
class EqualWays:
    """The ports of equal ways, of which a packet's flow decides; factor: of the switch, odd.

    The decision is that of p4/include/equal_ways.p4."""

    ports: tuple[int, ...]
    factor: int

    @property
    def group(self) -> int:
        """The number of this set of ports, 1 to 2^32 - 1."""
        return zlib.crc32(struct.pack(f">{len(self.ports)}H", *self.ports)) or 1

    def port(self, flow: bytes) -> int:
        """Return the port of a flow, of which `udp_flow` returns the bytes."""
        scattered = zlib.crc32(flow) * self.factor & 0xFFFFFFFF
        return self.ports[(scattered >> 16) * len(self.ports) >> 16]


def udp_flow(source: str, destination: str, source_port: int, destination_port: int) -> bytes:
    """Return what decides the way of UDP packets between two addresses."""
    addresses = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(destination).packed
    return addresses + struct.pack(">BHH", 17, source_port, destination_port)


@dataclass(frozen=True)
class Route:
    """A route: packets to prefix/length leave through `port`, addressed to `mac`.

    ways: among which flows decide, in programs that can; None where there is one way.
    """

    prefix: str
    length: int
    port: int
    mac: str
    ways: EqualWays | None = None


@dataclass(frozen=True)
class Member:
    """Worker number `worker` of a job: its switch port, and the address of its results."""

    worker: int
    port: int
    mac: str
    ip: str
    udp_port: int


@dataclass(frozen=True)
class Parent:
    """The switch that gets another one's partials: its addresses, the other's port to it, and the
    other's number there."""

    port: int
    number: int
    mac: str
    ip: str


@dataclass(frozen=True)
class Level:
    """A switch's place in a job that several sum.

    parents: slot s has that of s % len(parents), or none where the slot is not summed here; empty
    at a root. adds: its children are switches, whose sums it adds. asks: some switch of the job
    closes a slot without all of its children. summed: the workers in a sum of this switch.
    """

    parents: tuple[Parent | None, ...]
    adds: bool
    asks: bool
    summed: int

    @property
    def above(self) -> tuple[Parent, ...]:
        """Its parents, each once."""
        return tuple(dict.fromkeys(parent for parent in self.parents if parent is not None))

    def parent_of(self, slot: int) -> Parent | None:
        """Return a slot's parent; None at a root, or where the slot is not summed here."""
        return self.parents[slot % len(self.parents)] if self.parents else None


@dataclass(frozen=True)
class Server:
    """The server of a job that owns no slots: its addresses, and the switch's port to it.

    patience: packets of other chunks after which a chunk in a slot makes way for this job's.
    """

    port: int
    mac: str
    ip: str
    udp_port: int
    patience: int


@dataclass(frozen=True)
class Capacity:
    """The limits of a loaded program.

    slots: slots for all jobs together; sum_bits, code_bits: widths of a sum and of a code, None of
    a node, which has no lookup tables; workers: bits of a slot's bitmap; levels: it can be one of
    several switches that sum a job; shared: jobs own no slots; role: the part that it is compiled
    for in a tree, "leaf" or "node", "" for both.
    """

    slots: int
    sum_bits: int | None
    workers: int
    levels: bool = True
    code_bits: int | None = 4
    shared: bool = False
    role: str = ""


@dataclass(frozen=True)
class Claim:
    """The resources that a job has exclusively on a switch."""

    number: int
    slots: range
    group: int


@dataclass(frozen=True)
class JobPlan:
    """A job to install.

    It owns the slots slot_base ... slot_base + slots - 1. table[i] is the value that index i adds
    to a sum; granularity is the largest of them. group is the multicast group of its results,
    job + 1 by default. Raises PlanError, with the numbers, for what no program could do.

    Packets carry `epoch`; a slot that an earlier epoch has used is as good as unused. next_only:
    no round of a slot is left out, so that a later one than the next is refused.

    code_bits: the width of the codes in packets.

    level: where several switches sum the job. Then `workers` are the switch's children, by their
    numbers there, and `quorum` counts them; a switch that adds sums looks nothing up.

    server: of a job that owns no slots, but shares all of the switch's; `slots` only number its
    chunks then. It waits for all workers.
    """

    number: int
    workers: tuple[Member, ...]
    quorum: int
    slots: int
    slot_base: int
    sum_bits: int
    table: tuple[int, ...]
    granularity: int
    group: int = 0
    epoch: int = 1
    next_only: bool = False
    level: Level | None = None
    code_bits: int = 4
    server: Server | None = None

    def __post_init__(self) -> None:
        if self.group == 0:
            object.__setattr__(self, "group", self.number + 1)
        if not 0 <= self.number < MAX_JOBS:
            raise PlanError(f"job {self.number}: a job's number is 0 to {MAX_JOBS - 1}")
        if self.epoch not in EPOCHS:
            raise self._error(f"epoch {self.epoch}: epochs are {EPOCHS[0]} to {EPOCHS[-1]}")
        self._check_workers()
        self._check_table()
        self._check_sums()
        if self.slots < 2 or self.slot_base < 0:
            raise self._error(
                f"slots {self.slot_base} to {self.slot_base + self.slots - 1}: a job has 2 slots or"
                " more (two banks alternate), counted from 0"
            )

    def anew(self, held: Collection[int], last: int | None = None) -> JobPlan:
        """Return the plan in a life of which no slot holds an epoch: its own if all are unused.

        held: the epochs in the switch's slots. last: the job's there, which packets under way may
        have. Raises PlanError where slots hold epochs of all lives."""
        if not held and last is None:
            return self
        lives, before = 256 // LIFE, (last or max(held)) // LIFE
        later = ((before + step) % lives for step in range(1, lives + 1))
        free = next((life for life in later if all(each // LIFE != life for each in held)), None)
        if free is None:
            raise self._error("the slots hold epochs of all lives: load the program anew (force)")
        return dataclasses.replace(self, epoch=max(free * LIFE, EPOCHS[0]))

    def raised(self) -> JobPlan:
        """Return the plan in the next epoch of its life. Raises PlanError where there is none."""
        epoch = self.epoch + 1
        if epoch % LIFE == 0:
            raise self._error(
                f"epoch {self.epoch} is the last of its life, as switches have lost their state"
                f" {self.epoch % LIFE} times or more: start the job anew"
            )
        return dataclasses.replace(self, epoch=epoch)

    @property
    def claim(self) -> Claim:
        """The resources that no other job may use."""
        slots = self.slot_range if self.server is None else range(0)
        return Claim(self.number, slots, self.group)

    @property
    def slot_range(self) -> range:
        """The slots that the job owns."""
        return range(self.slot_base, self.slot_base + self.slots)

    @property
    def adds(self) -> bool:
        """Whether its children are switches."""
        return self.level is not None and self.level.adds

    def _check_workers(self) -> None:
        numbers = [member.worker for member in self.workers]
        if sorted(numbers) != list(range(len(numbers))) or not numbers:
            raise self._error(
                f"worker numbers {numbers}: expected 0 to {max(len(numbers) - 1, 0)}, each once"
            )
        if problem := quorum_problem(self.quorum, len(numbers)):
            raise self._error(problem)
        addresses = [(member.ip, member.udp_port) for member in self.workers]
        for ip, udp_port in () if self.adds else addresses:
            if addresses.count((ip, udp_port)) > 1:
                raise self._error(f"two workers receive at {ip} port {udp_port}: give each its own")

    def _check_table(self) -> None:
        if not self.table:
            raise self._error("an empty lookup table: it has a value for each code")
        if self.code_bits not in codecs.CODE_WIDTHS:
            *widths, last = map(str, codecs.CODE_WIDTHS)
            known = f"{', '.join(widths)} or {last}"
            raise self._error(f"code_bits = {self.code_bits}: codes have {known} bits")
        if overflow := codecs.code_overflow(len(self.table), self.code_bits):
            raise self._error(overflow)
        if min(self.table) < 0 or max(self.table) != self.granularity:
            raise self._error(
                f"lookup table {list(self.table)} for granularity {self.granularity}: its values"
                " run from 0 or more to the granularity"
            )

    def _check_sums(self) -> None:
        if self.sum_bits not in codecs.SUM_WIDTHS:
            *widths, last = map(str, codecs.SUM_WIDTHS)
            known = f"{', '.join(widths)} or {last}"
            raise self._error(f"sum_bits = {self.sum_bits}: sums have {known} bits")
        summed = self.quorum if self.level is None else self.level.summed
        if overflow := codecs.sum_overflow(self.granularity, summed, self.sum_bits):
            raise self._error(overflow)

    def _error(self, what: str) -> PlanError:
        return PlanError(f"job {self.number}: {what}")


Placed = TypeVar("Placed", Route, Member, Server)


@dataclass(frozen=True)
class Setup:
    """The configuration of a switch: its own address, routes and jobs, and its compression.

    compression: None for a program without it. entries: of tables that are the program's own.
    """

    ip: str
    mac: str
    routes: Sequence[Route]
    jobs: Sequence[JobPlan]
    compression: Compression | None = None
    entries: Sequence[Entity] = ()

    def with_macs(self, real: Mapping[str, str]) -> Setup:
        """Return the setup for hosts with other MAC addresses, which are given by those here."""

        def moved(one: Placed) -> Placed:
            return dataclasses.replace(one, mac=real.get(one.mac, one.mac))

        jobs = [
            dataclasses.replace(
                plan,
                workers=tuple(map(moved, plan.workers)),
                server=None if plan.server is None else moved(plan.server),
            )
            for plan in self.jobs
        ]
        return dataclasses.replace(self, routes=[moved(route) for route in self.routes], jobs=jobs)


def quorum_problem(quorum: int, workers: int) -> str | None:
    """Return None if a slot of so many workers can close at the quorum, else a message."""
    if 1 <= quorum <= workers:
        return None
    return f"quorum = {quorum} of {workers} workers: use 1 to {workers}"


def check(plans: Sequence[JobPlan], capacity: Capacity) -> None:
    """Raise PlanError where the jobs do not fit the program, or each other."""
    for index, plan in enumerate(plans):
        check_program(plan, capacity)
        for other in plans[:index]:
            if other.number == plan.number:
                raise PlanError(f"job {plan.number} exists twice: give each job its own number")
            check_beside(plan, other.claim)


def allocate(slots: Iterable[int], capacity: Capacity) -> list[int]:
    """Return the slot_base of each job, given the number of slots of each: one after another.

    Raises PlanError when they do not fit the program's registers.
    """
    wanted = list(slots)
    if sum(wanted) > capacity.slots:
        raise PlanError(
            f"{' + '.join(map(str, wanted))} = {sum(wanted)} slots do not fit the program's"
            f" {capacity.slots}: compile it with SLOTS = {_power_of_two(sum(wanted))},"
            " or give the jobs fewer"
        )
    return [sum(wanted[:index]) for index in range(len(wanted))]


def check_program(plan: JobPlan, capacity: Capacity) -> None:
    """Raise PlanError where the job does not fit the program."""
    if len(plan.workers) > capacity.workers:
        raise PlanError(
            f"job {plan.number}: {len(plan.workers)} workers do not fit a bitmap of"
            f" {capacity.workers} bits: use {capacity.workers} workers or fewer"
        )
    if problem := place_problem(plan, capacity):
        raise PlanError(problem)
    if (plan.server is not None) != capacity.shared:
        raise PlanError(
            f"job {plan.number}: it shares slots with other jobs, and on this program each has its"
            " own: use shared.p4"
            if plan.server is not None
            else f"job {plan.number}: it has slots of its own, and this program's are for jobs that"
            " share them: use thc.p4"
        )
    if plan.claim.slots.stop > capacity.slots:
        raise PlanError(
            f"job {plan.number}: slots {_span(plan.claim.slots)} reach beyond the program's"
            f" {capacity.slots}: compile it with SLOTS = {_power_of_two(plan.claim.slots.stop)},"
            " or use fewer"
        )
    if capacity.sum_bits not in (None, plan.sum_bits):
        raise PlanError(
            f"job {plan.number}: {plan.sum_bits}-bit sums on a program compiled for"
            f" {capacity.sum_bits}: compile it with SUM_BITS = {plan.sum_bits}, or use"
            f" sum_bits = {capacity.sum_bits}"
        )
    if capacity.code_bits not in (None, plan.code_bits):
        raise PlanError(
            f"job {plan.number}: {plan.code_bits}-bit codes on a program compiled for"
            f" {capacity.code_bits}: compile it with CODE_BITS = {plan.code_bits}, or use"
            f" code_bits = {capacity.code_bits}"
        )


def place_problem(plan: JobPlan, capacity: Capacity) -> str | None:
    """Return None if the program can have the job's place in a tree, or sum it alone, else why
    not."""
    if plan.level is not None and not capacity.levels:
        return (
            f"job {plan.number}: several switches sum it, and this program sums alone: use thc.p4,"
            " or thc_tna.p4 with ROLE=leaf or ROLE=node, or place the job's workers on one switch"
        )
    role = "node" if plan.adds else "leaf"
    if capacity.role in ("", role):
        return None
    does = {"leaf": "adds codes of workers", "node": "adds sums of other switches"}
    return (
        f"job {plan.number}: this switch {does[role]}, and its program was compiled with"
        f" ROLE={capacity.role}, which {does[capacity.role]}: compile it with ROLE={role}"
    )


def check_beside(plan: JobPlan, other: Claim) -> None:
    """Raise PlanError where the job needs resources of another."""
    mine = plan.claim
    if mine.group == other.group:
        raise PlanError(
            f"jobs {other.number} and {mine.number} share multicast group {mine.group}:"
            " give each its own"
        )
    if mine.slots.start < other.slots.stop and other.slots.start < mine.slots.stop:
        raise PlanError(
            f"job {mine.number} (slots {_span(mine.slots)}) overlaps job {other.number} (slots"
            f" {_span(other.slots)}): start job {mine.number} at slot {other.slots.stop}"
        )


def _span(slots: range) -> str:
    return f"{slots.start} to {slots.stop - 1}"


def _power_of_two(count: int) -> int:
    return 1 << (count - 1).bit_length()
