"""A network's processes as forks of one: statuses, signals, the end of all; by a fork or not."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradplane.runs import isolation
from gradplane.topologies.child_process import Running
from gradplane.topologies.mininet.forks import PYTHON, Forks, load
from gradplane.topologies.topology_errors import NetworkError

SAYS = """
import os, sys
print(sys.argv[1], os.getsid(0) == os.getpid(), flush=True)
sys.stdin.read()
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(params=["fork", "new process"])
def in_kind(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., object]:
    """Return what calls a function where forks are started by a fork, and where they are not."""
    (tmp_path / "says.py").write_text(SAYS)

    def call(function: Callable[..., object]) -> object:
        with isolation.apart() as run:
            return run(function, str(tmp_path), load if request.param == "fork" else None)

    return call


def started(forks: Forks, folder: str, number: int) -> Running:
    pipe = subprocess.PIPE
    with open(os.devnull, "r+b") as null:
        argv = [*PYTHON, "says", str(number)]
        return forks.start(argv, stdin=pipe, stdout=pipe, stderr=null)


def entered(folder: str, prepared: Callable[[], None] | None) -> Iterator[Forks]:
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    if prepared is not None:
        prepared()
    with Forks() as forks:
        yield forks


def many(folder: str, prepared: Callable[[], None] | None) -> list[tuple[bytes, int]]:
    found = []
    for forks in entered(folder, prepared):
        running = [started(forks, folder, number) for number in range(20)]
        for one in running:
            assert one.stdin is not None
            one.stdin.close()  # all end at once
        found = [(one.stdout.read(), one.wait(60)) for one in running if one.stdout is not None]
    return found


def test_all_statuses_are_told_where_many_end_at_once(in_kind: Callable[..., object]) -> None:
    assert in_kind(many) == [(f"{number} True\n".encode(), number) for number in range(20)]


def signalled(folder: str, prepared: Callable[[], None] | None) -> list[int | None]:
    found: list[int | None] = []
    for forks in entered(folder, prepared):
        running = started(forks, folder, 1)
        found.append(running.poll())
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.01)
        running.kill()
        found += [running.wait(60), running.poll()]
        running.terminate()  # too late, and no error
        left = started(forks, folder, 2)
        assert left.stdout is not None and left.stdout.readline()
    found.append(left.wait(60))
    return found


def test_signals_and_the_end_of_all(in_kind: Callable[..., object]) -> None:
    assert in_kind(signalled) == [None, -9, -9, -9]


def killed(folder: str, prepared: Callable[[], None] | None) -> str:
    for forks in entered(folder, prepared):
        forks._process._popen.kill()
        forks._process._popen.wait(60)
        with pytest.raises(NetworkError) as error:
            started(forks, folder, 1)
    return str(error.value)


def test_a_start_after_its_end_says_so(in_kind: Callable[..., object]) -> None:
    name = "the process that starts switches and hosts"
    assert in_kind(killed) == f"{name} ended with status -9: it printed nothing"


def other_programs() -> tuple[bytes, int]:
    pipe = subprocess.PIPE
    with Forks() as forks, open(os.devnull, "r+b") as null:
        running = forks.start(["sh", "-c", "echo $0; exit 3"], stdin=pipe, stdout=pipe, stderr=null)
        assert running.stdout is not None
        return running.stdout.read(), running.wait(60)


def test_programs_other_than_pythons_are_started_as_they_are() -> None:
    assert other_programs() == (b"sh\n", 3)
