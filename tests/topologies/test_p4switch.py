"""P4Switch in somebody's own Mininet script, with somebody's own program."""

import os
import subprocess
import sys
from pathlib import Path

from gradplane.runs import isolation

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct meta_t {}
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply {} }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = FIRST + SECOND - s.ingress_port; }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply {} }
control C(inout headers_t h, inout meta_t m) { apply {} }
control D(packet_out p, in headers_t h) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""

MISSPELLED = """
from gradplane.topologies import P4Switch

try:
    P4Switch("s1", program="wire.p4", comands="a.txt")
except TypeError as error:
    print(error)
"""

SCRIPT = """
import hashlib, sys
from functools import partial
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from gradplane.topologies import P4Switch

defines = {"FIRST": "1", "SECOND": "2"}
switch = partial(P4Switch, program="wire.p4", defines=defines)
net = Mininet(SingleSwitchTopo(2), switch=switch, controller=None)
net.start()
print("lost", net.pingAll())
print("address", net["s1"].address)
h1, h2 = net["h1"], net["h2"]
server = h2.popen([sys.executable, "-c", '''
import hashlib, socket
with socket.create_server(("0.0.0.0", 5000)) as server:
    print("listening", flush=True)
    peer = server.accept()[0]
    print(hashlib.sha256(peer.makefile("rb").read()).hexdigest())
'''])
server.stdout.readline()
data = bytes(range(256)) * 4000
h1.popen([sys.executable, "-c", f'''
import socket
with socket.create_connection(("{h2.IP()}", 5000)) as peer:
    peer.sendall(bytes(range(256)) * 4000)
''']).wait()
print("same", server.communicate()[0].decode().strip() == hashlib.sha256(data).hexdigest())
net.stop()
print("stopped", net["s1"].process)
"""


def test_one_line_in_a_script(tmp_path):
    (tmp_path / "wire.p4").write_text(PROGRAM)
    lines = run(tmp_path, SCRIPT)
    assert lines[0] == "lost 0.0"
    assert lines[1].startswith("address 127.0.0.1:")
    assert lines[2:] == ["same True", "stopped None"]


ATTACHED = """
from mininet.net import Mininet
from mininet.topo import Topo
from gradplane.topologies import NetworkError, P4Switch

class Racks(Topo):
    def build(self):
        defines = {"FIRST": "1", "SECOND": "2"}
        switch = self.addSwitch("tor-7b", program="wire.p4", defines=defines)
        self.addLink(self.addHost("h1"), switch)

net = Mininet(Racks(), switch=P4Switch, controller=None)
net.start()
switch, host = net["tor-7b"], net.addHost("h2")
link = net.addLink(host, switch)
host.setIP("10.0.0.2/8")
switch.attach(link.intf2)
print("lost", net.pingAll())
switch.detach(link.intf2.name)
print("lost", net.pingAll(timeout="1"))
try:
    switch.detach(link.intf2)
except NetworkError as error:
    print(error)
switch.stop(False)
try:
    switch.attach(link.intf2)
except NetworkError as error:
    print(error)
net.stop()
"""


def test_any_name_and_ports_that_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "wire.p4").write_text(PROGRAM)
    *lines, stopped = run(tmp_path, ATTACHED)
    assert lines == ["lost 0.0", "lost 100.0", "port 2 has no interface; ports: 1"]
    assert stopped == "switch tor-7b: port_add tor-7b-eth2 2: it is not running"


def test_a_misspelled_parameter_is_reported(tmp_path: Path) -> None:
    assert run(tmp_path, MISSPELLED) == [
        "P4Switch has no parameter comands; did you mean commands?"
    ]


def run(folder: Path, script: str) -> list[str]:
    """Return the output of a script, with the machine's network out of its reach."""
    (folder / "script.py").write_text(script)
    argv = isolation.command([sys.executable, "script.py"], keep=[folder])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    done = subprocess.run(
        argv, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
