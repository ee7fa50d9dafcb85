"""`gradplane trace --at` on a live switch as a process, under traffic on veth pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from worlds import REFUSED, inside

WORLD = Path(__file__).parent / "live_trace_world.py"

pytestmark = pytest.mark.skipif(bool(REFUSED), reason=REFUSED)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = inside(WORLD, str(tmp_path_factory.mktemp("world")))
    return found


def test_the_chosen_packets_are_traced(seen: dict[str, Any]) -> None:
    assert seen["chosen"] == [{"chosen": True, "port": 1, "table": 1, "sent": [2, 76]}] * 3
    heading, *lines = seen["text"]
    assert heading == "port 1, 46 bytes"
    assert [line.split("    [")[0] for line in lines] == [
        "== parser",
        "  state start",
        "  state parse_ethernet",
    ]


def test_no_packet_is_lost_doubled_or_overtaken_meanwhile(seen: dict[str, Any]) -> None:
    assert seen["many packets"]
    assert seen["every packet once and in order"]


def test_who_waits_can_leave(seen: dict[str, Any]) -> None:
    assert seen["interrupted"] == {"out": "", "err": "", "status": 0}


def test_a_wrong_filter_is_explained(seen: dict[str, Any]) -> None:
    assert seen["wrong"] == {
        "out": "",
        "err": "filter:1:1: error: ipv4_t has no field tttl\n    hdr.ipv4.tttl == 1\n"
        "    ^^^^^^^^^^^^^\n    did you mean ttl?\n",
        "status": 1,
    }


def test_hostile_requests_are_refused(seen: dict[str, Any]) -> None:
    assert set(seen["hostile"]) == {"INVALID_ARGUMENT"}
    assert len(seen["hostile"]) == 14


def test_a_switch_serves_so_many_and_no_more(seen: dict[str, Any]) -> None:
    expected = "gradplane: 8 traces are active, the limit (--limit traces=N): end one\n"
    assert seen["too many"] == {"out": "", "err": expected, "status": 1}


def test_waiting_ends_with_the_program_and_with_the_switch(seen: dict[str, Any]) -> None:
    expected = "gradplane: another program was pushed to the switch\n"
    assert seen["another program"] == {"out": "", "err": expected, "status": 1}
    assert seen["exit status"] == 0
    stopped = seen["when the switch stops"]
    assert stopped["status"] == 1
    assert stopped["err"].startswith("gradplane: no switch answers at 127.0.0.1:")
