"""Models: gradients against finite differences, layout, determinism, and what a user gets wrong."""

import numpy as np
import pytest

from gradplane._plugins import LoadError
from gradplane.hosts.training import models

FEATURES, CLASSES = 7, 4


def batch(rows=11):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(rows, FEATURES)).astype(np.float32)
    return x, rng.integers(0, CLASSES, rows)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("softmax", {}),
        ("mlp", {"hidden": [6]}),
        ("mlp", {"hidden": [6, 5]}),
        ("mlp", {"hidden": 3}),
    ],
)
def test_gradient_is_the_slope_of_the_loss(name, args):
    model = models.build(name, args, FEATURES, CLASSES)
    x, y = batch()
    params = model.parameters(3) + np.float32(0.01)
    _, gradient = model.loss_and_gradient(params, x, y)
    wide = params.astype(np.float64)  # float64, for differences that mean something
    for index in range(params.size):
        step = np.zeros_like(wide)
        step[index] = 1e-6
        above, _ = model.loss_and_gradient(wide + step, x, y)
        below, _ = model.loss_and_gradient(wide - step, x, y)
        assert gradient[index] == pytest.approx((above - below) / 2e-6, rel=1e-3, abs=1e-5)


def test_the_tensors_tile_the_parameters():
    model = models.build("mlp", {}, 64, 10)
    assert [(t.name, t.shape, t.offset) for t in model.tensors] == [
        ("layer0.weights", (64, 54), 0),
        ("layer0.bias", (54,), 3456),
        ("layer1.weights", (54, 10), 3510),
        ("layer1.bias", (10,), 4050),
    ]
    params = model.parameters(1)
    assert params.dtype == np.float32 and params.shape == (4060,)
    model.tensors[3].view(params)[:] = 9
    assert (params[4050:] == 9).all() and (params[:4050] != 9).all()


def test_equal_arguments_give_equal_bits():
    x, y = batch(64)
    results = []
    for _ in range(2):
        model = models.build("mlp", {"hidden": [6]}, FEATURES, CLASSES)
        results.append(model.loss_and_gradient(model.parameters(8), x.copy(), y))
    assert results[0][0] == results[1][0]
    assert results[0][1].tobytes() == results[1][1].tobytes()


def test_the_seed_decides_the_start():
    model = models.build("softmax", {}, FEATURES, CLASSES)
    assert (model.parameters(1) == model.parameters(1)).all()
    assert (model.parameters(1) != model.parameters(2)).any()


def test_huge_scores_stay_finite():
    model = models.build("softmax", {}, FEATURES, CLASSES)
    x, y = batch()
    loss, gradient = model.loss_and_gradient(1e6 * model.parameters(1), x, y)
    assert np.isfinite(loss) and np.isfinite(gradient).all()


def test_accuracy_is_the_share_of_right_rows():
    model = models.build("softmax", {}, 2, 2)
    params = np.array([1, 0, 0, 1, 0, 0], np.float32)  # the class is the larger feature
    x = np.array([[2, 1], [1, 2], [3, 0], [0, 3]], np.float32)
    assert models.accuracy(model, params, x, np.array([0, 1, 0, 0])) == 0.75


def test_ones_own_model(tmp_path, monkeypatch):
    (tmp_path / "own_model_file.py").write_text(
        "from gradplane.hosts.training.models import Perceptron\n"
        "class Nets:\n"
        "    @staticmethod\n"
        "    def small(features, classes, hidden=2):\n"
        "        return Perceptron([features, hidden, classes])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    model = models.build("own_model_file:Nets.small", {"hidden": 5}, FEATURES, CLASSES)
    assert model.parameters(1).size == 7 * 5 + 5 + 5 * 4 + 4


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_broken.py").write_text(
        "def model(features, classes): return dict()\nnumber = 7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        (
            "mpl",
            {},
            'no model "mpl": did you mean "mlp"? use one of mlp, softmax, synthetic, or your own:'
            ' "module:object", or "file.py" (docs/own-parts.md)',
        ),
        ("mlp", {"hidden": [0]}, "hidden must be a list of positive layer widths, got [0]"),
        (
            "softmax",
            {"hidden": 3},
            "model softmax: called with features, classes, hidden, but it takes"
            " (features, classes) (got an unexpected keyword argument 'hidden')",
        ),
        (
            ":x",
            {},
            'model ":x": write module:object, such as mymodels:Net, or a file, such as'
            " mymodels.py:Net",
        ),
        (
            "no_such_module:x",
            {},
            "model no_such_module:x: cannot import no_such_module (No module named"
            " 'no_such_module'); is its folder the current one, the experiment's or on"
            " PYTHONPATH?",
        ),
        ("own_broken:y", {}, "model own_broken:y: own_broken has no y"),
        ("own_broken:number", {}, "model own_broken:number: expected a callable, got int"),
        (
            "own_broken:model",
            {},
            "model own_broken:model: dict has no tensors, parameters, loss_and_gradient, predict;"
            " a model has tensors, parameters, loss_and_gradient, predict"
            " (gradplane.hosts.training.models.Model)",
        ),
    ],
)
@pytest.mark.usefixtures("own")
def test_what_cannot_be_had_is_said_in_full(name, args, message):
    with pytest.raises(LoadError) as caught:
        models.build(name, args, FEATURES, CLASSES)
    assert str(caught.value) == message
