"""Private namespaces: network, PID and mount, and a user namespace where we are not root, or root
without the capabilities.

Everything inside ends with the first process there: veth links, switches, hosts, and temporary
files too, since TMPDIR is a private tmpfs. When the caller dies, even by SIGKILL, the kernel kills
that first process and so everything else:

    caller ── seed ── outside ── init (PID 1) ── the function
    caller ──  (leash) outside ── init (PID 1) ── the program
      dies: ends    dies: kills    dies: kills all

The seed is a process without threads that has loaded what calls share; each call is a fork of it.

    call(function, *args)       runs a module's function inside; returns its result or raises
    apart()                     the same for many calls, with the caller's namespaces
    prepare(load)               starts the seed, which loads while the caller does other things
    command(argv)               the command line that runs a program inside
    can_isolate()               whether this machine allows it and, if not, why
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from gradplane import _one_thread
from gradplane.runs import namespaces
from gradplane.runs.namespaces import die_with_parent, forked, init, unshare

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
Load = Callable[[], None]

_CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN", "NET_RAW")  # the last for switches' and hosts' sockets
_PYTHON = (sys.executable, "-I", "-S")
_NEEDED = {"mount": "mount", "ip": "iproute2"}
# Standard directories that an experiment hardly needs; the private tmpfs goes over one of them.
_MOUNT_POINTS = ("/dev/shm", "/media", "/srv", "/mnt")
# The parent may have died before the signal was asked for, hence the comparison.
_LEASH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
_SEED = """
import sys
from gradplane.runs import isolation
isolation.serve_forks(int(sys.argv[1]))
"""
_PATIENCE = 5.0  # seconds for the inside to end by itself after Ctrl-C


class IsolationError(Exception):
    """Namespaces cannot be created, or the process inside ended without a result."""


def isolated() -> bool:
    """Return whether this process is in private namespaces already."""
    return namespaces.MARK in os.environ


@cache
def can_isolate() -> tuple[bool, str]:
    """Return (True, "") or (False, the reason and what to do); tried once and remembered."""
    if isolated():
        return True, ""
    missing = [package for tool, package in _NEEDED.items() if shutil.which(tool) is None]
    if missing:
        return False, f"needs {', '.join(missing)}: apt-get install {' '.join(missing)}"
    from gradplane import _privileges

    trial = [*_entering(""), "ip", "link", "add", "trial", "type", "veth"]
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
    _check_possible()
    return [*_leash(), *_entering(_mount_point(keep)), *argv]


def _check_possible() -> None:
    possible, reason = can_isolate()
    if not possible:
        raise IsolationError(reason)


def _leash() -> list[str]:
    return [*_PYTHON, "-c", _LEASH, str(os.getpid())]


def _entering(mount_point: str) -> list[str]:
    return [*_PYTHON, namespaces.__file__, "users" if _needs_users() else "", mount_point]


def _needs_users() -> bool:
    """Return whether it takes a user namespace to make the others."""
    from gradplane import _privileges

    return os.geteuid() != 0 or bool(_privileges.missing(_CAPABILITIES))


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


# Calls, as the caller sees them


def call(
    function: Callable[..., T],
    *args: Any,
    keep: Sequence[Path | str] = (),
    load: Load | None = None,
) -> T:
    """Run `function(*args)` in private namespaces; return its result or raise its exception.

    Function, arguments and result are pickled: a module's function, not a lambda. It shares
    stdin, stdout and stderr. load: see prepare. In an isolated process this is an ordinary call.
    Raises IsolationError where namespaces are not allowed, and when the inside ended without a
    result.
    """
    if isolated():
        return function(*args)
    _check_possible()
    with _fork(_Namespaces(_needs_users(), _mount_point(keep)), load) as ask:
        return cast(T, _unwrap(ask(function, *args)))


@contextlib.contextmanager
def apart() -> Iterator[Callable[..., Any]]:
    """Start a process with the caller's namespaces; yield what runs calls in it, as `call` does.

    It runs one call after another, and imports what they need once."""
    with _fork(None, None) as ask:
        yield lambda function, *args: _unwrap(ask(function, *args))


def prepare(load: Load) -> None:
    """Start the process from which calls are forked, if none runs, and have it load what they
    share; do not wait for it.

    load: a module's function. It is called once, and must leave no threads."""
    if not isolated():
        _seed().send(_Request(load))


