"""[switch] entries: what an experiment installs in tables that are its program's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradplane.experiment.loading import ExperimentError, load, load_deployment
from gradplane.runs import run_experiment
from gradplane.runs.records.summary import Summary
from gradplane.runs.replayer.replay_run import ReplayResult, replay
from gradplane.runs.run_experiment import check_programs, run

POSSIBLE, REASON = run_experiment.mininet_possible()

# Routes as shipped programs have them, and a table that counts packets by their sender.
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<96> begin; bit<32> src_addr; bit<32> dst_addr; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { }
parser Take(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        p.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x800: ip; default: accept; }
    }
    state ip { p.extract(hdr.ipv4); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t m) { apply { } }
control In(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    counter(16, CounterType.packets) senders;
    action drop() { mark_to_drop(s); }
    action forward(bit<48> mac, bit<9> port) { hdr.ethernet.dst = mac; s.egress_spec = port; }
    action count_as(bit<4> cell) { senders.count((bit<32>) cell); }
    table routes { key = { hdr.ipv4.dst_addr: lpm; } actions = { forward; drop; } }
    table who { key = { hdr.ipv4.src_addr: ternary; } actions = { count_as; } }
    apply { if (hdr.ipv4.isValid()) { who.apply(); routes.apply(); } }
}
control Out(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t m) { apply { } }
control Give(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(Take(), Verify(), In(), Out(), Compute(), Give()) main;
"""

FIRST = {
    "table": "In.who",
    "match": {"hdr.ipv4.src_addr": ["10.0.0.1", "255.255.255.255"]},
    "action_name": "In.count_as",
    "action_params": {"cell": 1},
    "priority": 10,
}
OTHERS = {
    "table": "In.who",
    "default_action": True,
    "action_name": "In.count_as",
    "action_params": {"cell": 9},
}
GROUP = {"multicast_group_id": 300, "replicas": [{"egress_port": 1, "instance": 1}]}
SESSION = {"clone_session_id": 5, "replicas": [{"egress_port": 1}]}
WHOLE = {
    "_comment": "as in the P4 tutorials",
    "target": "bmv2",
    "p4info": "build/x.p4info.txt",
    "table_entries": [FIRST, OTHERS],
    "multicast_group_entries": [GROUP],
    "clone_session_entries": [SESSION],
}
EXPERIMENT = """
[topology]
workers = 2
[switch]
program = "mine.p4"
entries = "own.json"
[[job]]
aggregation = "ps"
model = { name = "mlp", hidden = [4] }
epochs = 1
batch = 300
[output]
baseline = false
report = false
"""

Write = Callable[[dict[str, Any]], Path]


@pytest.fixture()
def write(tmp_path: Path) -> Write:
    """Return a function that writes an experiment with these entries."""

    def written(entries: dict[str, Any]) -> Path:
        (tmp_path / "mine.p4").write_text(PROGRAM)
        (tmp_path / "own.json").write_text(json.dumps(entries))
        (tmp_path / "own.toml").write_text(EXPERIMENT)
        return tmp_path / "own.toml"

    return written


def senders(summary: Summary) -> dict[str, int]:
    cells = summary.values["switches"]["s1"]["counters"]["In.senders"]
    return {cell: value["packets"] for cell, value in cells.items()}


def test_a_run_installs_them_and_its_folder_has_them(write: Write, tmp_path: Path) -> None:
    file = write(WHOLE)
    summary = run(file, tmp_path / "run", net="sim")
    counted = senders(summary)
    assert counted.keys() == {"1", "9"} and counted["9"] > counted["1"] > 0
    (tmp_path / "own.json").unlink()
    result = replay(tmp_path / "run")
    assert isinstance(result, ReplayResult) and result.equal


@pytest.mark.skipif(not POSSIBLE, reason=REASON)
def test_they_are_installed_on_mininet(write: Write, tmp_path: Path) -> None:
    assert senders(run(write(WHOLE), tmp_path / "run", net="mininet")).keys() == {"1", "9"}


