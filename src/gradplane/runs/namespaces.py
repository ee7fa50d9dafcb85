"""Entering private namespaces: PID, network and mount, and users where root's rights are missing.

Run alone, `python namespaces.py USERS MOUNT_POINT PROGRAM ARGUMENT...` runs a program inside. It is
started for each try and each script, so it imports little.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

MARK = "GRADPLANE_ISOLATED"
"""The environment variable that processes inside have."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_NEW_NAMESPACES = 0x40000000 | 0x20000000 | 0x00020000  # linux/sched.h: net, pid, mount
_NEW_USERS = 0x10000000


def forked(run: Callable[[], NoReturn]) -> int:
    """Fork a child that dies with us; it runs the function. Return its number."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid:
        os.close(ours)  # theirs stays open for as long as we live
        return pid
    try:
        os.close(theirs)
        die_with_parent()
        os.set_blocking(ours, False)
        try:
            os.read(ours, 1)
            os._exit(1)  # its end: the parent died before
        except BlockingIOError:
            pass
        os.close(ours)
        run()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def unshare(users: bool) -> None:
    """Leave this process's namespaces, users: also that of users. Raises OSError."""
    ids = os.geteuid(), os.getegid()
    if _LIBC.unshare(_NEW_NAMESPACES | (_NEW_USERS if users else 0)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "unshare")
    if users:
        maps = {f"{kind}_map": f"0 {n} 1" for kind, n in zip(("uid", "gid"), ids, strict=True)}
        for name, text in {"setgroups": "deny", **maps}.items():
            try:
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
            except OSError as error:
                error.filename = f"/proc/self/{name}"
                raise
    die_with_parent()  # forgotten with the change of credentials


def init(mount_point: str, run: Callable[[], NoReturn]) -> NoReturn:
    """Act as PID 1 inside: set up, have a child run, end with its status; others end too."""
    import subprocess

    mounts = (
        ["--make-rprivate", "/"],
        ["-t", "proc", "-o", "nosuid,noexec,nodev", "proc", "/proc"],
        ["-t", "tmpfs", "-o", "mode=1777", "gradplane", mount_point],
    )
    for arguments in mounts:
        subprocess.run(["mount", *arguments], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.environ.update({MARK: "1", "TMPDIR": mount_point})
    child = os.fork()
    if child == 0:
        run()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the child to answer
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _main(users: str, mount_point: str, *argv: str) -> int:
    """Run a program in new namespaces; return its status. Without a mount point, only try it."""
    try:
        unshare(bool(users))
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    if not mount_point:
        os.execvp(argv[0], argv)
    inner = forked(lambda: init(mount_point, lambda: os.execvp(argv[0], argv)))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
