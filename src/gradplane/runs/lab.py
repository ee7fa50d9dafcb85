"""Mininet scripts in isolated namespaces: `gradplane lab SCRIPT.py`, or `isolate()` in the script.

The script's network, its processes and its temporary files end with it, however it ends, and
scripts that run at the same time do not see each other (see isolation.py).
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gradplane._suggestions import near_file
from gradplane.runs import isolation
from gradplane.runs.isolation import IsolationError


def run(script: Path, arguments: Sequence[str] = ()) -> int:
    """Run a Python script with its arguments in isolated namespaces; return its exit status.

    It has this process's terminal, environment and current folder. Raises IsolationError where
    namespaces are not allowed or there is no such script.
    """
    if not script.is_file():
        raise IsolationError(f"there is no script {script}{near_file(Path(script))}")
    return _run([str(script), *arguments], [script])


def isolate() -> None:
    """Run this script again in isolated namespaces, and exit with its status; once inside, go on.

    For the first line of a script, which may then be started without `gradplane lab`.
    """
    if not isolation.isolated():
        sys.exit(_run(sys.orig_argv[1:], [sys.argv[0]]))


def _run(python_arguments: Sequence[str], keep: Sequence[Path | str]) -> int:
    command = isolation.command([sys.executable, *python_arguments], keep)
    with _ignored_interrupt(), subprocess.Popen(command) as process:
        status = process.wait()
    return status if status >= 0 else 128 - status


@contextmanager
def _ignored_interrupt() -> Iterator[None]:
    """Leave Ctrl-C to the script, to which the terminal sends it too and which may go on after it.

    This takes a handler, since an ignored signal would be ignored in the script as well.
    """
    former = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
