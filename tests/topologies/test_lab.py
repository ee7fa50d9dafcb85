"""`gradplane lab` and `isolate()`: Mininet scripts in real namespaces, from the outside."""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from namespaces_left import await_gone, processes_in

from gradplane.runs import isolation

LAB = [sys.executable, "-m", "gradplane", "lab"]
TIMEOUT = 120

pytestmark = pytest.mark.skipif(
    not (isolation.can_isolate()[0] and shutil.which("mnexec")), reason="Mininet needs namespaces"
)

WHERE = """
import os, sys
print(sys.argv[1:], os.readlink("/proc/self/ns/net"), os.getcwd())
sys.exit(7)
"""
# The switch's ends of the links are in the namespace of the script: in one for all, the names of
# two networks would be in each other's way.
NETWORK = """
import sys
from functools import partial
from mininet.cli import CLI
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from gradplane.topologies import P4Switch

net = Mininet(SingleSwitchTopo(2), switch=partial(P4Switch, program="hub.p4"), controller=None)
net.start()
net.staticArp()
print("ready", flush=True)
sys.stdin.readline()
print(net["h1"].cmd("ping -c 2 -W 5 10.0.0.2"))
if "--cli" in sys.argv:
    CLI(net)
net.stop()
"""
TAKEN_PORT = """
import socket
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from gradplane.topologies import P4Switch, NetworkError

def switch(name, **params):
    return P4Switch(name, "hub.p4", target="bmv2", address="127.0.0.1:9559", **params)

other = socket.create_server(("127.0.0.1", 9559))
net = Mininet(SingleSwitchTopo(1), switch=switch, controller=None)
try:
    net.start()
except NetworkError as error:
    print(error, net["s1"].process)
net.stop()
"""
HUB = """
#include <core.p4>
#include <v1model.p4>
struct none_t { }
parser P(packet_in b, out none_t h, inout none_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout none_t h, inout none_t m) { apply { } }
control I(inout none_t h, inout none_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 3 - s.ingress_port; }
}
control E(inout none_t h, inout none_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out b, in none_t h) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""
VICTIM = """
import os, subprocess, tempfile
subprocess.run(["ip", "link", "add", "veth-lab", "type", "veth"], check=True)
subprocess.Popen(["sleep", "1000"])
print(*(os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid")))
print(tempfile.mkdtemp(), flush=True)
input()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hub.p4").write_text(HUB)
    (tmp_path / "network.py").write_text(NETWORK)
    (tmp_path / "taken.py").write_text(TAKEN_PORT)
    (tmp_path / "where.py").write_text(WHERE)
    (tmp_path / "victim.py").write_text(VICTIM)
    return tmp_path


def run(folder, *command):
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def start(folder, *command, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, **(pipes | options))


def test_arguments_folder_and_exit_status(folder):
    done = run(folder, *LAB, "where.py", "--cli", "-n", "3", "--help", "last")
    arguments, net, where = re.fullmatch(r"(\[.*\]) (\S+) (\S+)\n", done.stdout).groups()
    assert arguments == "['--cli', '-n', '3', '--help', 'last']"
    assert net != os.readlink("/proc/self/ns/net")
    assert where == str(folder)
    assert done.returncode == 7


def test_a_script_isolates_itself(folder):
    text = "from gradplane.runs.lab import isolate\nisolate()\n" + WHERE
    (folder / "itself.py").write_text(text)
    done = run(folder, sys.executable, "itself.py", "one", "--two")
    assert done.stdout.startswith("['one', '--two'] net:")
    assert os.readlink("/proc/self/ns/net") not in done.stdout
    assert done.returncode == 7
    assert run(folder, *LAB, "itself.py").stdout.startswith("[] net:")


def test_a_script_that_does_not_exist(folder):
    done = run(folder, *LAB, "none.py")
    assert (done.stdout, done.stderr) == ("", "gradplane: there is no script none.py\n")
    assert done.returncode == 1


def test_a_taken_port_is_reported_before_bmv2_starts(folder):
    done = run(folder, *LAB, "taken.py")
    assert done.stdout == (
        "switch s1: its P4Runtime server cannot listen on 127.0.0.1:9559: Address already in use;"
        " end the process that listens there, or choose another port None\n"
    ), done.stderr
    assert done.returncode == 0


def test_two_networks_at_once(folder):
    labs = [start(folder, *LAB, "network.py") for _ in range(2)]
    for lab in labs:
        assert lab.stdout.readline() == "ready\n"
    for lab in labs:
        out, _ = lab.communicate("go\n", timeout=TIMEOUT)
        assert " 0% packet loss" in out
        assert lab.returncode == 0


def test_mininets_prompt_and_ctrl_c(folder):
    """At a terminal: Ctrl-C ends a command at Mininet's prompt, not the script."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvp(LAB[0], [*LAB, "network.py", "--cli"])
    screen = Screen(terminal)
    screen.wait_for("ready")
    os.write(terminal, b"go\n")
    screen.wait_for("mininet>")
    os.write(terminal, b"h1 ping 10.0.0.2\n")
    screen.wait_for("icmp_seq=1")
    os.write(terminal, b"\x03")
    screen.wait_for("mininet>")
    os.write(terminal, b"exit\n")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


class Screen:
    """The text that a terminal shows, read until an expected one arrives."""

    def __init__(self, terminal):
        self.terminal = terminal

    def wait_for(self, text):
        seen, end = "", time.monotonic() + TIMEOUT
        while text not in seen:
            ready, _, _ = select.select([self.terminal], [], [], end - time.monotonic())
            assert ready, seen
            seen += os.read(self.terminal, 1 << 16).decode(errors="replace")


def test_ctrl_c_ends_a_script_that_does_not_catch_it(folder):
    victim = start(folder, *LAB, "victim.py", stderr=subprocess.PIPE, start_new_session=True)
    victim.stdout.readline()
    os.killpg(victim.pid, signal.SIGINT)
    _, errors = victim.communicate(timeout=TIMEOUT)
    assert errors.endswith("KeyboardInterrupt\n")
    assert victim.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_script_that_is_killed(folder, number):
    victim = start(folder, *LAB, "victim.py")
    namespaces = set(victim.stdout.readline().split())
    temporary = Path(victim.stdout.readline().strip())
    assert processes_in(namespaces)
    victim.send_signal(number)
    victim.stdout.read()  # to its end: every process in there held it open
    victim.wait()
    await_gone(namespaces)
    assert not temporary.exists()
    assert "veth-lab" not in subprocess.check_output(["ip", "link"], text=True)
