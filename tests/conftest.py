"""Small runs on the simulated network, made once, which the tests only read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradplane.runner.run_experiment import run
from gradplane.runner.summary import Summary

SMALL = """
[topology]
workers = 3

[[job]]
model = { name = "mlp", hidden = [20] }
epochs = 2
batch = 150
timeout_ms = 20

[output]
baseline = false
"""


@pytest.fixture(scope="session")
def experiment_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three workers, 2 epochs of 3 rounds, 1,510 values: 2 packets a round."""
    path = tmp_path_factory.mktemp("experiments") / "small.toml"
    path.write_text(SMALL)
    return path


Runs = Callable[..., Summary]


@pytest.fixture(scope="session")
def small_run(experiment_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A run of the small experiment with these settings; equal settings give the same folder."""
    made: dict[tuple[str, ...], Summary] = {}

    def get(*settings: str) -> Summary:
        if settings not in made:
            out = tmp_path_factory.mktemp("runs") / "run"
            made[settings] = run(experiment_file, out, net="sim", settings=settings)
        return made[settings]

    return get


@pytest.fixture(scope="session")
def lossy_run(small_run: Runs) -> Summary:
    """Losses both ways, a straggler, quorum 2, synchronisation: results in time, late and lost."""
    return small_run(
        "job.quorum=2",
        "job.sync=true",
        "job.slots=4",
        'impairment=[{model="bernoulli", rate=0.1}, {model="straggler", count=1, delay_ms=5}]',
    )
