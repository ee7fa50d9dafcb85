"""A live switch whose ports are read on two cores."""

from pathlib import Path

import pytest

from gradplane.experiment.loading import ExperimentError, load
from gradplane.runs import run_experiment
from gradplane.runs.run_experiment import run

POSSIBLE, REASON = run_experiment.mininet_possible()
# Whatever the order of packets of several workers, a full quorum with retransmission has one sum.
SETTINGS = (
    "job.reliability=retransmit",
    "job.model.hidden=[60]",
    'impairment=[{model="bernoulli", rate=0.05}, {model="duplication", rate=0.1},'
    ' {model="reordering", rate=0.2, delay_ms=1}]',
    "output.baseline=false",
)


@pytest.mark.skipif(not POSSIBLE, reason=REASON)
@pytest.mark.parametrize("target", ["embedded", "tna"])
def test_sums_are_those_of_one_core(experiment_file: Path, tmp_path: Path, target: str) -> None:
    settings = [*SETTINGS, f"switch.target={target}"]
    cores = [*settings, "switch.cores=2"]
    live = run(experiment_file, tmp_path / "live", net="mininet", settings=cores)
    simulated = run(experiment_file, tmp_path / "sim", net="sim", settings=settings)
    assert live.weights == simulated.weights


def test_bmv2_is_refused(experiment_file: Path) -> None:
    with pytest.raises(ExperimentError, match='cores with target "bmv2": only targets "embedded"'):
        load(experiment_file, ["switch.cores=2", "switch.target=bmv2"])
