"""The live switch as a process, between two hosts on veth pairs in a network namespace."""

from __future__ import annotations

from pathlib import Path

import pytest
from worlds import REFUSED, inside

WORLD = Path(__file__).parent / "live_switch_world.py"
VLAN_WORLD = Path(__file__).parent / "vlan_world.py"
LINK_WORLD = Path(__file__).parent / "link_world.py"
QUEUE_WORLD = Path(__file__).parent / "queue_world.py"
DEPARTURE_WORLD = Path(__file__).parent / "departure_world.py"


@pytest.mark.skipif(bool(REFUSED), reason=REFUSED)
def test_packets_controllers_captures_and_the_end(tmp_path: Path) -> None:
    seen = inside(WORLD, str(tmp_path))
    assert seen["without a program"] == "lost"
    assert seen["forwarded"] == {"dst": "02:00:00:00:00:02", "ttl": 63, "payload": "hello"}
    assert seen["udp checksum"] == "right"
    assert seen["after garbage"]["payload"] == "again"
    assert seen["after one too long"]["payload"] == "short"
    assert "a packet of 1242 bytes is longer than the MTU of s2 allows" in seen["log"]
    assert seen["after the interface was down"]["payload"] == "back"
    assert seen["with another interface of its name"]["payload"] == "afresh"
    assert "port 2: s2 exists again" in seen["log"]
    assert seen["missing interface"] == (
        'interface "nope" does not exist; there are: h1, h2, lo, s1, s2. Create it first, for'
        " example: ip link add nope type veth peer name nope-peer\n"
    )
    for name in ("s1_in", "s2_out"):
        assert seen["captures"][name][:2] == ["hello", "again"]
    assert seen["exit status"] == 0
    assert seen["ready"] == {
        "ready": True,
        "grpc": seen["ready"]["grpc"],
        "device_id": 1,
        "program": None,
        "ports": {"1": "s1", "2": "s2"},
    }


@pytest.mark.skipif(bool(REFUSED), reason=REFUSED)
def test_vlan_tags_stay_where_they_are() -> None:
    seen = inside(VLAN_WORLD)
    assert seen["received"] == seen["sent"]


@pytest.mark.skipif(bool(REFUSED), reason=REFUSED)
def test_ports_whose_link_is_down_are_known() -> None:
    # Not yet up; all up; then by our end, by the other end, and when the interface is gone.
    assert inside(LINK_WORLD) == [[1, 2, 3], [], [1], [], [2], [], [3]]


@pytest.mark.skipif(bool(REFUSED), reason=REFUSED)
def test_packets_that_wait_in_a_ports_queue_are_counted() -> None:
    seen = inside(QUEUE_WORLD)
    if "no tbf" in seen:
        pytest.skip("this kernel has no token bucket filter")
    assert (seen["no queue"], seen["too early"], seen["without it"]) == ([0, 0], [0, 0], [0, 0])
    assert seen["later"] == [0, seen["tc"]]
    assert seen["tc"] >= 8


@pytest.mark.skipif(bool(REFUSED), reason=REFUSED)
def test_a_rate_lets_packets_wait_in_the_switchs_own_queue() -> None:
    seen = inside(DEPARTURE_WORLD)
    numbers, entered, left, waited, whole = zip(*seen["arrived"], strict=True)
    assert list(numbers) == sorted(numbers) and all(whole)
    assert max(entered) > 0 and max(left) > 0 and max(waited) > 0
    assert max(entered) < 20 and max(left) < 20
    port, queue, rate, depth, waiting, dropped = map(int, seen["queues"].splitlines()[1].split())
    assert (port, queue, rate, depth) == (2, 0, 50, 20)
    assert waiting + dropped <= 10
    assert seen["status"] == 0
    assert "packets waited in queues as the switch ended, and are dropped" in seen["log"]
