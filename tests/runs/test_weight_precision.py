"""Weights at the precision that AWP chooses: from a server over the network, and to a device."""

from pathlib import Path

import pytest

from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import Experiment, load
from gradplane.pages.report.run_page import weight_precision
from gradplane.runs.records import run_folder
from gradplane.runs.records.run_data import RunData
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import run

# The threshold counts each round whose norm grows by less than 10 %: all of them.
POLICY = {"threshold": 0.1, "interval": 3}
SIZES = [1024, 16, 160, 10]


def experiment(**job: object) -> Experiment:
    keys = {
        "aggregation": "ps",
        "push": "threelc",
        "model": {"name": "mlp", "hidden": [16]},
        "epochs": 1,
        "weight_decay": 5e-4,
    }
    values = {
        "name": "awp",
        "topology": {"workers": 3},
        "job": [keys | job],
        "output": {"baseline": False, "report": False},
    }
    return load(Experiment.model_validate(values))


def rounds(folder: Path) -> list[dict]:
    return list(run_folder.read_lines(folder / run_folder.METRICS))


def test_a_server_raises_the_precision_of_what_it_sends(tmp_path: Path) -> None:
    pull = {"name": "adt", "policy": "awp", **POLICY}
    folder = tmp_path / "run"
    summary = run(experiment(pull=pull), folder, net="sim")
    lines = rounds(folder)
    kept = [line["workers"][0]["precision"] for line in lines]
    assert kept == [[min(4, 1 + n // 3), 4, min(4, 1 + n // 3), 4] for n in range(len(lines))]
    for line, after in zip(lines, kept[1:], strict=False):
        size = sum(n * keep for n, keep in zip(SIZES, after, strict=True)) + len(SIZES)
        bodies = [worker["payload_down"] for worker in line["workers"]]
        assert all(size <= body < size + 64 for body in bodies)
    assert len(set(summary.weights["awp"].values())) == 1
    assert replay(folder).equal
    (page,) = weight_precision(RunData.read(folder))
    assert [key["label"] for key in page["key"]] == ["layer0.weights", "layer1.weights"]


def test_full_precision_trains_as_mean_gradients_do(tmp_path: Path) -> None:
    """ADT with four bytes loses nothing, so it does not matter who makes the step."""
    pull = {"name": "adt", "policy": "awp", "initial": 32}
    weights = [
        run(experiment(**keys), tmp_path / str(number), net="sim").weights
        for number, keys in enumerate(({"pull": pull}, {}))
    ]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("aggregation", ["ps", "ring"])
def test_a_device_gets_weights_over_its_bus(tmp_path: Path, aggregation: str) -> None:
    device = {"rate": "8Gbit", "pack_ns_per_value": 2.0, "unpack_ns_per_value": 1.0}
    device |= {"norm_ns_per_value": 0.5, "policy": {"name": "awp", **POLICY}}
    keys = {"push": "float32", "reliability": "retransmit", "aggregation": aggregation}
    folder = tmp_path / "run"
    summary = run(experiment(device=device, **keys), folder, net="sim")
    first, *_, last = rounds(folder)
    n = SIZES[0] + SIZES[2]
    times = {"norm": n // 2, "pack": 2 * n, "unpack": n, "up": 4 * sum(SIZES)}
    packed = n + 4 * (SIZES[1] + SIZES[3]) + 4  # a byte a weight, biases whole, a byte a tensor
    worker = first["workers"][0]
    assert worker["device"] == times | {"down": packed}
    assert worker["computed"] - worker["started"] == 1_000_000 + sum(worker["device"].values())
    assert last["workers"][0]["device"] == times | {"down": 4 * sum(SIZES) + 4}
    assert set(summary.values["jobs"][0]["device"]) == set(worker["device"])
    assert replay(folder).equal


def test_weights_that_a_server_sent_cross_the_bus_as_they_came(tmp_path: Path) -> None:
    pull = {"name": "adt", "policy": "awp", **POLICY}
    folder = tmp_path / "run"
    run(experiment(pull=pull, device={"rate": "8Gbit"}), folder, net="sim")
    for line in rounds(folder):
        worker = line["workers"][0]
        sizes = zip(SIZES, worker["precision"], strict=True)
        assert worker["device"]["down"] == sum(n * keep for n, keep in sizes) + len(SIZES)
        assert worker["device"]["pack"] == worker["device"]["norm"] == 0


def test_answers_feed_their_error_back_and_skip_rounds(tmp_path: Path) -> None:
    keys = {"push": "onebit", "pull": "onebit", "pull_feedback": True, "local_steps": 2}
    folder = tmp_path / "run"
    run(experiment(**keys), folder, net="sim")
    sizes = [line["payload_down"] for line in rounds(folder)]
    assert max(sizes[::2]) < min(sizes[1::2]) / 2  # every second round says nothing
    assert replay(folder).equal


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"pull": {"name": "int8", "policy": "awp"}}, 'policy with codec int8: a policy is for "'),
        ({"pull": {"name": "adt", "policy": "wap"}}, 'no policy "wap": there is "awp"'),
        ({"pull": {"name": "adt", "policy": "awp", "bits": 8}}, 'no parameter "bits"; its'),
        ({"pull": {"name": "adt", "policy": "awp", "interval": 0}}, "interval must be at least 1"),
        ({"push": {"name": "adt", "policy": "awp"}}, 'adt has no parameter "policy"'),
        ({"device": {"rate": "fast"}}, 'rate = "fast"'),
        ({"aggregation": "ring", "push": "float32", "pull_feedback": True}, "pull_feedback is for"),
        (
            {
                "pull": {"name": "adt", "policy": "awp"},
                "device": {"rate": "8Gbit", "policy": "awp"},
            },
            "policy in both pull and device",
        ),
    ],
)
def test_what_is_refused(keys: dict, message: str) -> None:
    with pytest.raises(ExperimentError, match=message.replace('"', ".")):
        experiment(**keys)
