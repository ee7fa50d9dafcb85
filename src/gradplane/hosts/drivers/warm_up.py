"""Load a host's compiled kernels before its first round, which then need not wait for them."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from gradplane.codecs import Codec
from gradplane.hosts.config import JobConfig
from gradplane.hosts.drivers.datagram_socket import load_kernel
from gradplane.hosts.protocols.actions import Action, Send
from gradplane.hosts.protocols.job_codec import make_codec, parts, push_codec
from gradplane.hosts.protocols.switch_worker import TIMER, SwitchWorker
from gradplane.hosts.stream.segments import SEGMENT, message_bytes
from gradplane.hosts.stream.stream import Stream
from gradplane.hosts.training.sgd import descend
from gradplane.hosts.wire.aggregation import Type, body_size, parse
from gradplane.hosts.wire.payloads import Payloads


def warm_up(job: JobConfig) -> None:
    """Load the compiled kernels of the job's codecs, of streams, and of a training step."""
    exercise_streams()
    one = np.ones(1, np.float32)
    descend(job.training, one, one, one)
    codecs = [push_codec(job), make_codec(job.coding.pull_codec, "pull_codec")]
    if job.coding.bound is not None:
        codecs.append(make_codec(("inceptionn", {"bound": job.coding.bound}), "bound"))
    for codec in codecs:
        for part in parts(codec):
            _exercise(part, job.transport.sum_bits)


def exercise_switch_worker(job: JobConfig) -> None:
    """Reduce a packet's values at a worker whose switch answers, then some whose sums are lost."""
    workers = len(job.rack(0))
    job = replace(job, leaves=(), workers=workers, quorum=workers)  # one switch answers
    load_kernel(SwitchWorker(job, 0).record)
    worker, vector = SwitchWorker(job, 0), np.ones(8, np.float32)
    _deliver(job, worker, worker.reduce(0, vector, 0), lost=None)
    _deliver(job, worker, worker.reduce(1, vector, 0), lost=Type.INDICES)
    worker.timer(TIMER, 2 * job.transport.timeout_ns)


def _deliver(
    job: JobConfig, worker: SwitchWorker, actions: list[Action], lost: Type | None
) -> None:
    """Answer what a worker sends, and what it sends then, but for packets of type `lost`."""
    while actions:
        action = actions.pop()
        if isinstance(action, Send):
            arrived = [data for data in action.payloads if parse(data)[0].type is not lost]
            if arrived:
                answers = Payloads.of([_answer(job, data) for data in arrived])
                actions += worker.receive(action.ip, action.port, answers, 0)


def exercise_streams() -> None:
    """Pass a message of two segments from one stream to another."""
    sender, receiver = Stream(0), Stream(1)
    for sent in sender.send_message(("", 1), bytes(2 * SEGMENT), 0):
        if isinstance(sent, Send):
            assert message_bytes(sent.payloads) <= sent.payloads.nbytes
            for answer in receiver.receive(("", 0), sent.payloads, 0):
                if isinstance(answer, Send):
                    sender.receive(("", 1), answer.payloads, 0)


def _answer(job: JobConfig, payload: bytes) -> bytes:
    """Return the switch's result for a worker's packet: its norm, or sums of zero."""
    header, _ = parse(payload)
    kind = Type.NORM_RESULT if header.type is Type.NORM else Type.SUMS
    bitmap = (1 << job.workers) - 1
    everyone = replace(header, type=kind, count=job.workers, bitmap=bitmap, flags=0)
    return everyone.pack() + bytes(body_size(kind, header.sum_bits, header.code_bits))


def _exercise(codec: Codec, sum_bits: int) -> None:
    x = np.ones(8, np.float32)
    state = codec.start(x.size)
    shared = codec.local(x, state)
    data, _ = codec.encode(x, shared, state=state)
    codec.decode(data, x.size)
    if codec.carriers:
        steps = codec.reduce(x, state=codec.start(x.size))
        vector = next(steps)
        for _ in codec.carriers:
            with suppress(StopIteration):
                vector = steps.send(vector)
    if codec.summable:
        codes, _ = codec.codes(x, shared, state=state)
        sums = np.array(codec.table, f"u{sum_bits // 8}")[codes]
        codec.decode_sum(sums, x.size, np.ones(codes.size, np.int64), shared)
