"""The processes of a network as forks of one, which loads once what all of them share.

A host's imports and kernels take a second of processor time and some 100 MiB, and a switch's not
much less: a fork has them at once, and shares their memory. The process has no thread besides its
own, so that it can fork; it is itself a fork of the caller where that is so, too. It gets requests
over a socket of type SOCK_SEQPACKET, each a JSON object with the descriptors of the new process's
standard input, output and errors, and of a pipe for its exit status:

    {"argv": [MODULE, ARGUMENT...], "namespaces": PID or null}

The new process runs what `python -P -m MODULE ARGUMENT...` runs, in the namespaces of that process.
The answer, a line on standard output, is {"pid": PID}. When the new process ends, its status is
written to its pipe, as subprocess.Popen has it: negative for a signal. The process ends when the
socket is closed, and its forks with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from gradplane import _one_thread
from gradplane.hosts.config import HostConfig
from gradplane.topologies.child_process import LEASH, PYTHON, Process, Running

DESCRIPTORS = 4
"""The descriptors of a request: standard input, output, errors, and the status."""

REQUEST_BYTES = 1 << 16

Kind = tuple[str, str, int]
"""Role, coding and bits of the sums of a host, which decide the kernels that it loads."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15  # linux/prctl.h
_NAMESPACES = {"net": 0x40000000, "mnt": 0x00020000}  # linux/sched.h
_loaded: set[Kind] = set()
_whole: list[bool] = []  # True once `load` was called


def load() -> None:
    """Load what the processes of any network share: modules, and the kernels of all hosts."""
    from gradplane.hosts.drivers import host_process, warm_up
    from gradplane.switch.daemon import live_switch  # noqa: F401 - for switches

    warm_up.exercise_streams()
    host_process.exempt_loaded_objects()
    _whole.append(True)


class Forks:
    """The process whose forks are a network's switches and hosts. A context manager: ends it."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        name = "the process that starts switches and hosts"
        with theirs:
            if _may_fork():

                def child(*_: object, stderr: IO[bytes], **__: object) -> Running:
                    return _Child(self._requests, theirs, stderr)

                self._process = Process(name, [], child)
            else:
                argv = [*PYTHON, __name__, str(theirs.fileno())]
                environment = os.environ | _one_thread.ENVIRONMENT
                options: dict[str, Any] = {"pass_fds": [theirs.fileno()], "env": environment}
                self._process = Process(name, argv, start_new_session=True, **options)

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.close()
        self._process.close()

    def start(
        self,
        argv: Sequence[str],
        *,
        stdin: int,
        stdout: int,
        stderr: IO[bytes],
        namespaces: int | None = None,
        **_: object,
    ) -> Running:
        """Start a command in a session of its own; Python's are forks.

        namespaces: of the process of that number, for a fork. stdin and stdout are subprocess.PIPE.
        Raises NetworkError where the process that forks has ended."""
        if tuple(argv[: len(PYTHON)]) != PYTHON:
            pipes: dict[str, Any] = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
            return subprocess.Popen([*LEASH, *argv], start_new_session=True, **pipes)
        (commands, to_it), (from_it, answers), (status, told) = (os.pipe() for _ in range(3))
        request = {"argv": [*argv[len(PYTHON) :]], "namespaces": namespaces}
        given = commands, answers, stderr.fileno(), told
        try:
            socket.send_fds(self._requests, [json.dumps(request).encode()], given)
        except BrokenPipeError:
            self._process.wait_for("pid")  # raises what it said at its end
        for descriptor in (commands, answers, told):
            os.close(descriptor)
        pid = self._process.wait_for("pid")["pid"]
        return _Fork(pid, open(to_it, "wb"), open(from_it, "rb"), open(status, "rb"))


class _Started:
    """A process that was forked, as child_process.Running."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self._returned: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status once it has ended. Raises subprocess.TimeoutExpired."""
        if self._returned is None:
            if not select.select([self._end], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self._returned = self._status()
        return self._returned

    def terminate(self) -> None:
        """Send SIGTERM, unless it has ended."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    _end: IO[bytes] | int
    """A file that can be read once it has ended."""

    def _status(self) -> int:
        raise NotImplementedError


class _Fork(_Started):
    """A fork of another process, which writes its status."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], status: IO[bytes]) -> None:
        super().__init__(pid, stdin, stdout)
        self._end: IO[bytes] = status

    def _status(self) -> int:
        # Nothing was written if the process that forked it was killed.
        with self._end:
            return int(self._end.read() or -signal.SIGKILL)


class _Child(_Started):
    """A fork of this process, which serves requests."""

    def __init__(self, ours: socket.socket, theirs: socket.socket, stderr: IO[bytes]) -> None:
        (commands, to_it), (from_it, answers) = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            ours.close()
            _become(lambda: serve(theirs), [commands, answers, os.dup(stderr.fileno())])
        os.close(commands)
        os.close(answers)
        super().__init__(pid, open(to_it, "wb"), open(from_it, "rb"))  # noqa: SIM115 - the owner's
        self._end: int = os.pidfd_open(pid)

    def _status(self) -> int:
        os.close(self._end)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _may_fork() -> bool:
    """Return whether a fork of this process is whole, and has loaded what it is to share."""
    return bool(_whole) and len(os.listdir("/proc/self/task")) == 1


def serve(requests: socket.socket) -> int:
    """Fork a process for each request, until the socket is closed."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what users' modules print is no answer
    statuses: dict[int, int] = {}
    # A handler would be interrupted by the next process's end; it only wakes the loop.
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
            return 0
        request = json.loads(data)
        module, *arguments = request["argv"]
        if module == "gradplane.hosts":
            _load_kernels(Path(arguments[0].partition("@")[0]))
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for descriptor in (requests.fileno(), *statuses.values()):
                os.close(descriptor)
            sys.stdout = answers
            _become(partial(_run, module, arguments, request["namespaces"]), descriptors)
        statuses[pid] = descriptors[-1]
        for descriptor in descriptors[:-1]:
            os.close(descriptor)
        print(json.dumps({"pid": pid}), file=answers, flush=True)


def _report_ended(statuses: dict[int, int]) -> None:
    """Write the status of each process that has ended to its pipe."""
    for pid in list(statuses):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            descriptor = statuses.pop(pid)
            with suppress(BrokenPipeError):  # nobody waits for it any more
                os.write(descriptor, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(descriptor)


def _load_kernels(path: Path) -> None:
    """Load what the host needs, if none before it did; a host says itself what it cannot load."""
    from gradplane.hosts.drivers import host_process

    with suppress(Exception):
        config = HostConfig.from_json(path.read_text())
        kind = config.role, repr(config.job.coding), config.job.transport.sum_bits
        if kind not in _loaded:
            _loaded.add(kind)
            host_process.load_kernels(config)
            host_process.exempt_loaded_objects()


def _become(run: Callable[[], int], descriptors: Sequence[int]) -> NoReturn:
    """Run a function in a fork that ends with its parent, in a session of its own; end.

    descriptors: of its standard input, output and errors, and of others; all are closed."""
    status = 1
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        for descriptor in descriptors:
            os.close(descriptor)
        status = run()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run(module: str, arguments: Sequence[str], namespaces: int | None) -> int:
    """Run what `python -m` runs."""
    if namespaces is not None:
        _enter(namespaces)
    name = Path(arguments[0]).stem if module == "gradplane.hosts" else "gradplane"
    _LIBC.prctl(_PR_SET_NAME, name.encode())  # for ps and top
    np.random.seed()  # a process of its own would have other random numbers
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


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


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        sys.exit(serve(asked))
