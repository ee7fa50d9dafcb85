"""The table [cluster]: hosts, switches and ports that the topology does not have are named."""

from pathlib import Path

import pytest

from gradplane.experiment.loading import ExperimentError, load_deployment
from gradplane.runs.run_experiment import check_target

TEXT = """
[topology]
workers = 2
[output]
baseline = false
[cluster]
scheduler = "tcp://10.1.0.254:8786"
[cluster.hosts]
h1 = { machine = "m1", interface = "eth1" }
h2 = { machine = "m2", interface = "eth1" }
[cluster.switches.s1]
address = "10.1.0.100:9559"
ports = { h1 = 9 }
"""
WRONG = {
    'cluster.hosts.h7={machine="m7", interface="eth1"}': 'no host "h7": ',
    'cluster.hosts.h2.machine="m1"': "h1 and h2 are both on machine m1: a host is a machine",
    'cluster.switches.s2={address="10.1.0.100:1"}': 'no switch "s2": ',
    "cluster.switches.s1.ports.h9=3": 'switch s1 has no link to "h9": ',
    "cluster.switches.s1.ports.h2=9": "interface",
    'cluster.switches.s1.address="s1"': "cluster.switches.s1.address",
    'switch.target="tofino"': 'target "tofino": ports lacks h2, h3, as the chip has them',
}
REFUSED = {
    "topology.workers=3": "cluster.hosts lacks h3",
    "output.baseline=true": "cluster.hosts lacks h3, which only the baseline needs: or set",
    'topology.rate="10Mbit"': "link h1-s1: real links have their own rate: leave it out",
    "output.pcap=true": "output.pcap is for switches that the run starts",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lab.toml"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("setting", WRONG)
def test_what_the_topology_does_not_have_is_named(file: Path, setting: str) -> None:
    with pytest.raises(ExperimentError) as error:
        load_deployment(file, [setting])
    assert WRONG[setting] in str(error.value)


@pytest.mark.parametrize("setting", REFUSED)
def test_what_a_cluster_cannot_do_is_refused_before_the_run(file: Path, setting: str) -> None:
    with pytest.raises(ExperimentError) as error:
        check_target(load_deployment(file, [setting]), "cluster")
    assert REFUSED[setting] in str(error.value)


def test_ports_and_addresses_are_where_the_table_says(file: Path) -> None:
    deployment = load_deployment(file)
    check_target(deployment, "cluster")
    setup = deployment.setups["s1"].with_macs({"00:00:00:00:00:02": "02:00:00:00:00:22"})
    assert [(route.port, route.mac) for route in setup.routes[:2]] == [
        (9, "00:00:00:00:00:01"),
        (2, "02:00:00:00:00:22"),
    ]
    assert [member.port for member in setup.jobs[0].workers] == [9, 2]
    assert setup.jobs[0].workers[1].mac == "02:00:00:00:00:22"


def test_without_the_table_the_error_says_where_it_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "plain.toml"
    file.write_text("[topology]\nworkers = 2\n")
    with pytest.raises(ExperimentError, match=r"needs the table \[cluster\] \(docs/cluster.md\)"):
        check_target(load_deployment(file), "cluster")


def test_a_chips_ports_are_those_of_the_table(file: Path) -> None:
    settings = ['switch.target="tofino"', "cluster.switches.s1.ports={h1=9, h2=136, h3=10}"]
    deployment = load_deployment(file, settings)
    check_target(deployment, "cluster")
    assert [member.port for member in deployment.setups["s1"].jobs[0].workers] == [9, 136]
    with pytest.raises(ExperimentError, match="lacks ports, which lead to it outside a cluster"):
        check_target(deployment, "mininet")
