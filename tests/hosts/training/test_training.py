"""Training as a generator, answered with plain averages: no network, no clock."""

import numpy as np
import pytest
from host_configs import make_job

from gradplane._plugins import LoadError
from gradplane.hosts.digest import digest
from gradplane.hosts.protocols.results import Reduced, Synchronised
from gradplane.hosts.training.models import accuracy, build, checked_gradient
from gradplane.hosts.training.train import (
    Compute,
    Reduce,
    Report,
    Synchronise,
    TrainingError,
    train,
)


def job(**changes):
    return make_job(**{"compute_ns": 1000} | changes)


def answer_together(trainings, steps):
    """Return the answers to one step of all workers."""
    first = steps[0]
    if isinstance(first, Reduce):
        mean = np.mean([step.vector for step in steps], axis=0)
        digests = [digest(step.vector) for step in steps]
        return [Reduced(mean, np.array([4]), 0, own, own, "sums") for own in digests]
    if isinstance(first, Synchronise):
        return [Synchronised(first.parameters, 0, 5) for _ in steps]
    assert isinstance(first, Compute | Report)
    return [None] * len(steps)


def run(config):
    """Return all steps of all workers, in lockstep: a list of one list for each step."""
    trainings = [train(config, worker) for worker in range(config.workers)]
    steps = [[next(training) for training in trainings]]
    while True:
        answers = answer_together(trainings, steps[-1])
        try:
            pairs = zip(trainings, answers, strict=True)
            steps.append([training.send(answer) for training, answer in pairs])
        except StopIteration:
            return steps


def reports(steps, kind, worker=0):
    mine = [step[worker] for step in steps]
    return [step.fields for step in mine if isinstance(step, Report) and step.kind == kind]


def test_four_workers_with_plain_averages_learn_the_digits():
    steps = run(job(epochs=6))
    done = reports(steps, "done")[0]
    assert done["test_accuracy"] > 0.93
    losses = [fields["loss"] for fields in reports(steps, "round")]
    assert len(losses) == 6 * 22
    assert np.mean(losses[-22:]) < 0.2 * np.mean(losses[:5])


def test_workers_that_get_the_same_means_stay_equal_and_draw_different_batches():
    steps = run(job(epochs=2))
    ends = {reports(steps, "done", worker)[0]["weights"] for worker in range(4)}
    gradients = {reports(steps, "round", worker)[0]["gradient"] for worker in range(4)}
    assert len(ends) == 1 and len(gradients) == 4


def test_a_run_repeats_bit_for_bit_and_the_seed_changes_it():
    ends = [reports(run(job(epochs=1, seed=seed)), "done")[0]["weights"] for seed in (5, 5, 6)]
    assert ends[0] == ends[1] != ends[2]


def test_steps_come_in_order_and_reports_say_what_happened():
    steps = [step[0] for step in run(job(epochs=1, batch=300, sync=True))]
    assert [type(step) for step in steps] == [Compute, Reduce, Report, Synchronise, Report, Report]
    compute, reduce, round_, synchronise, epoch, done = steps
    assert (compute.round, compute.ns, reduce.round) == (0, 1000, 0)
    assert set(round_.fields) == {
        "round",
        "epoch",
        "loss",
        "missed",
        "gradient",
        "codes",
        "sums",
        "weights",
    }
    assert round_.fields["gradient"] == digest(reduce.vector)
    assert round_.fields["weights"] == digest(synchronise.parameters) == done.fields["weights"]
    assert epoch.fields["source"] == 0 and epoch.fields["bytes"] == 5
    assert epoch.fields["test_accuracy"] == done.fields["test_accuracy"]


def test_one_step_is_momentum_sgd():
    training = train(job(workers=1, batch=700, momentum=0.5, lr=0.25), 0)
    mean = np.full(4060, 2, np.float32)
    reduced = Reduced(mean, np.array([1]), 3, "", "", "")
    weights, start = [], None
    step = next(training)
    while len(weights) < 2:
        step = training.send(reduced if isinstance(step, Reduce) else None)
        if isinstance(step, Report) and step.kind == "round":
            weights.append(step.fields)
    start = start_parameters()
    after_first = start - np.float32(0.25) * mean
    after_second = after_first - np.float32(0.25) * (np.float32(0.5) * mean + mean)
    assert [fields["weights"] for fields in weights] == [digest(after_first), digest(after_second)]


def start_parameters():
    from gradplane.hosts.training import models

    return models.build("mlp", {}, 64, 10).parameters(1)


def test_a_synchronisation_replaces_the_parameters_and_counts_what_was_missed():
    config = job(workers=1, epochs=1, batch=700, sync=True)
    training = train(config, 0)
    other = np.full(4060, 0.5, np.float32)
    step, epoch = next(training), None
    while True:
        answer = None
        if isinstance(step, Reduce):
            answer = Reduced(np.zeros(4060, np.float32), np.array([0]), 7, "", "", "")
        if isinstance(step, Synchronise):
            assert step.missed == 14  # two rounds of 7
            answer = Synchronised(other, 2, 99)
        if isinstance(step, Report) and step.kind == "epoch":
            epoch = step.fields
        if isinstance(step, Report) and step.kind == "done":
            break
        step = training.send(answer)
    assert (epoch["missed"], epoch["source"], epoch["bytes"]) == (14, 2, 99)
    assert step.fields["weights"] == digest(other)