@dataclass(frozen=True)
class _Namespaces:
    users: bool
    mount_point: str


@dataclass(frozen=True)
class _Surroundings:
    """The caller's surroundings, which a fork takes over: environment, directory, module path."""

    environment: dict[str, str]
    directory: str
    path: list[str]

    @classmethod
    def here(cls) -> _Surroundings:
        path = [entry or os.getcwd() for entry in sys.path]
        # with which programs that are started inside find the modules that we find
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        return cls(environment, os.getcwd(), path)

    def enter(self) -> None:
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.directory)
        sys.path[:] = self.path


@dataclass(frozen=True)
class _Request:
    """A request to the seed: to load something, and to fork where there are surroundings."""

    load: Load | None
    surroundings: _Surroundings | None = None
    namespaces: _Namespaces | None = None  # None: the caller's


class _Seed:
    """The process from which a caller's calls are forked. It ends when the socket is closed, and
    so with its caller: a leash would break with the thread that started it."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            argv = [sys.executable, "-P", "-c", _SEED, str(theirs.fileno())]
            environment = _Surroundings.here().environment
            self._process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], env=environment)
        self.caller = os.getpid()

    @property
    def runs(self) -> bool:
        return self.caller == os.getpid() and self._process.poll() is None

    def send(self, request: _Request, descriptors: Sequence[int] = ()) -> None:
        data = pickle.dumps(request)
        # Whoever waits for an answer sees that it has ended.
        with self._lock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._requests, [b"+"], descriptors)
            self._requests.sendall(len(data).to_bytes(4, "big") + data)

    def close(self) -> None:
        """End it, and calls that still run."""
        self._requests.close()
        if self.caller == os.getpid():
            self._process.kill()
            self._process.wait()


_current: list[_Seed] = []
_starting = threading.Lock()


def _seed() -> _Seed:
    with _starting:
        if not (_current and _current[0].runs):
            _current[:] = [_Seed()]
            atexit.unregister(_close_seed)
            atexit.register(_close_seed)
        return _current[0]


def _close_seed() -> None:
    _current.pop().close()


@contextlib.contextmanager
def _fork(inside: _Namespaces | None, load: Load | None) -> Iterator[Callable[..., bytes]]:
    """Have a process forked for calls, and yield what returns the reply to one."""
    from multiprocessing.connection import Connection, wait

    ours, theirs = socket.socketpair()
    over, ending = os.pipe()  # the status when all has ended
    with open(over, "rb") as end, Connection(ours.detach()) as tasks, _standard_files() as files:
        try:
            request = _Request(load, _Surroundings.here(), inside)
            _seed().send(request, [*files, theirs.fileno(), ending])
        finally:
            theirs.close()
            os.close(ending)

        def ask(function: Callable[..., Any], *args: Any) -> bytes:
            with contextlib.suppress(OSError):  # it has ended: its status says why
                tasks.send_bytes(pickle.dumps((function, args)))
            if tasks in wait([tasks, over]):
                with contextlib.suppress(EOFError, ConnectionResetError):
                    return tasks.recv_bytes()
            status = end.read().decode()
            how = f"status {status}" if status else "killed"
            raise IsolationError(f"the isolated process ended without a result, {how}")

        try:
            yield ask
            _shut(tasks, socket.SHUT_WR)  # no more tasks
            end.read()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):  # which it gets too, and may clean up
                wait([over], _PATIENCE)
            _shut(tasks, socket.SHUT_RDWR)
            end.read()
            raise


def _shut(connection: Connection, how: int) -> None:
    other = socket.socket(fileno=os.dup(connection.fileno()))
    with other, contextlib.suppress(OSError):  # it is shut already
        other.shutdown(how)


@contextlib.contextmanager
def _standard_files() -> Iterator[list[int]]:
    """Yield the descriptors of standard input, output and errors, /dev/null for a closed one."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        yield [number if _is_open(number) else nothing for number in range(3)]
    finally:
        os.close(nothing)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _unwrap(reply: bytes) -> Any:
    value, error, seconds = pickle.loads(reply)
    _of_calls.append(seconds)
    if error is not None:
        raise error
    return value


