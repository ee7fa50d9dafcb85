"""Namespaces of one's own, really made; and what is left of them after a SIGKILL: nothing."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from namespaces_left import await_gone, processes_in

from gradplane.runs import isolation

NET = "/proc/self/ns/net"
VICTIM = """
import subprocess
from gradplane.runs import isolation
script = '''ip link add veth-victim type veth
mnexec -n sleep 1000 &
readlink /proc/self/ns/net /proc/self/ns/pid; mktemp; exec sleep 1000'''
isolation.call(subprocess.call, ["sh", "-c", script])
"""


def test_possible_here():
    assert isolation.can_isolate() == (True, "")


def test_namespaces_temporary_folder_and_loopback_are_private():
    assert isolation.call(os.readlink, NET) != os.readlink(NET)
    assert isolation.call(subprocess.getoutput, "ps -e -o pid= | head -1").strip() == "1"
    assert "LOOPBACK,UP" in isolation.call(subprocess.getoutput, "ip link show lo")
    created = isolation.call(tempfile.mkdtemp)
    assert not Path(created).exists()


def test_exceptions_come_out():
    with pytest.raises(ValueError, match="^invalid literal for int"):
        isolation.call(int, "seven")


def test_a_process_that_ends_without_a_result():
    with pytest.raises(isolation.IsolationError) as error:
        isolation.call(os._exit, 3)
    assert str(error.value) == "the isolated process ended without a result, status 3"


def test_nested_calls_stay_in_the_same_namespaces():
    inside, nested = isolation.call(eval, _NESTED)
    assert inside == nested


_NESTED = (
    "(lambda iso, os: (os.readlink('/proc/self/ns/net'),"
    " iso.call(os.readlink, '/proc/self/ns/net')))"
    "(__import__('importlib').import_module('gradplane.runs.isolation'), __import__('os'))"
)


def test_command_runs_a_program():
    output = subprocess.check_output(isolation.command(["readlink", NET]), text=True)
    assert re.fullmatch(r"net:\[\d+\]\n", output) and output.strip() != os.readlink(NET)


def test_kept_paths_are_not_hidden(tmp_path):
    kept = Path("/dev/shm") / tmp_path.name
    kept.mkdir()
    try:
        argv = isolation.command(["sh", "-c", f"echo inside > {kept}/file; echo $TMPDIR"], [kept])
        assert not subprocess.check_output(argv, text=True).startswith("/dev/shm")
        assert (kept / "file").read_text() == "inside\n"
    finally:
        (kept / "file").unlink(missing_ok=True)
        kept.rmdir()


def test_no_place_for_temporary_files():
    with pytest.raises(isolation.IsolationError) as error:
        isolation.command(["true"], ["/dev/shm/a", "/media/b", "/srv/c", "/mnt/d"])
    assert str(error.value) == (
        "no place for private temporary files: /dev/shm, /media, /srv, /mnt are in use or"
        " missing; run from another directory, or with another output directory"
    )


@pytest.mark.parametrize("killed", ["caller", "unshare"])
def test_a_kill_leaves_nothing(killed):
    victim = subprocess.Popen([sys.executable, "-c", VICTIM], stdout=subprocess.PIPE, text=True)
    assert victim.stdout is not None
    namespaces = {victim.stdout.readline().strip() for _ in range(2)}
    temporary = Path(victim.stdout.readline().strip())
    assert processes_in(namespaces)
    os.kill(victim.pid if killed == "caller" else _child(victim.pid), signal.SIGKILL)
    victim.stdout.read()  # to its end: every process in there held it open
    victim.wait()
    await_gone(namespaces)
    assert not temporary.exists()
    assert "veth-victim" not in subprocess.check_output(["ip", "link"], text=True)
    assert not any(name in Path("/proc/self/mountinfo").read_text() for name in namespaces)


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def seen() -> tuple[str | None, str, str]:
    print("said inside", flush=True)
    return os.environ.get("SEEN"), os.getcwd(), sys.path[0]


def test_a_call_has_the_callers_surroundings_as_they_are_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setenv("SEEN", name)
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(folder)
        assert isolation.call(seen) == (name, str(folder), str(folder))
        assert capfd.readouterr().out == "said inside\n"


def test_calls_go_on_after_the_process_that_forks_them_was_killed() -> None:
    isolation.call(os.getpid)
    seed = isolation._current[0]._process
    seed.kill()
    seed.wait()
    assert isolation.call(int, "7") == 7


def test_calls_at_the_same_time_are_apart() -> None:
    """What each makes, the others do not see."""
    made = "ip link add same type veth && sleep 0.2 && ip -br link | wc -l"
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(partial(isolation.call, subprocess.getoutput), [made] * 6))
    assert found == ["3"] * 6  # with the loopback


def test_processes_apart_run_call_after_call() -> None:
    with isolation.apart() as one, isolation.apart() as other:
        pids = [run(os.getpid) for run in (one, other, one, other)]
        assert pids[:2] == pids[2:] and len({*pids, os.getpid()}) == 3
        assert one(os.readlink, NET) == os.readlink(NET)
        with pytest.raises(ValueError, match="^invalid literal"):
            one(int, "seven")
        assert one(int, "7") == 7


LOADED_IN: list[int] = []


def loads() -> None:
    LOADED_IN.append(os.getpid())


def loaded_in() -> list[int]:
    return LOADED_IN


def test_what_calls_share_is_loaded_once_and_not_in_the_caller() -> None:
    isolation.prepare(loads)
    first, second = (isolation.call(loaded_in, load=loads) for _ in range(2))
    assert first == second and len(first) == 1
    assert LOADED_IN == []
