"""Runs on machines that exist: docs/cluster.md's script and experiment, as they stand there."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import cluster_cases
import pytest

from gradplane.runs import isolation
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import run

TEXT = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
FILES = dict(re.findall(r"^```\w+ ([\w.-]+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
SEVERAL_CLOCKS = not subprocess.run(
    ["unshare", "--user", "--time", "true"], capture_output=True, check=False
).returncode
LOGS = ("scheduler.txt", "s.txt", "m1.txt")


def among_machines(path: Path, *words: str) -> None:
    """Run a command in a folder that has the page's files, with the script's machines around."""
    possible, reason = isolation.can_isolate()
    if not possible:
        pytest.skip(reason)
    programs = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        isolation.command(["sh", "machines.sh", *words], keep=[path]),
        cwd=path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    logs = "".join(file.read_text() for name in LOGS if (file := path / name).exists())
    assert done.returncode == 0, done.stdout + done.stderr + logs


def page_files(path: Path) -> Path:
    """Write the page's files into a folder; return it."""
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the runs of cluster_cases."""
    path = page_files(tmp_path_factory.mktemp("cluster"))
    among_machines(path, sys.executable, cluster_cases.__file__, str(path))
    return path


@pytest.fixture(scope="module")
def found(folder: Path) -> Any:
    return json.loads((folder / "found.json").read_text())


def summary(folder: Path) -> Any:
    return json.loads((folder / "summary.json").read_text())


def test_weights_are_those_of_the_simulated_network(folder: Path) -> None:
    run(folder / "lab.toml", folder / "sim", net="sim")
    cluster, sim = summary(folder / "cluster"), summary(folder / "sim")
    assert cluster["network"] == "cluster"
    assert cluster["jobs"][0]["weights"] == sim["jobs"][0]["weights"]
    assert cluster["baseline"]["jobs"][0]["weights"] == sim["baseline"]["jobs"][0]["weights"]


@pytest.mark.parametrize("name", ["cluster", "restarted", "bmv2", "lost"])
def test_a_replay_is_equal(folder: Path, name: str) -> None:
    """Of the machine that died, all rounds that were recorded before."""
    if not (folder / name).exists():
        pytest.skip("no simple_switch_grpc")
    assert replay(folder / name).equal


@pytest.mark.parametrize("name", ["restarted", "bmv2"])
def test_another_switch_sums_the_same(folder: Path, found: Any, name: str) -> None:
    if name not in found:
        pytest.skip("no simple_switch_grpc")
    assert found[name] == ""
    values = summary(folder / name)
    assert values["jobs"][0]["weights"] == summary(folder / "cluster")["jobs"][0]["weights"]
    assert values["restarted"] == (["s1"] if name == "restarted" else [])


WHY = {
    "name": 'host h1: no Dask worker has the name "m8"; the scheduler has m1, m2, m3, m4: start it'
    " on that machine: dask worker tcp://10.1.0.254:8786 --name m8",
    "interface": "machine m1 (host h1): it has no interface eth8, but lo, eth0, eth1",
    "scheduler": "tcp://10.1.0.254:1: no Dask scheduler answers: Timed out",
    "switch": "switch s1: nothing answers at 10.1.0.100:1: is the switch running, and is this its"
    " control server's address?",
    "device": "switch s1: 10.1.0.100:9559: connect refused: NOT_FOUND: device id 5 is not served",
    "twice": "machine m1 (host h1): it is h2's machine, too",
    "several": f"machine {socket.gethostname()} (host h1): 4 Dask workers are there: name one",
}


@pytest.mark.parametrize("name", WHY)
def test_what_is_not_there_is_named(found: Any, folder: Path, name: str) -> None:
    assert found["refused"][name].startswith(WHY[name])
    assert not (folder / name).exists()


def test_a_machine_that_dies_is_named_and_the_records_are_kept(found: Any, folder: Path) -> None:
    assert found["lost"].startswith("machine m3 (host h3) is lost: ")
    rounds = len((folder / "lost" / "metrics.jsonl").read_text().splitlines())
    assert f"{rounds} of 14,000 rounds are recorded" in found["lost"]


def test_the_clocks_of_all_machines_were_compared(folder: Path) -> None:
    clocks = summary(folder / "cluster")["clocks"]
    assert [one["machine"] for one in clocks.values()] == ["m1", "m2", "m3"]
    for number, one in enumerate(clocks.values(), 1):
        ahead = 1000 * number * 10**9 if SEVERAL_CLOCKS else 0
        assert abs(one["ahead_ns"] - ahead) <= one["error_ns"]
        assert abs(one["of_day_ahead_ns"]) <= one["error_ns"] + 10**9  # which may be set meanwhile


def test_all_connections_are_encrypted_where_the_page_says(folder: Path, tmp_path: Path) -> None:
    """The scheduler, the workers and the switch take no other ones."""
    page_files(tmp_path)
    subprocess.run(["sh", "keys.sh"], cwd=tmp_path, check=True, capture_output=True)
    command = TEXT.partition("sh keys.sh\n")[2].partition("machines.sh ")[2].partition("\n")[0]
    plain = [word for setting in cluster_cases.PLAIN for word in ("--set", setting)]
    among_machines(tmp_path, *command.split(), *plain)
    values = summary(tmp_path / "runs" / "tls")
    assert values["jobs"][0]["weights"] == summary(folder / "cluster")["jobs"][0]["weights"]


def test_ranks_of_pytorchs_torchrun_join_by_the_file(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    page_files(tmp_path)
    among_machines(tmp_path, ".", "./ranks.sh")
    said = [(tmp_path / f"rank{n}.txt").read_text() for n in (1, 2, 3)]
    assert len(set(re.findall(r"^weights .*", "".join(said), re.MULTILINE))) == 1
    records = tmp_path / "runs" / "lab-torch-1"
    origins = [
        json.loads((records / "hosts" / f"h{n}.jsonl").read_text().partition("\n")[0])["origin"]
        for n in (1, 2, 3)
    ]
    assert max(origins) - min(origins) < 500 * 10**9  # of one clock
    counters = json.loads((records / "torchrun.json").read_text())
    assert counters["ranks"] == 3
    assert counters["reduces"] == 20
    assert [link["link"] for link in counters["links"]] == ["h1-s1", "h2-s1", "h3-s1"]
    assert replay(records).equal
