"""A host as a process: start-up, the runner's start signal, the loop, the end.

On standard output the process prints a line {"ready": NAME} when everything is loaded and its
ports are open, and {"finished": NAME} when it has nothing more to do by itself. On standard input
it waits for a line "go ORIGIN": the time.monotonic_ns() that all hosts count from. It runs until
standard input ends, which also happens when its parent process dies.
"""

import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import numpy as np

from gradplane.codecs import Codec
from gradplane.hosts.config import ConfigError, HostConfig, JobConfig
from gradplane.hosts.drivers.host import Host
from gradplane.hosts.drivers.process_memory import exempt_loaded_objects, keep_memory
from gradplane.hosts.drivers.roles import SwitchWorkerRole
from gradplane.hosts.drivers.socket_environment import SocketEnvironment
from gradplane.hosts.drivers.training_host import HostError
from gradplane.hosts.protocols.actions import Send
from gradplane.hosts.protocols.job_codec import make_codec, parts, push_codec
from gradplane.hosts.protocols.results import ReduceError
from gradplane.hosts.protocols.switch_worker import SwitchWorker
from gradplane.hosts.stream.segments import SEGMENT, message_bytes
from gradplane.hosts.stream.stream import Stream
from gradplane.hosts.training.train import TrainingError
from gradplane.hosts.training.user_objects import LoadError
from gradplane.hosts.wire.aggregation import Type, body_size, parse
from gradplane.hosts.wire.payloads import Payloads

_EXPECTED = (ConfigError, LoadError, TrainingError, ReduceError, HostError, OSError)


def run(path: Path, commands: TextIO, answers: TextIO) -> None:
    """Run the host that the file at `path` describes, to the end of `commands`.

    Raises ConfigError, LoadError, OSError (a port or the log) before "ready", and what Host raises.
    """
    keep_memory()
    config = HostConfig.from_json(path.read_text())
    with open(config.log, "w", buffering=1) as log, SocketEnvironment(config.ip, log) as env:
        host = Host(config, env)
        for port in host.ports:
            env.listen(port, host.receive)
        if not config.flows:
            warm_up(config.job)
            if isinstance(host.role, SwitchWorkerRole):
                _exercise_worker(config.job)
        exempt_loaded_objects()
        _say(answers, "ready", config.name)
        if (origin := _origin(commands.readline())) is not None:
            env.origin = origin
            _loop(config, host, env, commands, answers)


def warm_up(job: JobConfig) -> None:
    """Load the compiled kernels of codecs and streams: the first round need not wait for them."""
    _exercise_streams()
    codecs = [push_codec(job), make_codec(job.pull_codec, "pull_codec")]
    if job.bound is not None:
        codecs.append(make_codec(("inceptionn", {"bound": job.bound}), "bound"))
    for codec in codecs:
        for part in parts(codec):
            _exercise(part, job.sum_bits)


def _loop(
    config: HostConfig, host: Host, env: SocketEnvironment, commands: TextIO, answers: TextIO
) -> None:
    running = True

    def stop_at_end() -> None:
        nonlocal running
        running = bool(commands.readline())

    env.watch(commands, stop_at_end)
    host.start()
    reported = False
    while running:
        if host.finished and not reported:
            _say(answers, "finished", config.name)
            reported = True
        env.step()
    host.end()
    env.record(
        "ignored", host=config.name, unsent=env.unsent, too_long=env.too_long, **host.ignored
    )


def _origin(line: str) -> int | None:
    """Return the time in a "go" line, or None at the end of input."""
    if not line:
        return None
    words = line.split()
    if len(words) != 2 or words[0] != "go" or not words[1].isdigit():
        raise ConfigError(f"expected a line 'go ORIGIN' with a time in ns, got {line!r}")
    return int(words[1])


def _say(answers: TextIO, event: str, name: str) -> None:
    print(json.dumps({event: name}), file=answers, flush=True)


def _exercise_streams() -> None:
    """Pass a message of two segments from one stream to another."""
    sender, receiver = Stream(0), Stream(1)
    for sent in sender.send_message(("", 1), bytes(2 * SEGMENT), 0):
        if isinstance(sent, Send):
            message_bytes(sent.payloads)
            for answer in receiver.receive(("", 0), sent.payloads, 0):
                if isinstance(answer, Send):
                    sender.receive(("", 1), answer.payloads, 0)


def _exercise_worker(job: JobConfig) -> None:
    """Reduce a packet's values at a worker whose switch answers at once."""
    worker = SwitchWorker(job, 0)
    actions = worker.reduce(0, np.ones(8, np.float32), 0)
    while actions:
        action = actions.pop()
        if isinstance(action, Send):
            answers = Payloads.of([_answer(job, payload) for payload in action.payloads])
            actions += worker.receive(action.ip, action.port, answers, 0)


def _answer(job: JobConfig, payload: bytes) -> bytes:
    """Return the switch's result for a worker's packet: its norm, or sums of zero."""
    header, _ = parse(payload)
    kind = Type.NORM_RESULT if header.type is Type.NORM else Type.SUMS
    everyone = replace(header, type=kind, worker=job.workers, bitmap=(1 << job.workers) - 1)
    return everyone.pack() + bytes(body_size(kind, header.sum_bits))


def _exercise(codec: Codec, sum_bits: int) -> None:
    x = np.ones(8, np.float32)
    state = codec.start(x.size)
    shared = codec.local(x, state)
    data, _ = codec.encode(x, shared, state=state)
    codec.decode(data, x.size)
    if codec.summable:
        codes, _ = codec.codes(x, shared, state=state)
        sums = np.array(codec.table, f"u{sum_bits // 8}")[codes]
        codec.decode_sum(sums, x.size, np.ones(codes.size, np.int64), shared)


def main(arguments: list[str]) -> int:
    """Run the command; return 0, 1 with a message if the host failed, 2 for wrong usage."""
    if len(arguments) != 1:
        print("usage: python -m gradplane.hosts CONFIG.json", file=sys.stderr)
        return 2
    answers = sys.stdout
    try:
        with contextlib.redirect_stdout(sys.stderr):  # user models may print
            run(Path(arguments[0]), sys.stdin, answers)
    except _EXPECTED as error:
        print(f"gradplane.hosts {arguments[0]}: {error}", file=sys.stderr)
        return 1
    return 0
