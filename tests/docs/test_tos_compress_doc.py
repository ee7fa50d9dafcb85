"""docs/tos-compression.md works as it stands: a program that only sets its socket's ToS runs
across two edge switches in namespaces, and is compressed between them."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.utils import rdpcap

from gradplane.controller.compression import REASONS
from gradplane.hosts.scapy_layers import Compressed, compressed
from gradplane.runs import isolation
from gradplane.switch import Switch

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tos-compression.md").read_text()
SCRIPTS = dict(re.findall(r"^```python (\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
PACKETS, PORT = 20, 9999


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("tos")
    for name, text in SCRIPTS.items():
        (path / f"{name}.py").write_text(text)
    return path


@pytest.mark.skipif(not isolation.can_isolate()[0], reason=isolation.can_isolate()[1])
def test_a_program_that_knows_nothing_of_it(folder: Path) -> None:
    command = [sys.executable, "-m", "gradplane", "lab", "line.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (shown,) = re.findall(r"^\$ gradplane lab line.py\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    first, counters = shown.split("...\n")
    assert done.stdout == first * PACKETS + counters

    sent, between, arrived = (
        datagrams(folder / "traces" / f"{name}.pcap") for name in ("s1-eth1_in", "s1-eth2_out",
                                                                   "s2-eth1_out")
    )  # fmt: skip
    assert len(sent) == len(between) == len(arrived) == PACKETS
    for before, packed, after in zip(sent, between, arrived, strict=True):
        assert [p[IP].tos for p in (before, packed, after)] == [0x28, 0x2C, 0x28]
        assert len(before) == len(after) and 2 * len(packed) < len(before)
        x, y = (np.frombuffer(bytes(p[UDP].payload), ">f4") for p in (before, after))
        assert np.abs(x - y).max() < 2**-10
        assert (compressed(packed)[Compressed].values == y).all()


@pytest.mark.skipif(not isolation.can_isolate()[0], reason=isolation.can_isolate()[1])
def test_sums_over_all_hosts(folder: Path) -> None:
    """total.py runs on both hosts of line.py's network, in place of sender and receiver."""
    network, _, rest = SCRIPTS["line"].partition("receiver = net")
    counters = rest.partition('end="")\n')[2]
    hosts = """
programs = [
    net[f"h{rank + 1}"].popen([sys.executable, "total.py", str(rank), "10.0.0.1", "10.0.0.2"])
    for rank in (0, 1)
]
for program in programs:
    print(program.communicate()[0].decode(), end="")
"""
    (folder / "sums.py").write_text(network + hosts + counters)
    command = isolation.command([sys.executable, "sums.py"], keep=[folder])
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("50000 True\n" * 2)
    packets = [int(n) for n in re.findall(r"'packets': (\d+)", done.stdout)]
    # A partial and a whole block a host, 25,000 values each: 98 segments of up to 256.
    assert len(packets) == 4 and min(packets) >= 2 * 98


def datagrams(path: Path) -> list:
    return [p for p in rdpcap(str(path)) if UDP in p and p[UDP].dport == PORT]


def test_every_table_and_counter_is_documented() -> None:
    switch = Switch(ROOT / "p4" / "tos_compress.p4", engine="interpreter")
    documented = set(re.findall(r"`(Tos\w+\.[\w.]+)`", TEXT))
    assert documented == {*switch.state.tables, *switch.state.counters}


def test_every_reason_is_documented() -> None:
    (table,) = re.findall(r"^\| index .*?\n\n", TEXT, re.MULTILINE | re.DOTALL)
    cells = re.findall(r"\| (\d+) \| [^|]", table)
    assert sorted(map(int, cells)) == list(range(len(REASONS)))


def test_the_picture_is_of_what_the_switch_sends(tmp_path: Path) -> None:
    figures = ROOT / "docs" / "figures"
    script, drawn = figures / "tos_packet.py", tmp_path / "drawn.svg"
    subprocess.run([sys.executable, script, drawn], check=True)
    texts = [
        re.findall(r"<text[^>]*>([^<]*)<", path.read_text())
        for path in (drawn, figures / "tos-packet.svg")
    ]
    assert texts[0] == texts[1] and "after: 64 bytes" in texts[0]
