"""Processes as torchrun starts them, on loopback, with a job's switch or server beside them."""

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from loopback_job import running

SOURCE = Path(__file__).parents[2] / "src"
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
                "PYTHONPATH": str(SOURCE),
                "GRADPLANE_NETWORK": str(folder),
                "GRADPLANE_HOST": config.name,
            }
            ranks.append(
                subprocess.Popen(
                    [sys.executable, str(program)],
                    env={**os.environ, **own, **environment},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        try:
            found = [rank.communicate(timeout=240) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    for rank, (_, errors) in zip(ranks, found, strict=True):
        assert rank.returncode == 0, errors
    return [output.splitlines() for output, _ in found]
