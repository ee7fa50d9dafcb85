"""Private namespaces: network, PID and mount, and a user namespace where we are not root, or root
without the capabilities.

Everything inside ends with the first process there: veth links, switches, hosts, and temporary
files too, since TMPDIR is a private tmpfs. When the caller dies, even by SIGKILL, the kernel kills
that first process and so everything else:

    caller ── leash ── unshare ── init (PID 1) ── the function or program
        dies: kills  dies: kills  dies: kills all

    call(function, *args)       runs a module's function inside; returns its result or raises
    apart()                     the same for many calls, with the caller's namespaces
    command(argv)               the command line that runs a program inside
    can_isolate()               whether this machine allows it and, if not, why
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")

_MARK = "GRADPLANE_ISOLATED"
_UNSHARE = ("unshare", "--net", "--pid", "--fork", "--mount", "--kill-child", "--mount-proc")
_CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN", "NET_RAW")  # the last for switches' and hosts' sockets
_PYTHON = (sys.executable, "-I", "-S")
_NEEDED = {"unshare": "util-linux", "mount": "mount", "ip": "iproute2"}
# Standard directories that an experiment hardly needs; the private tmpfs goes over one of them.
_MOUNT_POINTS = ("/dev/shm", "/media", "/srv", "/mnt")
# PR_SET_PDEATHSIG is 1. The parent may have died before it was set, hence the comparison.
_LEASH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
_ANSWER = """
import sys
from gradplane.runs import isolation
isolation.answer(*map(int, sys.argv[1:]))
"""
_PATIENCE = 5.0  # seconds for the inside to end by itself after Ctrl-C


class IsolationError(Exception):
    """Namespaces cannot be created, or the process inside ended without a result."""


def isolated() -> bool:
    """Return whether this process is in private namespaces already."""
    return _MARK in os.environ


@cache
def can_isolate() -> tuple[bool, str]:
    """Return (True, "") or (False, the reason and what to do); tried once and remembered."""
    if isolated():
        return True, ""
    missing = [package for tool, package in _NEEDED.items() if shutil.which(tool) is None]
    if missing:
        return False, f"needs {', '.join(missing)}: apt-get install {' '.join(missing)}"
    from gradplane import _privileges

    trial = [*_unshare(), "ip", "link", "add", "trial", "type", "veth"]
    tried = subprocess.run(trial, capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return True, ""
    return False, (
        f"no private namespaces ({tried.stderr.strip()}): {_privileges.remedy(_CAPABILITIES)},"
        " or allow user namespaces (sysctl user.max_user_namespaces,"
        " kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
    )


def command(argv: Sequence[str], keep: Sequence[Path | str] = ()) -> list[str]:
    """Return the command line by which this process runs `argv` in private namespaces.

    The current directory, Python's own files and the paths in `keep` stay visible; TMPDIR is
    private. Raises IsolationError where the machine does not allow it.
    """
    if isolated():
        return list(argv)
    possible, reason = can_isolate()
    if not possible:
        raise IsolationError(reason)
    return [*_leash(), *_unshare(), *_PYTHON, __file__, _mount_point(keep), *argv]


def _leash() -> list[str]:
    return [*_PYTHON, "-c", _LEASH, str(os.getpid())]


def call(function: Callable[..., T], *args: Any, keep: Sequence[Path | str] = ()) -> T:
    """Run `function(*args)` in private namespaces; return its result or raise its exception.

    Function, arguments and result are pickled: a module's function, not a lambda. It shares
    stdin, stdout and stderr. In an isolated process this is an ordinary call. Raises
    IsolationError where namespaces are not allowed, and when the inside ended without a result.
    """
    if isolated():
        return function(*args)
    with _answering(lambda argv: command(argv, keep)) as ask:
        reply = ask(function, *args)
    return cast(T, _unwrap(reply))


@contextlib.contextmanager
def apart() -> Iterator[Callable[..., Any]]:
    """Start a process with the caller's namespaces; yield what runs calls in it, as `call` does.

    It runs one call after another, and imports what they need once."""
    with _answering(lambda argv: [*_leash(), *argv]) as ask:
        yield lambda function, *args: _unwrap(ask(function, *args))


@contextlib.contextmanager
def _answering(wrapped: Callable[[list[str]], list[str]]) -> Iterator[Callable[..., bytes]]:
    """Start a process for pickled calls, and yield what returns the reply to a call.

    wrapped: returns the command line around the process's own."""
    task_read, task_write = os.pipe()
    result_read, result_write = os.pipe()
    inside = (task_read, result_write)
    argv = wrapped([sys.executable, "-P", "-c", _ANSWER, *map(str, inside)])
    with _receiving(result_read) as results, _sending(task_write) as tasks:
        try:
            process = subprocess.Popen(argv, pass_fds=inside, env=_environment())
        finally:
            for fd in inside:
                os.close(fd)

        def ask(function: Callable[..., Any], *args: Any) -> bytes:
            _send(tasks, pickle.dumps((function, args)))
            try:
                return results.recv_bytes()
            except EOFError:
                status = process.wait()
                text = f"the isolated process ended without a result, status {status}"
                raise IsolationError(text) from None

        with _ended(process):
            yield ask
            tasks.close()