def test_divergence_is_said_with_the_round_and_the_way_out():
    config = job(workers=1, batch=300, lr=1e30)
    training = train(config, 0)
    step, fields = next(training), {}
    with pytest.raises(TrainingError) as caught, np.errstate(all="ignore"):
        while True:
            answer = None
            if isinstance(step, Reduce):
                answer = Reduced(step.vector, np.array([1]), 0, "", "", "")
            if isinstance(step, Report):
                fields = step.fields
            step = training.send(answer)
    assert fields["round"] == 0
    assert str(caught.value) == (
        "job 1, worker 0, round 1: the gradient is not finite (loss nan):"
        " training diverged, lower lr (1e+30)"
    )


def test_too_small_a_share_is_refused_before_training():
    with pytest.raises(LoadError) as caught:
        train(job(batch=400), 0)
    assert str(caught.value) == (
        "1438 training rows over 4 workers are 359 each, less than a batch of 400:"
        " use batch ≤ 359 or fewer workers"
    )


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("np.zeros(4)", "float64[4]"),
        ("np.zeros((2, 2), np.float32)", "float32[2, 2]"),
        ("np.zeros(0, np.float32)", "float32[0]"),
        ("[1.0]", "list"),
        ("np.full(4, np.nan, np.float32)", None),
    ],
)
def test_a_model_with_unusable_parameters_is_refused(body, found, tmp_path, monkeypatch):
    name = f"own_parameters_{abs(hash(body))}"
    (tmp_path / f"{name}.py").write_text(
        "import numpy as np\n"
        "class Net:\n"
        "    tensors = ()\n"
        "    def __init__(self, features, classes): pass\n"
        f"    def parameters(self, seed): return {body}\n"
        "    def loss_and_gradient(self, params, x, y): raise AssertionError\n"
        "    def predict(self, params, x): raise AssertionError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LoadError) as caught:
        train(job(model=f"{name}:Net"), 0)
    wrong = f"must be float32[n], got {found}" if found else "has a NaN or infinity"
    assert str(caught.value) == f"model {name}:Net: parameters(seed) {wrong}"


@pytest.mark.parametrize(
    ("gradient", "found"),
    [("params.astype(float)", "float64[6]"), ("params[:5]", "float32[5]"), ("None", "NoneType")],
)
def test_a_model_whose_gradient_does_not_fit_is_refused(gradient, found, tmp_path, monkeypatch):
    name = f"own_gradient_{abs(hash(gradient))}"
    (tmp_path / f"{name}.py").write_text(
        "import numpy as np\n"
        "class Net:\n"
        "    tensors = ()\n"
        "    def __init__(self, features, classes): pass\n"
        "    def parameters(self, seed): return np.zeros(6, np.float32)\n"
        f"    def loss_and_gradient(self, params, x, y): return 0.5, {gradient}\n"
        "    def predict(self, params, x): raise AssertionError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LoadError) as caught:
        next(train(job(model=f"{name}:Net"), 0))
    assert str(caught.value) == (
        f"model {name}:Net: loss_and_gradient()[1] must be float32[6], got {found}"
    )


@pytest.mark.parametrize(
    ("loss", "found"),
    [
        ("params", "float32 of shape (6,)"),
        ("(0.5, params, 1)", "(float 0.5, float32 of shape (6,), int 1)"),
        ("('low', params)", "(str 'low', float32 of shape (6,))"),
        ("(np.zeros(2), params)", "(float64 of shape (2,), float32 of shape (6,))"),
    ],
)
def test_what_is_no_loss_and_gradient_is_named(loss, found):
    params = np.zeros(6, np.float32)
    with pytest.raises(LoadError) as caught:
        checked_gradient("mine:Net", eval(loss, {"np": np, "params": params}), 6)
    assert str(caught.value) == (
        f"model mine:Net: loss_and_gradient() returned {found}; expected (loss, gradient), a number"
        " and an array"
    )
    for right in (0.5, 1, np.float32(0.5), np.array(0.5)):
        assert checked_gradient("mine:Net", (right, params), 6) == (float(right), params)


@pytest.mark.parametrize("found", [None, np.zeros(4), np.zeros(3, int), [0, 1, 0, 1]])
def test_a_model_predicts_an_integer_for_each_row(found):
    class Net:
        def predict(self, params, x):
            return found

    with pytest.raises(
        LoadError, match=r"model Net: predict\(params, x\) returned .*; expected int"
    ):
        accuracy(Net(), np.zeros(6, np.float32), np.zeros((4, 2), np.float32), np.zeros(4, int))


@pytest.mark.parametrize(("tensors", "found"), [(None, "None"), ((1,), "(int 1)")])
def test_the_tensors_of_a_model_are_tensors(tensors, found, tmp_path, monkeypatch):
    name = f"own_tensors_{tensors is None}"
    (tmp_path / f"{name}.py").write_text(
        "class Net:\n"
        f"    tensors = {tensors}\n"
        "    parameters = loss_and_gradient = predict = None\n"
        "    def __init__(self, features, classes): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LoadError) as caught:
        build(f"{name}:Net", {}, 2, 2)
    assert str(caught.value) == (
        f"model {name}:Net: tensors is {found}; expected a tuple of Tensor(name, shape, offset)"
    )