def test_the_experiment_file_may_have_them_and_a_switch_its_own(write: Write) -> None:
    file = write({})
    file.write_text(file.read_text().replace('entries = "own.json"\n', ""))
    row = (
        '{table_entries=[{table="In.who",match={"hdr.ipv4.src_addr"=[1,1]},'
        'action_name="In.count_as",action_params={cell=2},priority=1}]}'
    )
    switch = load(file, [f"switch.only.s1.entries={row}"]).switch
    assert switch.entries is None and len(switch.of("s1").entries.table_entries) == 1  # type: ignore


WRONG = {
    "a key beside": ({"table_entry": []}, 'unknown key table_entry: did you mean "table_entries"?'),
    "a number as name": (
        {"table_entries": [FIRST | {"table": 1}]},
        "table_entries.0.table = 1: expected text in quotes",
    ),
    "no replica": (
        {"multicast_group_entries": [GROUP | {"replicas": []}]},
        "replicas = []: expected at least 1 in the list",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_refused_at_the_key_of_the_experiment(write: Write, case: str) -> None:
    entries, text = WRONG[case]
    with pytest.raises(ExperimentError) as error:
        load(write(entries))
    assert ":6: " in str(error.value) and "own.json: " in str(error.value)
    assert text in str(error.value)


UNFIT = {
    "no such table": (FIRST | {"table": "In.wo"}, 'did you mean "In.who"?'),
    "no such key": (FIRST | {"match": {"hdr.ipv4.dst_addr": 1}}, "no match field named"),
    "three values": (
        FIRST | {"match": {"hdr.ipv4.src_addr": [1, 2, 3]}},
        "hdr.ipv4.src_addr = [1, 2, 3]: ",
    ),
    "too wide": (FIRST | {"action_params": {"cell": 16}}, "invalid value for bitwidth 4: 16"),
    "no priority": ({k: v for k, v in FIRST.items() if k != "priority"}, "it needs a priority"),
    "a route's priority": (
        {
            "table": "In.routes",
            "match": {"hdr.ipv4.dst_addr": ["10.9.0.0", 16]},
            "action_name": "In.drop",
            "priority": 1,
        },
        "it has no priority",
    ),
    "a worker's route": (
        {
            "table": "In.routes",
            "match": {"hdr.ipv4.dst_addr": ["10.0.0.1", 32]},
            "action_name": "In.drop",
        },
        "an earlier one, or the experiment, installs it",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_the_program_cannot_have_is_refused_before_a_run(write: Write, case: str) -> None:
    entry, text = UNFIT[case]
    deployment = load_deployment(write({"table_entries": [entry]}))
    with pytest.raises(ExperimentError) as error:
        check_programs(deployment)
    assert "entries: table In." in str(error.value) and text in str(error.value)


def test_a_group_that_is_there_twice_is_refused(write: Write) -> None:
    deployment = load_deployment(write({"multicast_group_entries": [GROUP, GROUP]}))
    with pytest.raises(ExperimentError, match="multicast group 300: an earlier one"):
        check_programs(deployment)


def test_a_missing_file_and_one_that_is_no_json(write: Write, tmp_path: Path) -> None:
    file = write(WHOLE)
    with pytest.raises(ExperimentError, match="owns.json: No such file.*did you mean"):
        load(file, ["switch.entries=owns.json"])
    with pytest.raises(ExperimentError, match="mine.p4: not JSON: .*s1-runtime.json"):
        load(file, ["switch.entries=mine.p4"])


def test_a_tofinos_driver_takes_no_entries_of_p4runtime(write: Write) -> None:
    ports = 'switch.ports={h1="1@a", h2="2@b", h3="3@c"}'
    with pytest.raises(ExperimentError, match='entries with target "tofino"'):
        load(write(WHOLE), ["switch.target=tofino", ports])