def answer(task_fd: int, result_fd: int) -> None:
    """Run pickled tasks inside until there are no more, and write each one's result or exception.

    At Ctrl-C, which the caller gets too, end without a message."""
    with _receiving(task_fd) as tasks, _sending(result_fd) as results:
        try:
            with contextlib.suppress(EOFError):
                while True:
                    _send(results, _run(tasks.recv_bytes()))
        except KeyboardInterrupt:
            sys.exit(128 + signal.SIGINT)


def _receiving(fd: int) -> Connection:
    from multiprocessing.connection import Connection  # not above, for PID 1's start

    return Connection(fd, writable=False)


def _sending(fd: int) -> Connection:
    from multiprocessing.connection import Connection

    return Connection(fd, readable=False)


def _run(data: bytes) -> bytes:
    try:
        function, args = pickle.loads(data)
        return pickle.dumps((function(*args), None))
    except Exception as error:
        text = traceback.format_exc()
        with contextlib.suppress(Exception):
            pickled = pickle.dumps((None, error))
            pickle.loads(pickled)  # some exceptions can be pickled and not unpickled
            return pickled
        return pickle.dumps((None, IsolationError(f"in the isolated process:\n{text}")))


def _send(where: Connection, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # the other side is gone: its status says why
        where.send_bytes(data)


def _unwrap(reply: bytes) -> Any:
    value, error = pickle.loads(reply)
    if error is not None:
        raise error
    return value


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave only when `process` has ended; after Ctrl-C, which it gets too, it may clean up."""
    try:
        yield
        process.wait()
    except BaseException as error:
        patience = _PATIENCE if isinstance(error, KeyboardInterrupt) else 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
        process.kill()
        process.wait()
        raise


def _unshare() -> list[str]:
    from gradplane import _privileges  # not above: this file also runs alone, as PID 1

    may = os.geteuid() == 0 and not _privileges.missing(_CAPABILITIES)
    return [*_UNSHARE, *(() if may else ("--map-root-user",)), "--"]


def _environment() -> dict[str, str]:
    """Return our environment, with which the modules that we find are found inside."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return {**os.environ, "PYTHONPATH": path}


def _mount_point(keep: Sequence[Path | str]) -> str:
    """Return a directory that a private tmpfs may hide: nothing in `keep` is below it."""
    used = (os.getcwd(), sys.prefix, __file__, *sys.path, *keep)
    needed = [Path(path).resolve() for path in used]
    for point in map(Path, _MOUNT_POINTS):
        if point.is_dir() and not any(path.is_relative_to(point) for path in needed):
            return str(point)
    raise IsolationError(
        f"no place for private temporary files: {', '.join(_MOUNT_POINTS)} are in use or missing;"
        " run from another directory, or with another output directory"
    )


def _init(mount_point: str, argv: Sequence[str]) -> NoReturn:
    """Act as PID 1 inside: set up, run `argv`, end with its status; other processes end too."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    tmpfs = ["mount", "-t", "tmpfs", "-o", "mode=1777", "gradplane", mount_point]
    subprocess.run(tmpfs, check=True)
    os.environ.update({_MARK: "1", "TMPDIR": mount_point})
    child = os.fork()
    if child == 0:
        os.execvp(argv[0], list(argv))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the child to answer
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    _init(sys.argv[1], sys.argv[2:])
