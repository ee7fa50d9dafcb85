"""Namespaces of one's own, really made; and what is left of them after a SIGKILL: nothing."""

import os
import re
import signal
import subprocess
import sys
import tempfile
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
