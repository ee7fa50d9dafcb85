"""--commands, --thrift-port and `gradplane cli` with a live switch as a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from worlds import REFUSED, inside

WORLD = Path(__file__).parent / "live_command_world.py"
GROUP = """==========
MC ENTRIES
**********
mgrp(3)
  -> (L1h=0, rid=1) -> (ports=[1, 2], lags=[])
==========
LAGS
==========
"""

THRIFT = (
    "note: --thrift-port 9090: every user of this machine may become a primary controller there"
)

pytestmark = pytest.mark.skipif(bool(REFUSED), reason=REFUSED)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = inside(WORLD, str(tmp_path_factory.mktemp("world")))
    return found


def test_a_switch_does_not_start_with_wrong_commands(seen: dict[str, Any]) -> None:
    expected = (
        f"{THRIFT}\n"
        "s1-commands.txt:1: there is no command 'table_ad'; did you mean table_add or table_dump or"
        " table_clear?\n"
        "s1-commands.txt:2: table MyIngress.ipv4_lpm: field hdr.ipv4.dst: '1.2.3.4' is not of the"
        " form VALUE/LENGTH of an lpm match: 1.2.3.4/32 matches it alone\n"
    )
    assert seen["wrong commands"] == [expected, 1]
    assert seen["notes"] == [
        THRIFT,
        "note: build/router.json is not used: the switch runs its P4 source",
    ]


def test_from_a_pipe_answers_are_where_scripts_look_for_them(seen: dict[str, Any]) -> None:
    wrong = "there is no command 'table_ad'; did you mean table_add or table_dump or table_clear?"
    assert seen["pipe"] == {
        "out": f"RuntimeCmd: 2\nRuntimeCmd: Error: {wrong}\nRuntimeCmd: {GROUP}RuntimeCmd: \n",
        "err": "",
        "status": 1,
    }


def test_a_files_errors_are_separate_from_its_output(seen: dict[str, Any]) -> None:
    added, *ports = seen["file"]["out"].splitlines()
    assert added == "Entry has been added with handle 2"
    assert [row.split() for row in ports[2:]] == [["1", "s1", "UP"], ["2", "s2", "UP"]]
    expected = (
        "more.txt:2: table MyIngress.ipv4_lpm: it has no entry with handle 9; handles: 0, 1, 2\n"
    )
    assert seen["file"]["err"].endswith(f"/{expected}")
    assert seen["file"]["status"] == 1


def test_controllers_and_commands_see_each_others_work(seen: dict[str, Any]) -> None:
    assert seen["both"] == ["P4TableEntry"] * 4 + ["P4MulticastGroupEntry"]
    entry, session, group = seen["afterwards"].split("RuntimeCmd: ")[1:-1]
    assert entry.startswith("Dumping entry 0x3\n")
    assert session == "MirroringSessionConfig(mgid=None, port=2)\n"
    assert group == GROUP


def test_a_prompt_completes_names(seen: dict[str, Any]) -> None:
    assert "table_num_entries  ipv4_lpm \r\n4\r\nRuntimeCmd: exit\r\n" in seen["prompt"]
    assert seen["completed"] == [
        ["act_prof_add_member_to_group", "act_prof_create_group", "act_prof_create_member"],
        ["counter_read", "counter_reset", "counter_write"],
        ["MyIngress.ipv4_lpm"],
        ["ipv4_forward"],
        [],
        [],
    ]


def test_hostile_requests_are_refused(seen: dict[str, Any]) -> None:
    assert seen["hostile"] == ["INVALID_ARGUMENT"] * 8


def test_a_missing_switch_is_reported(seen: dict[str, Any]) -> None:
    assert seen["nobody"]["status"] == 1
    assert seen["nobody"]["out"] == ""
    assert seen["nobody"]["err"].startswith("gradplane: no switch answers at 127.0.0.1:9090")
    assert seen["nobody, no commands"] == seen["nobody"]


def test_ports_are_added_and_removed_while_the_switch_runs(seen: dict[str, Any]) -> None:
    first = [["1", "s1", "UP"], ["2", "s2", "UP"]]
    with_s3, with_s4 = ([*first, ["3", name, "UP"]] for name in ("s3", "s4"))
    added, removed, again, refused = seen["ports"]
    assert added == [[], with_s3, True]
    assert removed == [[], first, False]
    assert again == [[], with_s4, True]
    errors, *rest = refused
    assert rest == [with_s4, True]
    assert errors[0].endswith("Error: 3@s3: port 3 has an interface already")
    assert errors[1].endswith("Error: 512@s3: ports are 0 to 511")
    assert 'Error: interface "s9" does not exist; there are: ' in errors[2]
    assert errors[3].endswith("Error: port 5 has no interface; ports: 1, 2, 3")


def test_state_is_saved_and_loaded(seen: dict[str, Any]) -> None:
    before, after, errors, left = seen["state"]
    assert "last[0]= 77" in before
    assert "mgid=None, port=2" in before
    assert "mgrp(3)" in before
    assert after.removeprefix("RuntimeCmd: ").replace("L1h=0, ", "") == left.replace("L1h=0, ", "")
    assert left.replace("L1h=0, ", "") == before.replace("L1h=0, ", "")
    assert errors[0].startswith("state.txt:2: this is no saved state: ")
    assert errors[1] == "state.txt:3: [Errno 2] No such file or directory: 'no/such/file'"
    assert errors[2] == "state.txt:4: 0 words follow load_state; usage: load_state FILE"
