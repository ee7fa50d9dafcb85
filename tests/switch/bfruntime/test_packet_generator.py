"""The packet generator: when its packets come, what they are, and its tables."""

from __future__ import annotations

import time

from bfrt_served import Served

from gradplane.switch.bfruntime.packet_generator import (
    ONE_SHOT,
    PERIODIC,
    PORT_DOWN,
    PacketGenerator,
)

VALUES = {"app_enable": True, "pkt_len": 3, "pkt_buffer_offset": 16, "pipe_local_source_port": 68,
          "batch_count_cfg": 1, "packets_per_batch_cfg": 1, "ibg": 50, "ipg": 10}  # fmt: skip


def generator(wide: bool = False) -> PacketGenerator:
    made = PacketGenerator(7, wide)
    made.ports[128 + 68] = {"pktgen_enable": True}
    made.buffer(1)[16:19] = b"abc"
    return made


def test_batches_of_a_timer() -> None:
    made = generator()
    made.configure(1, 5, ONE_SHOT, {**VALUES, "timer_nanosec": 100}, now=1000)
    times, packets = [], []
    while (due := made.next_due()) is not None:
        times.append(due)
        packets += made.packets(due)
    assert times == [1100, 1110, 1160, 1170]
    head = bytes([1 << 3 | 5, 0])
    assert packets == [
        (196, head + bytes([0, batch, 0, packet]) + b"abc") for batch in (0, 1) for packet in (0, 1)
    ]
    counts = made.applications[1, 5].values
    assert [counts[f"{n}_counter"] for n in ("trigger", "batch", "pkt")] == [1, 2, 4]


def test_a_periodic_timer_goes_on_until_it_is_disabled() -> None:
    made = generator(wide=True)
    values = {**VALUES, "batch_count_cfg": 0, "packets_per_batch_cfg": 0, "timer_nanosec": 100}
    made.configure(1, 15, PERIODIC, values, now=0)
    assert len(list(made.packets(450))) == 4
    assert made.next_due() == 500
    assert list(made.packets(500))[0][1][0] == 1 << 4 | 15
    made.configure(1, 15, PERIODIC, {**values, "app_enable": False}, now=500)
    assert made.next_due() is None


def test_a_link_that_goes_down() -> None:
    made = generator()
    made.configure(1, 2, PORT_DOWN, {**VALUES, "batch_count_cfg": 0}, now=0)
    made.link_down(9, 10)  # of another pipe
    assert made.next_due() is None
    made.link_down(128 + 9, 20)
    packets = [packet for _, packet in made.packets(1000)]
    assert [p[2:6] for p in packets] == [bytes([0, 137, 0, 0]), bytes([0, 137, 0, 1])]


def test_a_pipe_without_an_enabled_port_is_silent() -> None:
    made = generator()
    made.ports.clear()
    made.configure(1, 5, ONE_SHOT, {**VALUES, "timer_nanosec": 1}, now=0)
    assert list(made.packets(10**6)) == []


def test_clients_start_applications(interpreted: Served) -> None:
    device, client = interpreted
    sent: list[tuple[int, bytes]] = []
    device.transmit = sent.extend
    client.set_default("macs", "Ingress.send", port=9)
    client.add("tf1.pktgen.port_cfg", {"dev_port": 68}, pktgen_enable=True)
    place = {"pkt_buffer_offset": 0, "pkt_buffer_size": 10}
    entry = client.entry("tf1.pktgen.pkt_buffer", place)
    entry.data.fields.add(field_id=1, stream=bytes(range(10)))
    client.write(("INSERT", entry))
    (shown,) = client.read("tf1.pktgen.pkt_buffer", place)
    assert shown["buffer"] == list(range(10))
    client.add("tf1.pktgen.app_cfg", {"app_id": 1}, "trigger_timer_one_shot", timer_nanosec=1000,
               pkt_len=10, pipe_local_source_port=68, packets_per_batch_cfg=2,
               app_enable=True)  # fmt: skip
    for _ in range(1500):
        if len(sent) == 3:
            break
        time.sleep(0.02)
    expected = bytes([1, 0, 0, 0, 0])
    assert sent == [(9, expected + bytes([i]) + bytes(range(10))) for i in range(3)]
    (application,) = client.read("tf1.pktgen.app_cfg", {"app_id": 1})
    assert application["pkt_counter"] == 3
