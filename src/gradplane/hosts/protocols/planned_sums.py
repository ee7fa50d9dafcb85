"""A planned worker's tensors that the switch sums: a job of its own on the switch for each routine.

The members of such a job are the GPUs of one number, one a machine. Two routines have jobs:
"switch-int32" sums the values as SwitchML's integers, "switch-codes" the codes of the plan's codec.
Codes get their common norm where the switch sums them, so they are made there, whatever resource
the plan has compress them before; what the codec returns are the sums, which are passed on and
decoded like the codes of any piece.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from gradplane.codecs import Codec, CodecError
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.actions import Action, CancelTimer, Deliver, Record, SetTimer
from gradplane.hosts.protocols.job_codec import summed_codec
from gradplane.hosts.protocols.results import Floats, SummedLanes, Sums
from gradplane.hosts.protocols.run_plan import SUMMED, SWITCH_CODES, RunPlan
from gradplane.hosts.protocols.switch_worker import SwitchWorker
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.payloads import Payloads

_LAST = 255  # the number of a job on the switch: those of plans count down, others up from 0
_PARTITION = struct.Struct("<IQ")  # norm, seed

Key = tuple[str, Hashable]
"""A routine, and a timer of its state machine."""


def switch_jobs(job: JobConfig, plan: RunPlan) -> dict[tuple[str, int], JobConfig]:
    """Return the jobs on the switch by routine and by the number of their members on a machine."""
    return {
        (routine, gpu): _switch_job(job, plan, routine, gpu)
        for routine in plan.summed
        for gpu in range(plan.gpus)
    }


def _switch_job(job: JobConfig, plan: RunPlan, routine: str, gpu: int) -> JobConfig:
    place = (job.number * len(SUMMED) + SUMMED.index(routine)) * plan.gpus + gpu
    members, number = plan.members(gpu, "inter"), _LAST - place
    addresses = (job.addresses.worker_addresses[member] for member in members)
    codes = routine == SWITCH_CODES
    return job.changed(
        number=number,
        workers=len(members),
        quorum=len(members),
        codec=job.coding.codec if codes else ("switchml", {"workers": len(members)}),
        error_feedback=job.coding.error_feedback and codes,
        worker_addresses=tuple((ip, port - job.number + number) for ip, port in addresses),
        plan=None,
        servers=(),
    )


class PlannedSums:
    """One worker's side of the switch's sums: a SwitchWorker for each routine.

    Actions are those of SwitchWorker, with the routine in the keys of timers; `take` gives results.
    """

    def __init__(self, job: JobConfig, plan: RunPlan, worker: int, granularity: int) -> None:
        self._machine, gpu = divmod(worker, plan.gpus)
        self._own = {"job": job.number, "worker": worker}
        self._tensors = len(plan.tensors)
        self.jobs = {r: c for (r, number), c in switch_jobs(job, plan).items() if number == gpu}
        self.machines: Mapping[str, SwitchWorker] = {
            routine: SwitchWorker(config, self._machine, granularity)
            for routine, config in self.jobs.items()
        }
        self._results: dict[tuple[str, int], SummedLanes] = {}

    @property
    def ports(self) -> dict[int, str]:
        """The local UDP ports, and the routine whose packets come to each."""
        return {
            job.addresses.worker_addresses[self._machine][1]: name
            for name, job in self.jobs.items()
        }

    def reduce(
        self, routine: str, ticket: int, tensor: int, values: Floats, now: int
    ) -> list[Action]:
        """Begin to sum a tensor's values, in iteration `ticket`."""
        own = ticket * self._tensors + tensor
        return self._own_actions(
            routine, self.machines[routine].reduce(own, values, now, tensor), ticket
        )

    def receive(
        self, port: int, ip: str, source_port: int, payloads: Payloads, now: int
    ) -> list[Action]:
        """Take datagrams for one of `ports`."""
        routine = self.ports[port]
        actions = self.machines[routine].receive(ip, source_port, payloads, now)
        return self._own_actions(routine, actions)

    def timer(self, key: Key, now: int) -> list[Action]:
        """Handle the timer of a routine."""
        routine, own = key
        return self._own_actions(routine, self.machines[routine].timer(own, now))

    def take(self, routine: str, ticket: int, tensor: int) -> SummedLanes | None:
        """Return the result of a reduce once, None while there is none."""
        return self._results.pop((routine, ticket * self._tensors + tensor), None)

    def packed(self, routine: str, result: SummedLanes) -> bytes:
        """Return a result as bytes: the sums of values, or of codes, as the data of a piece."""
        job = self.jobs[routine]
        if routine == SWITCH_CODES:
            return _packed(result, job.transport.sum_bits)
        return (result.mean * np.float32(job.workers)).astype("<f4").tobytes()

    def decode(self, data: bytes, n: int) -> Floats:
        """Return the sum of the machines' values of a piece that `packed` made."""
        job = self.jobs[SWITCH_CODES]
        codec, at, values = summed_codec(job), 0, []
        try:
            for part in codec.partitions(n):
                norm, seed = _PARTITION.unpack_from(data, at)
                at += _PARTITION.size
                size = part.lanes * job.transport.sum_bits // 8
                sums = np.frombuffer(data[at : at + size], f">u{job.transport.sum_bits // 8}")
                at += size
                values.append(_decoded(codec, sums, part.stop - part.start, norm, seed, job))
        except (struct.error, ValueError) as error:
            raise CodecError(f"sums of {len(data)} bytes: {error}") from error
        return np.concatenate(values) if values else np.zeros(0, np.float32)

    def _own_actions(
        self, routine: str, actions: Iterable[Action], ticket: int | None = None
    ) -> list[Action]:
        """Keep what is delivered; return the rest as the worker's own."""
        found: list[Action] = []
        for action in actions:
            match action:
                case Deliver(number, result):
                    assert isinstance(result, SummedLanes), result
                    self._results[routine, number] = result
                case SetTimer(key, at):
                    found.append(SetTimer((routine, key), at))
                case CancelTimer(key):
                    found.append(CancelTimer((routine, key)))
                case Record("stall", fields):
                    found.append(Record("stall", fields | self._own))
                case Record():
                    pass  # a planned round has a line of its own
                case _:
                    found.append(action)
        return found


def _packed(result: SummedLanes, sum_bits: int) -> bytes:
    """Return of each partition norm, seed and sums."""
    parts = (
        _PARTITION.pack(norm, seed) + sums.astype(f">u{sum_bits // 8}").tobytes()
        for norm, seed, sums in result.parts
    )
    return b"".join(parts)


def _decoded(codec: Codec, sums: Sums, n: int, norm: int, seed: int, job: JobConfig) -> Floats:
    shared = np.array([aggregation.norm_value(norm)], np.float32)
    mean = codec.decode_sum(sums, n, job.workers, shared, seed)
    total: Floats = mean * np.float32(job.workers)
    return total
