"""Groups of workers whose hosts sum: which, where their servers are, what cannot work."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from gradplane.experiment.deploying import baseline
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import ExperimentError, load_deployment
from gradplane.hosts.config import HostConfig
from gradplane.hosts.group_tree import workers_of

RING = 'aggregation = "ring"\npush = "float32"\nreliability = "retransmit"\n'
TREE = 'aggregation = "ps"\npush = "float32"\n'
RACKS = 'kind = "leaf-spine"\nleaves = 2\nplacement = [1, 1, 1, 2, 2]\nhosts_per_leaf = 3\n'


def deploy(tmp_path: Path, jobs: str, topology: str = "", *settings: str) -> Deployment:
    path = tmp_path / "e.toml"
    head = "" if "[topology]" in jobs else "[topology]\n"
    path.write_text(f"{jobs}{head}workers = 5\n{topology}")
    return load_deployment(path, settings)


def job(scheme: str, groups: str) -> str:
    return f"[[job]]\n{scheme}groups = {groups}\n"


@pytest.mark.parametrize("scheme", [RING, TREE])
@pytest.mark.parametrize(
    ("groups", "found", "racks"),
    [
        ('"racks"', ((0, 1, 2), (3, 4)), ["s1", "s2"]),
        ("2", ((0, 1, 2), (3, 4)), ["s1", "s2"]),
        ("3", ((0, 1), (2, 3), (4,)), ["group 0", "group 1", "group 2"]),
        ("[[0], [4, 1], [2, 3]]", ((0,), (4, 1), (2, 3)), ["group 0", "group 1", "group 2"]),
    ],
)
def test_groups_are_racks_a_number_or_a_list(
    tmp_path: Path,
    scheme: str,
    groups: str,
    found: tuple[tuple[int, ...], ...],
    racks: list[str],
) -> None:
    deployment = deploy(tmp_path, job(scheme, groups), RACKS)
    (deployed,) = deployment.jobs
    assert deployed.config.groups == found
    assert list(deployed.racks) == racks and tuple(deployed.racks.values()) == found
    assert deployment.roots(0) == [] and len(deployment.racks(0)) == 5


@pytest.mark.parametrize("scheme", [RING, TREE])
@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ('["racks", 2]', (((0, 1),), ((2, 3),))),
        ("[3, 2]", (((0, 1), (2,)), ((3,),))),
        ("[4, 3, 2]", ((((0,), (1,)), ((2,),)), (((3,),),))),
        ("[[[3], [1, 0]], [[2]]]", (((3,), (1, 0)), ((2,),))),
    ],
)
def test_groups_of_several_levels(
    tmp_path: Path, scheme: str, groups: str, found: tuple[Any, ...]
) -> None:
    racks = RACKS.replace("[1, 1, 1, 2, 2]", "[1, 1, 2, 2, 1]")
    keys = job(scheme, groups) + "workers = 4\n"
    (deployed,) = deploy(tmp_path, keys, racks).jobs
    assert deployed.config.groups == found
    assert list(chain.from_iterable(deployed.racks.values())) == list(workers_of(found))
    assert (
        HostConfig.from_json(deploy(tmp_path, keys, racks).hosts[0].to_json()).job.groups == found
    )


def test_rings_have_no_servers_and_the_levels_above_do(tmp_path: Path) -> None:
    keys = job(TREE, "[[[0, 1], [2]], [[3], [4]]]") + 'rings = true\nreliability = "retransmit"\n'
    deployment = deploy(tmp_path, keys, RACKS)
    (deployed,) = deployment.jobs
    assert [host.name for host in deployed.servers] == ["h6", "h7", "h8"]
    assert [deployment.topology.rack(h.name) for h in deployed.servers] == ["s2", "s1", "s2"]
    leaders = [f"10.0.0.{n}" for n in (1, 3, 4, 5)]
    addresses = deployed.config.addresses
    assert [ip for ip, _ in addresses.servers] == [*leaders, "10.0.0.7", "10.0.0.8"]
    assert deployment.topology.host["h6"].ip == addresses.server_address[0]


def test_each_group_has_a_server_in_its_rack_by_a_link_like_its_first_worker(
    tmp_path: Path,
) -> None:
    rates = 'rate = ["1Gbit", "2Gbit", "3Gbit", "4Gbit", "5Gbit", "6Gbit"]\n'
    deployment = deploy(tmp_path, job(TREE, "[[0, 1], [2], [3, 4]]"), RACKS + rates)
    network, (deployed,) = deployment.topology, deployment.jobs
    assert [host.name for host in deployed.servers] == ["h6", "h7", "h8", "h9"]
    assert [network.rack(host.name) for host in deployed.servers] == ["s2", "s1", "s1", "s2"]
    links = {link.a: link.rate for link in network.links}
    assert [links[name] for name in ("h6", "h7", "h8", "h9")] == [6e9, 1e9, 3e9, 4e9]
    addresses = deployed.config.addresses
    assert addresses.server_address == ("10.0.0.6", 21000)
    assert [ip for ip, _ in addresses.servers] == ["10.0.0.7", "10.0.0.8", "10.0.0.9"]
    assert [host.name for host in deployment.hosts] == [f"h{n}" for n in range(1, 10)]


def test_jobs_share_the_hosts_of_servers(tmp_path: Path) -> None:
    jobs = job(TREE, '"racks"') + job(TREE, "3") + f"[[job]]\n{TREE}" + job(RING, "2")
    deployment = deploy(tmp_path, jobs, RACKS)
    first, second, third, fourth = deployment.jobs
    assert [host.name for host in first.servers] == ["h6", "h7", "h9"]
    assert [host.name for host in second.servers] == ["h6", "h7", "h8", "h9"]
    assert [host.name for host in third.servers] == ["h6"] and not fourth.servers
    assert deployment.topology.rack("h9") == "s2"


def test_a_ring_over_groups_has_no_server_and_no_place_for_one(tmp_path: Path) -> None:
    assert len(deploy(tmp_path, job(RING, "2")).topology.hosts) == 5


def test_servers_of_groups_have_network_cards_too(tmp_path: Path) -> None:
    network = deploy(tmp_path, job(TREE, '"racks"'), RACKS + "nics = true\n").topology
    assert len(network.hosts) == len(network.nics) == 8
    assert [network.rack(f"h{n}") for n in range(1, 9)] == [
        *("s1", "s1", "s1", "s2", "s2", "s2", "s1", "s2"),
    ]


def test_the_baseline_has_the_same_groups(tmp_path: Path) -> None:
    keys = 'between = "float16"\nquorums = [2, 1]\n'
    deployment = deploy(tmp_path, job(TREE, '"racks"') + keys, RACKS)
    plain = baseline(deployment).jobs[0].config
    assert plain.groups == deployment.jobs[0].config.groups
    assert deployment.jobs[0].config.quorums == (2, 1) and plain.quorums == ()
    assert deployment.jobs[0].config.quorum == 2 and plain.quorum == 5
    assert plain.coding.between is None


def test_a_ring_over_groups_may_be_larger_than_a_ring(tmp_path: Path) -> None:
    many = ["topology.workers=130", "job.batch=4"]
    for scheme in (RING, TREE):
        groups = deploy(tmp_path, job(scheme, "3"), "", *many).jobs[0].config.groups
        assert [len(group) for group in groups] == [44, 43, 43]
    for keys, message in (
        (job(RING, "65"), "65 groups of up to 2 workers: a ring has 64 members at most"),
        (job(RING, "2"), "2 groups of up to 65 workers: a ring has 64 members at most"),
        (f"[[job]]\n{RING}", "write groups = 3 or more under [[job]], or workers under [[job]]"),
    ):
        with pytest.raises(ExperimentError) as refused:
            deploy(tmp_path, keys, "", *many)
        assert message in str(refused.value)


@pytest.mark.parametrize(
    ("jobs", "line", "message"),
    [
        (
            job(RING, '"racks"'),
            5,
            'groups = "racks": all workers are in one rack: write a number of groups, or use a'
            ' topology of several racks, such as kind = "leaf-spine" with leaves = 2',
        ),
        (
            job(RING, '"racks"') + '[switch]\n[topology]\nkind = "ring"\n',
            5,
            'groups = "racks": each is in a rack of its own: write a number of groups',
        ),
        (job(RING, "1"), 5, "groups = 1: two groups or more: leave it out for one"),
        (job(RING, "6"), 5, "groups = 6 of 5 workers: a group has at least one"),
        (
            job(RING, "[[0, 1], [1, 2, 3]]"),
            5,
            "groups = [[0, 1], [1, 2, 3]]: each worker, 0 to 4, is in one group",
        ),
        (
            job(RING, '"rack"'),
            5,
            'groups: expected "racks", a number of groups, or the workers of each: [[0, 1], [2]]',
        ),
        (job(RING, "[3, 0]"), 5, "groups: expected"),
        (job(RING, '[2, "racks"]'), 5, "groups: expected"),
        (job(RING, "[[0, 1], [[2], [3, 4]]]"), 5, "groups: expected"),
        (job(RING, "[2, 1]"), 5, "groups = [2, 1]: two groups or more: leave it out for one"),
        (job(RING, "[2, 3]"), 5, "groups = [2, 3] of 5 workers: a group has at least one"),
        (job(RING, "2") + "rings = true\n", 6, 'rings applies to aggregation = "ps" with groups'),
        (f"[[job]]\n{TREE}rings = true\n", 4, 'rings applies to aggregation = "ps" with groups'),
        (
            job(TREE, "2") + "rings = true\n",
            1,
            'rings = true with reliability = "lossy": a lost partial sum would stop the ring',
        ),
        (
            job(TREE, "2") + 'reliability = "retransmit"\nrings = true\nquorums = [3, 1]\n',
            7,
            "quorums with rings = true: a group's sum passes through all of its workers",
        ),
        (
            job(TREE, "2") + 'reliability = "retransmit"\nrings = true\nquorum = 4\n',
            7,
            "quorum with rings = true: a group's sum passes through all of its workers",
        ),
        (
            job(TREE, "2") + 'reliability = "retransmit"\nrings = true\nlocal_steps = 2\n',
            7,
            "local_steps = 2 with rings = true: a ring's workers send values in every round",
        ),
        (
            job(TREE, "2").replace("float32", "thc")
            + 'reliability = "retransmit"\nrings = true\npull = "sums"\n',
            7,
            'pull = "sums" with rings = true: rings add values, not codes',
        ),
        (
            job(TREE, "2").replace("float32", "thc") + 'reliability = "retransmit"\nrings = true\n',
            3,
            "codec thc: its workers agree on a statistic before they encode, partial sums have",
        ),
        (
            job(TREE, "[2, 2]").replace("[2, 2]", "[4, 2]") + "quorums = [1, 2]\n",
            5,
            "quorums = [1, 2]: 6 groups have a server each, below the job's; there are 3 levels of"
            " servers, from the leaves to the root, with [1, 2, 2] children or more",
        ),
        ("[[job]]\ngroups = 2\n", 2, 'groups with aggregation = "switch": they are of "ring" and'),
        (
            job(TREE, "2") + "quorum = 4\n",
            5,
            "quorum = 4 of 5 workers: 2 groups have a server each",
        ),
        (job(TREE, "2") + "quorums = [3, 2]\n", 5, "quorums = [3, 2]: 2 groups have a server each"),
        (
            job(TREE, "2") + "quorums = [2, 1]\nquorum = 3\n",
            6,
            "quorum = 3 with quorums = [2, 1]: a result has 2 × 1 = 2 workers",
        ),
        (
            job(TREE, "2") + "quorums = [2, 1]\nlocal_steps = 2\n",
            6,
            "local_steps = 2 with quorums: a group that is left out would lose its step",
        ),
        (
            job(RING, "2") + "quorums = [2, 1]\n",
            6,
            "quorums are of switches that sum a job in levels, and here they do not: use quorum",
        ),
        (
            f'[[job]]\n{TREE}between = "float16"\n',
            4,
            'between applies to aggregation = "ps" with groups only: leave it out',
        ),
        (
            job(TREE, "2") + 'between = "thc"\n',
            5,
            "codec thc: workers agree on a statistic before they encode, and sums have none: use"
            " another codec, such as float32",
        ),
        (
            job(TREE, "2").replace("float32", "thc") + 'pull = "sums"\nbetween = "topk"\n',
            6,
            "between with pull = sums: groups' sums travel as integers: leave it out",
        ),
    ],
)
def test_refusals(tmp_path: Path, jobs: str, line: int, message: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        deploy(tmp_path, jobs)
    assert f"e.toml:{line}: {message}" in str(refused.value)
