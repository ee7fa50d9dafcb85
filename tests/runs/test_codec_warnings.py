"""A run says where its codec keeps it from learning; and says nothing where training works."""

import sys
from pathlib import Path

import pytest

from gradplane import codecs
from gradplane.experiment.deploying import deploy, resolve
from gradplane.experiment.schema import Experiment, Job, Output, TopologySection
from gradplane.runs.codec_warnings import codec_risk, codec_warnings
from gradplane.runs.run_experiment import run
from gradplane.studies import recorded, trainings

# Gradients of digits 1 / scale times smaller, and learning rates as much larger.
SMALL = """
from gradplane.hosts.training.models import Perceptron, mlp

class Small(Perceptron):
    scale = 1.0
    def loss_and_gradient(self, params, x, y):
        loss, gradient = super().loss_and_gradient(params, x, y)
        return loss, gradient * gradient.dtype.type(self.scale)

def small(features, classes, scale):
    model = mlp(features, classes)
    model.__class__ = Small
    model.scale = scale
    return model
"""
INCEPTIONN, QSGD = {"name": "inceptionn", "bound": 6}, {"name": "qsgd"}


def job(push, scale=1.0, **keys):
    given = {"aggregation": "ps", "push": push, "epochs": 8, "batch": 16, "lr": 0.05 / scale}
    model = {"name": "small_gradients:small", "scale": scale}
    return Job(**given | {"model": model} | keys)


@pytest.fixture(autouse=True)
def _model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "small_gradients.py").write_text(SMALL)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("small_gradients", None)


CASES = [
    (job(INCEPTIONN, 1 / 16, error_feedback=False), "inceptionn never begins"),
    (job(INCEPTIONN, 1 / 8, error_feedback=False), None),
    (job(INCEPTIONN, 1 / 16), None),
    (job(QSGD), "qsgd's error grows"),
    (job(QSGD, error_feedback=False), None),
    (job({"name": "qsgd", "levels": 63}), None),
    (job({"name": "thc", "bits": 1, "granularity": 1}, epochs=2), "thc's error grows"),
    (job({"name": "thc", "bits": 1, "granularity": 1}, error_feedback=False), None),
    (job({"name": "thc", "bits": 2}), None),
    (job({"name": "uniform_thc", "bits": 2, "rotate": False}), None),
    (job("randomk"), "randomk"),
    (job({"name": "randomk", "fraction": 0.2}, lr=0.1), "randomk"),
    (job({"name": "randomk", "fraction": 0.3}), None),
    (job("randomk", momentum=0.0), None),
]


@pytest.mark.parametrize("asked, wrong", CASES, ids=str)
def test_a_warning_where_training_fails_and_none_where_it_works(asked, wrong):
    made = Experiment(topology=TopologySection(workers=4), job=(asked,))
    deployment = deploy(resolve(made))
    found = list(codec_warnings(deployment))
    assert len(found) == (wrong is not None), found
    accuracy = trainings.run(deployment.jobs[0].config).accuracy
    assert (accuracy < 0.5) if wrong else (accuracy > 0.8), (accuracy, found)


# What scripts/record_gradients.py --train printed: the accuracy after 200 steps of four workers, of
# the models whose gradients were recorded; and that without a codec. (With error feedback or not.)
PLAIN = {"digits-cnn": 0.942, "letters-transformer": 0.312}
TRAINED = {
    ("inceptionn", "bound", 6, False): (0.931, 0.239),
    ("inceptionn", "bound", 8, False): (0.939, 0.277),
    ("inceptionn", "bound", 10, False): (0.942, 0.305),
    ("inceptionn", "bound", 6, True): (0.936, 0.283),
    ("qsgd", "levels", 7, False): (0.928, 0.285),
    ("qsgd", "levels", 7, True): (0.103, 0.168),
    ("qsgd", "levels", 63, True): (0.942, 0.308),
    ("randomk", "fraction", 0.1, True): (0.544, 0.226),
    ("randomk", "fraction", 0.3, True): (0.447, 0.263),
}


@pytest.mark.parametrize("place, name", list(enumerate(PLAIN)))
def test_recorded_gradients_get_no_warning_where_their_training_works(place: int, name: str):
    """Looked at as a run does: the first gradient, of any worker."""
    found = recorded.load(name)
    for (kind, key, value, feedback), accuracies in TRAINED.items():
        codec = codecs.get(kind, **{key: value})
        for worker in range(len(found.workers)):
            risk = codec_risk(codec, found.vector(0, worker), feedback, momentum=0.9)
            works = accuracies[place] > 0.75 * PLAIN[name]
            assert not (works and risk), (kind, value, risk)
            assert risk or (kind, value, feedback) not in (
                ("qsgd", 15, True),
                ("randomk", 0.1, True),
            )


def test_the_warning_has_the_numbers():
    made = Experiment(topology=TopologySection(workers=4), job=(CASES[0][0],))
    (text,) = codec_warnings(deploy(resolve(made)))
    assert text == (
        "job experiment: 100.0 % of the first gradient's values became 0: the error bound, 0.0156,"
        " is 13.8 times their root mean square, so it will hardly learn: use bound = 8, or bound ="
        " 10, or error_feedback = true"
    )


def test_a_run_says_so_before_its_first_round(tmp_path: Path, capsys: pytest.CaptureFixture):
    output = Output(baseline=False, report=False)
    asked = job("randomk", model={"name": "softmax"}, epochs=1, batch=400)
    made = Experiment(topology=TopologySection(workers=2), job=(asked,), output=output)
    run(made, tmp_path / "run", net="sim", console=True)
    assert "warning: job experiment: randomk sends a value in one of" in capsys.readouterr().out
