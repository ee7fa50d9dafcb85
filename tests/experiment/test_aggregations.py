"""The refusals of each aggregation scheme, with the key that each is about."""

import pickle
from pathlib import Path

import pytest

from gradplane import aggregations
from gradplane.experiment.deploying import DeploymentError, deploy
from gradplane.experiment.loading import ExperimentError, load, load_deployment
from gradplane.experiment.schema import Experiment, Job

RING = 'aggregation = "ring"\npush = "float32"\nreliability = "retransmit"\n'


def test_a_refused_deployment_can_be_pickled() -> None:
    job = Job(workers=9, quorum=9, seed=1)
    with pytest.raises(DeploymentError) as refused:
        deploy(Experiment(job=(job,)))
    again = pickle.loads(pickle.dumps(refused.value))
    assert again.problems == refused.value.problems
    assert str(again) == "9 workers from host 1 on do not fit the topology's 4"


def test_schemes_are_found_by_file_name() -> None:
    assert aggregations.names() == ["optireduce", "plan", "ps", "ring", "shared", "switch"]
    assert [aggregations.get(name).name for name in aggregations.names()] == aggregations.names()


@pytest.mark.parametrize(
    ("keys", "milliseconds"),
    [
        # 8 passes of 1 us; before the packet's own pass 4 windows of 2 x 8 passes of 121 ns each.
        ("", 0.016),
        ('rate = "1Mbit"', 0.016 + 2 * 8e-3 * (512 + 1024 + 2 * 72)),  # two packets of each kind
        ('rate = "1Mbit"\nqueue = 1', 0.016 + 2 * 8e-3 * (512 + 1024 + 2 * 72)),
        ('delay = "5ms"', 10.016),
        ('kind = "leaf-spine"\nfabric_delay = "5ms"', 10.022),  # two switches with two
        # children, of which the upper one is one of two for half of the slots each
    ],
)
def test_the_first_timeout_comes_from_the_links(
    tmp_path: Path, keys: str, milliseconds: float
) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f"[topology]\n{keys}\n[[job]]\nslots = 4\n")
    (job,) = load_deployment(path).jobs
    assert job.config.transport.round_trip_ns / 1e6 == pytest.approx(milliseconds, abs=1e-3)


@pytest.mark.parametrize(
    ("keys", "job", "milliseconds"),
    [
        # 12 segments of 1470 bytes each of 4 workers meet at the server's link.
        ('rate = "1Mbit"', 'aggregation = "ps"', 48 * 8 * 1.47),
        ('rate = "1Mbit"\nqueue = 9', 'aggregation = "ps"', 10 * 8 * 1.47),
        ('delay = "5ms"', 'aggregation = "ps"', 20),
        ('rate = "1Mbit"', f"{RING}epochs = 1", 3 * 8 * 1.47),
        ('rate = "1Mbit"', "", 0),
        ('rate = "1Mbit"', "sync = true", 36 * 8 * 1.47),
    ],
)
def test_the_least_timeout_of_streams_comes_from_what_meets_at_a_link(
    tmp_path: Path, keys: str, job: str, milliseconds: float
) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f"[topology]\n{keys}\n[[job]]\n{job}\n")
    (deployed,) = load_deployment(path).jobs
    assert deployed.config.transport.stream_trip_ns / 1e6 == pytest.approx(milliseconds, rel=1e-6)


@pytest.mark.parametrize("first_host", [1, 3])
def test_streams_wait_for_those_of_other_jobs(tmp_path: Path, first_host: int) -> None:
    """The streams of two jobs meet at their server's link, whichever hosts they come from."""
    path = tmp_path / "e.toml"
    job = '[[job]]\naggregation = "ps"\nworkers = 2\n'
    path.write_text(f'[topology]\nrate = "1Mbit"\n{job}{job}first_host = {first_host}\n')
    trips = [job.config.transport.stream_trip_ns / 1e6 for job in load_deployment(path).jobs]
    assert trips == pytest.approx([2 * 2 * 12 * 8 * 1.47] * 2, rel=1e-6)


@pytest.mark.parametrize(
    ("job", "line", "message"),
    [
        (
            f"{RING}quorum = 3\n",
            5,
            'aggregation = "ring" with quorum = 3 of 4 workers: every partial sum passes through'
            " all workers, so no worker can be left out: use quorum = 4, or"
            ' aggregation = "switch" or "ps"',
        ),
        (
            'aggregation = "ring"\npush = "float32"\n',
            1,
            'aggregation = "ring" with reliability = "lossy": a lost partial sum would stop the'
            ' ring, so hosts send it again: use reliability = "retransmit", or'
            ' aggregation = "switch" or "ps"',
        ),
        (
            f'{RING}pull = "float32"\n',
            5,
            'a ring has no server that answers: pull is for aggregation = "ps"',
        ),
        (
            "marked = true\nbound = 10\n",
            2,
            'marked = true with aggregation = "switch": its workers do not send float32 values: use'
            ' aggregation = "ring" or "ps"',
        ),
        (
            f"{RING}local_steps = 2\n",
            5,
            'local_steps = 2 with aggregation = "ring": only a parameter server\'s workers may send'
            ' nothing in a round: use aggregation = "ps" without marked, or local_steps = 1',
        ),
        (
            'push = [["*", "thc"]]\n',
            2,
            'codec by tensor with aggregation = "switch": its workers sum whole vectors under one'
            ' codec: use aggregation = "ps", or one codec',
        ),
        (
            RING.replace("float32", "thc"),
            3,
            "codec thc: its workers agree on a statistic before they encode, partial sums have"
            " none: use another codec, such as float16 or inceptionn, or"
            ' aggregation = "ps"',
        ),
    ],
)
def test_refusals(tmp_path: Path, job: str, line: int, message: str) -> None:
    path = tmp_path / "e.toml"
    program = '[switch]\nprogram = "tos_compress.p4"\n' if "marked" in job else ""
    path.write_text(f"[[job]]\n{job}{program}")
    with pytest.raises(ExperimentError) as refused:
        load(path)
    lines = str(refused.value).splitlines()
    assert f"{path}:{line}: {message}" in lines


@pytest.mark.parametrize(("name", "hosts"), [("switch", 5), ("ps", 5), ("ring", 4)])
def test_a_host_for_servers_is_there_where_the_job_or_its_baseline_has_one(
    tmp_path: Path, name: str, hosts: int
) -> None:
    path = tmp_path / "e.toml"
    path.write_text(f"[[job]]\n{RING if name == 'ring' else ''}")
    deployment = load_deployment(path, [f"job.aggregation={name}"])
    assert len(deployment.topology.hosts) == hosts
    assert [config.worker for config in deployment.hosts][:4] == [0, 1, 2, 3]
    assert len(deployment.hosts) == (5 if name == "ps" else 4)
