"""Processes as torchrun starts them, on loopback, with a job's switch or server beside them.

They are forked from one process that has imported PyTorch and has kernels ready (ranks_preload.py),
which takes longer than most tests.
"""

import multiprocessing
import os
import signal
import socket
import time
from dataclasses import replace
from multiprocessing import forkserver
from multiprocessing.connection import wait
from pathlib import Path
from unittest.mock import patch

import rank_process
from loopback_job import running

HEAD = """
import json, os, sys, warnings
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import gradplane.torch

torch.set_num_threads(1)
dist.init_process_group(os.environ["GROUP"])
rank, size = dist.get_rank(), dist.get_world_size()

def say(**found):
    print(json.dumps(found), flush=True)
"""
PATIENCE = 240.0  # seconds for all ranks
GRACE = 10.0  # seconds for the others, once one has failed
HERE = Path(__file__).parent
_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(["ranks_preload"])


def run_ranks(job, script, folder, group="gloo", **environment):
    """Run a script, after HEAD, on each worker of the job; return its lines of output by rank.

    group: the back end of its process group.
    """
    with running(job) as hosts, socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # torch's store sets it, too
        probe.bind(("127.0.0.1", 0))  # kept: else another process might get the port
        port = probe.getsockname()[1]
        ranks = []
        for rank, config in enumerate(hosts):
            log = str(folder / f"{config.name}.jsonl")
            (folder / f"{config.name}.json").write_text(replace(config, log=log).to_json())
            own = {
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "RANK": str(rank),
                "GROUP": group,
                "WORLD_SIZE": str(job.workers),
                "GLOO_SOCKET_IFNAME": "lo",
                "OMP_NUM_THREADS": "1",
                "GRADPLANE_NETWORK": str(folder),
                "GRADPLANE_HOST": config.name,
            }
            everything = {**os.environ, **own, **environment}
            ranks.append(forked(HEAD + script, everything, folder / f"rank{rank}"))
        for rank in ranks:
            rank.start()
        try:
            unfinished = _unfinished(ranks)
            for rank in unfinished:
                os.kill(rank.pid, signal.SIGUSR1)  # it writes where it waits
                rank.join(1)
        finally:
            for rank in ranks:
                rank.kill()
                rank.join()
    said = [printed(folder / f"rank{number}") for number in range(len(ranks))]
    codes = [rank.exitcode for rank in ranks]
    assert not any(codes), "".join(
        f"rank {number} ended with {code}:\n{errors}"
        for number, (code, (_, errors)) in enumerate(zip(codes, said, strict=True))
    )
    return [output.splitlines() for output, _ in said]


def forked(source, environment, out):
    """Return a process, not started, that runs a program's text; `printed(out)` is its output."""
    _start_server()
    return _FORKED.Process(target=rank_process.run, args=(source, environment, out))


def _start_server():
    """Start the process that ranks are forked from, unless it runs. It finds modules by PYTHONPATH
    only, and has no threads of its own, which a fork would lose."""
    paths = [HERE, HERE.parent / "hosts", *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1",
           "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # fmt: skip
    with patch.dict(os.environ, own):
        forkserver.ensure_running()


def _unfinished(ranks):
    """Wait for the ranks, not for long once one has failed; return those that still run."""
    end = time.monotonic() + PATIENCE
    while running := [rank for rank in ranks if rank.is_alive()]:
        if any(rank.exitcode for rank in ranks):
            end = min(end, time.monotonic() + GRACE)
        if not wait([rank.sentinel for rank in running], max(end - time.monotonic(), 0)):
            return running
    return []


def printed(out):
    """Return what the program wrote to its standard output and error."""
    return [out.with_suffix(suffix).read_text() for suffix in (".out", ".err")]
