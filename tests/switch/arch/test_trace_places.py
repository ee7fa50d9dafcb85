"""Traces name the line of the packet path's text that an event comes from."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pnaprograms
import psaprograms
import pytest
import tnaprograms
import v1programs

import gradplane
from gradplane.switch import Switch
from gradplane.switch.interp.trace_events import Copied, Dropped, Entered, Sent

ARCH = Path(gradplane.__file__).parent / "switch" / "arch"
MADE: dict[str, Callable[[], Switch]] = {
    "v1model": v1programs.switch,
    "psa": psaprograms.switch,
    "tna": lambda: tnaprograms.switch("interpreter", ingress="tm.ucast_egress_port = 2;"),
    "pna": lambda: Switch("track.p4", text=pnaprograms.tracking()),
}
WRITTEN = {
    Entered: r"enter\(", Sent: r"send\(", Dropped: r"drop\(|members\(|run\(",
    Copied: r"note\(|session\(|members\(",
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_events_of_a_path_have_their_lines(name: str) -> None:
    sw = MADE[name]()
    lines = (ARCH / name / "path.p4").read_text().splitlines()
    seen = set()
    for packet in (bytes(64), bytes(2), bytes([1] * 64)):
        trace = sw.trace(1, packet)
        for event in trace.events:
            pattern = WRITTEN.get(type(event))
            if pattern is not None:
                seen.add(type(event))
                assert event.span.file == f"{name}/path.p4", event
                assert re.search(pattern, lines[event.span.line - 1]), event
                assert f"[{name}/path.p4:{event.span.line}:" in trace.text()
    assert Entered in seen and seen & {Sent, Dropped}


def test_json_has_the_place_of_a_packet_that_leaves() -> None:
    trace = MADE["pna"]().trace(1, pnaprograms.flow(1, 2, 3))
    (sent,) = [event for event in trace.json()["events"] if event["kind"] == "send"]
    assert sent["span"].startswith("pna/path.p4:")
