"""Processes as torchrun starts them, on loopback, with a job's switch or server beside them.

They are forked from one process that has imported PyTorch, which takes longer than most tests.
"""

import multiprocessing
import os
import socket
import time
from dataclasses import replace

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
_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(
    ["torch", "torch.distributed", "torch.nn.parallel", "gradplane.torch", "ranks"]
)


def run_ranks(job, script, folder, group="gloo", **environment):
    """Run a script, after HEAD, on each worker of the job; return its lines of output by rank.

    group: the back end of its process group.
    """
    program = folder / "program.py"
    program.write_text(HEAD + script)
    with running(job) as hosts, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
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
            arguments = (program, {**os.environ, **own, **environment}, folder / f"rank{rank}")
            ranks.append(_FORKED.Process(target=_run, args=arguments))
        for rank in ranks:
            rank.start()
        try:
            end = time.monotonic() + PATIENCE
            for rank in ranks:
                rank.join(max(end - time.monotonic(), 0))
        finally:
            for rank in ranks:
                rank.kill()
                rank.join()
    said = [_printed(folder / f"rank{number}") for number in range(len(ranks))]
    for rank, (_, errors) in zip(ranks, said, strict=True):
        assert rank.exitcode == 0, errors
    return [output.splitlines() for output, _ in said]


def _run(program, environment, out):
    """Run a program in this process, which is a rank's: its output goes to files."""
    for number, suffix in ((1, ".out"), (2, ".err")):
        with open(out.with_suffix(suffix), "wb") as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    source = program.read_text()
    exec(compile(source, str(program), "exec"), {"__name__": "__main__", "__file__": str(program)})


def _printed(out):
    return [out.with_suffix(suffix).read_text() for suffix in (".out", ".err")]
