"""Hosts as forks of one process, which loads once what all of them share.

A host's imports and kernels take a second of processor time, and some 100 MiB: a fork has them at
once, and shares their memory. The process has no thread besides its own, so that it can fork. It
gets requests over a socket of type SOCK_SEQPACKET, each a JSON object with the descriptors of the
host's standard input, output and errors, and of a pipe for its exit status:

    {"config": PATH, "namespaces": PID}    the host is to be in the namespaces of that process

The answer, a line on standard output, is {"pid": PID}. When the host ends, its status is written
to its pipe, as subprocess.Popen has it: negative for a signal. The process ends when the socket is
closed; its hosts end as others do, with their standard input.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gradplane.hosts.config import HostConfig
from gradplane.hosts.drivers import host_process

DESCRIPTORS = 4
"""The descriptors of a request: standard input, output, errors, and the status."""

REQUEST_BYTES = 1 << 14

Kind = tuple[str, str, int]
"""What decides which kernels a host loads: role, coding, bits of the sums."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_NAME = 15  # linux/prctl.h
_NAMESPACES = {"net": 0x40000000, "mnt": 0x00020000}  # linux/sched.h


def serve(requests: socket.socket) -> None:
    """Fork a host for each request, until the socket is closed."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what users' modules print is no answer
    statuses: dict[int, int] = {}
    loaded: set[Kind] = set()
    # A handler would be interrupted by the next host's end; it only wakes the loop.
    ended, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([requests, ended], [], [])
        if ended in ready:
            ended.recv(REQUEST_BYTES)
            _report_ended(statuses)
        if requests not in ready:
            continue
        data, descriptors, *_ = socket.recv_fds(requests, REQUEST_BYTES, DESCRIPTORS)
        if not data:
            return
        request = json.loads(data)
        _load(Path(request["config"]), loaded)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for descriptor in (requests.fileno(), *statuses.values()):
                os.close(descriptor)
            sys.stdout = answers
            _be_host(request, descriptors)
        statuses[pid] = descriptors[-1]
        for descriptor in descriptors[:-1]:
            os.close(descriptor)
        print(json.dumps({"pid": pid}), file=answers, flush=True)


def _report_ended(statuses: dict[int, int]) -> None:
    """Write the status of each host that has ended to its pipe."""
    for pid in list(statuses):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            descriptor = statuses.pop(pid)
            with suppress(BrokenPipeError):  # nobody waits for it any more
                os.write(descriptor, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(descriptor)


def _load(path: Path, loaded: set[Kind]) -> None:
    """Load what the host needs, if none before it did; a host says itself what it cannot load."""
    with suppress(Exception):
        config = HostConfig.from_json(path.read_text())
        kind = config.role, repr(config.job.coding), config.job.transport.sum_bits
        if kind not in loaded:
            loaded.add(kind)
            host_process.load_kernels(config)
            host_process.exempt_loaded_objects()


def _be_host(request: dict[str, Any], descriptors: Sequence[int]) -> None:
    """Run the host in the fork, and end."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate(descriptors[:-1]):
            os.dup2(descriptor, number)
        for descriptor in descriptors:
            os.close(descriptor)
        _enter(request["namespaces"])
        _LIBC.prctl(_PR_SET_NAME, Path(request["config"]).stem.encode())  # for ps and top
        np.random.seed()  # a process of its own would have other random numbers
        status = host_process.main([request["config"]])
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _enter(pid: int) -> None:
    """Enter the namespaces of a process. Raises OSError where that fails."""
    here = os.getcwd()
    files = {name: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in _NAMESPACES}
    for name, file in files.items():
        if _LIBC.setns(file, _NAMESPACES[name]) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), f"/proc/{pid}/ns/{name}")
        os.close(file)
    os.chdir(here)