_of_calls: list[float] = []


def processor_seconds() -> float:
    """Return the processor time so far of this process, of its children that have ended, and of
    the calls that it made."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    own = sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, kinds))
    return own + sum(_of_calls)


# The seed, and the forks that run calls


def serve_forks(descriptor: int) -> None:
    """Be the seed: load and fork as the caller asks, until it closes the socket.

    Its forks calculate in one thread each: there are many of them."""
    os.environ.update(_one_thread.ENVIRONMENT)
    import numpy as np  # which reads them now

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the calls to answer
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks that end need not be waited for
    loaded: set[Load] = set()
    requests = socket.socket(fileno=descriptor)
    while True:
        more, files, *_ = socket.recv_fds(requests, 1, 5)
        if not more:
            return
        request: _Request = pickle.loads(_exactly(requests, int.from_bytes(_exactly(requests, 4))))
        if request.load is not None and request.load not in loaded:
            loaded.add(request.load)
            with contextlib.suppress(Exception):  # a call that needs it says what is wrong
                request.load()
        if request.surroundings is None:
            continue
        if os.fork() == 0:
            requests.close()
            np.random.seed()  # a process of its own would have other random numbers
            _outside(request.surroundings, request.namespaces, files)
        for file in files:
            os.close(file)


def _exactly(where: socket.socket, size: int) -> bytes:
    """Receive so many bytes."""
    data = b""
    while len(data) < size and (more := where.recv(size - len(data))):
        data += more
    return data


def _outside(
    surroundings: _Surroundings, namespaces: _Namespaces | None, files: Sequence[int]
) -> NoReturn:
    """Start the process for calls, in namespaces of its own if asked to, and wait for its end.

    End it when the caller wants nothing more of it."""
    status = 1
    try:
        die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for file in files:
            os.set_inheritable(file, False)
        *standard, tasks, ended = files
        for number, file in enumerate(standard):
            os.dup2(file, number)
            os.close(file)
        surroundings.enter()

        def run() -> NoReturn:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.close(ended)
            sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
            answer(tasks)

        if namespaces is None:
            inner = forked(run)
        else:
            unshare(namespaces.users)
            point = namespaces.mount_point
            inner = forked(lambda: init(point, run))
        status = _await(inner, tasks)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(BaseException):
            os.write(ended, str(status).encode())
        os._exit(0)


def _await(pid: int, tasks: int) -> int:
    """Return a child's status; kill it when the other end of the socket is shut for both ways."""
    poll = select.poll()
    poll.register(os.pidfd_open(pid), select.POLLIN)
    poll.register(tasks, 0)  # for its hangup alone
    if tasks in dict(poll.poll()):
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def answer(descriptor: int) -> NoReturn:
    """Run pickled tasks until there are no more, and write each one's result or exception.

    At Ctrl-C, which the caller gets too, end without a message."""
    from multiprocessing.connection import Connection

    status = 0
    try:
        tasks = Connection(descriptor)
        with contextlib.suppress(EOFError):
            while True:
                data = _run(tasks.recv_bytes())
                with contextlib.suppress(BrokenPipeError):  # the caller is gone
                    tasks.send_bytes(data)
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    finally:
        for file in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                file.flush()
        os._exit(status)


def _run(data: bytes) -> bytes:
    began = processor_seconds()

    def reply(value: Any, error: BaseException | None) -> bytes:
        return pickle.dumps((value, error, processor_seconds() - began))

    try:
        function, args = pickle.loads(data)
        return reply(function(*args), None)
    except Exception as error:
        text = traceback.format_exc()
        with contextlib.suppress(Exception):
            pickled = reply(None, error)
            pickle.loads(pickled)  # some exceptions can be pickled and not unpickled
            return pickled
        return reply(None, IsolationError(f"in the isolated process:\n{text}"))
