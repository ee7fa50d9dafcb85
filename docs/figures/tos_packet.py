"""Draw tos-packet.svg: a packet before and after p4/tos_compress.p4, as the switch sends it.

python docs/figures/tos_packet.py [FILE]
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from gradplane.hosts.scapy_layers import Compressed, compressed
from gradplane.switch import Switch

HERE = Path(__file__).parent
VALUES = np.array(
    [0.31, -0.0125, 0.0004, 1.5, 0.0031, -0.07, 0, 0.02, 0.6, -0.0002, 0.005], dtype=np.float32
)
BOUND = 10
HEADERS = (("Ethernet", 14), ("IPv4", 20), ("UDP", 8))
HEADER_WIDTH = 7.5  # not to scale
COLOURS = {0: "#f2f2f2", 1: "#cfe8cf", 2: "#fde3b0", 3: "#f6c6c0"}
PLAIN, SHIM, TAGS = "#dfe7f3", "#d9cfe9", "#bfb3dc"
TAG_BITS = (0, 8, 16, 32)
BEFORE, AFTER = 3.2, 0.0  # heights of the two rows


def main(target: Path) -> None:
    sent = Ether() / IP(src="10.0.0.1", dst="10.0.1.1", tos=0x28) / UDP(sport=7, dport=7)
    before = Ether(bytes(sent / VALUES.astype(">f4").tobytes()))
    after = compressed(Ether(_through_the_switch(bytes(before))))
    matplotlib.rcParams["svg.hashsalt"] = "tos-packet"  # the same picture, the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text, not curves
    figure = Figure(figsize=(11, 3.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(0, 3 * HEADER_WIDTH + 4 * VALUES.size + 0.5)
    axes.set_ylim(-0.2, 5.1)
    _draw(axes, before, after)
    legend = [
        Patch(fc=COLOURS[t], ec="black", label=f"tag {t}: {TAG_BITS[t]} bits") for t in COLOURS
    ]
    figure.legend(handles=legend, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(target, metadata={"Date": None})


def _through_the_switch(packet: bytes) -> bytes:
    switch = Switch(HERE.parents[1] / "p4" / "tos_compress.p4", engine="interpreter")
    switch.table("routes").add({"dst_addr": ("10.0.1.1", 32)}, "forward", {"mac": 2, "port": 2})
    switch.table("host_ports").add({"port": 1}, "host")
    switch.table("bounds").add({"dst_addr": ("10.0.1.1", 32)}, "set_bound", {"k": BOUND})
    [(_, out)] = switch.process(1, packet)
    return out


def _draw(axes: Axes, before: Packet, after: Packet) -> None:
    tags = after[Compressed].tags
    tops = []
    at = _headers(axes, before, BEFORE, f"before: {len(before)} bytes")
    for value, tag in zip(VALUES, tags, strict=True):
        _box(axes, at, BEFORE, 4, COLOURS[tag], f"{value:.6g}\n{value.view(np.uint32):08x}")
        tops.append(at + 2)
        at += 4
    layer = after[Compressed]
    at = _headers(axes, after, AFTER, f"after: {len(after)} bytes")
    shim = f"shim\n{layer.count} values\nk = {layer.bound}"
    at = _box(axes, at, AFTER, 4, SHIM, shim)
    number = 0
    for burst in layer.bursts:
        at = _box(axes, at, AFTER, 2, TAGS, f"tags\n{bytes(burst)[:2].hex()}")
        left = burst.vectors
        for tag in burst.tags[: len(tags) - number]:
            size = 1 << tag >> 1
            if size:
                _join(axes, tops[number], at + size / 2)
                _box(axes, at, AFTER, size, COLOURS[tag], left[:size].hex())
            left, at, number = left[size:], at + size, number + 1


def _headers(axes: Axes, packet: Packet, y: float, title: str) -> float:
    """Draw the boxes of the headers; return where the next one begins."""
    axes.text(0, y + 1.55, title, fontsize=10, fontweight="bold", ha="left")
    texts = {
        "Ethernet": "",
        "IPv4": f"ToS {packet[IP].tos:#04x}\nlength {packet[IP].len}",
        "UDP": f"length {packet[UDP].len}\nchecksum {packet[UDP].chksum:04x}",
    }
    at = 0.0
    for name, size in HEADERS:
        at = _box(axes, at, y, HEADER_WIDTH, PLAIN, f"{name}, {size} bytes\n{texts[name]}".strip())
    return at


def _box(axes: Axes, x: float, y: float, width: float, colour: str, text: str) -> float:
    axes.add_patch(
        Rectangle((x, y), width, 1.3, facecolor=colour, edgecolor="black", linewidth=0.6)
    )
    upright = width < 2
    size = 6.5 if width <= 4 else 7.5
    axes.text(x + width / 2, y + 0.65, text, fontsize=size, ha="center", va="center",
              rotation=90 if upright else 0)  # fmt: skip
    return x + width


def _join(axes: Axes, above: float, below: float) -> None:
    axes.plot([above, below], [BEFORE, AFTER + 1.3], color="grey", linewidth=0.5)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "tos-packet.svg")
