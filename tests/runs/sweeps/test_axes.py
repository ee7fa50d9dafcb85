"""`--over`: keys, TOML values, what is refused."""

import numpy as np
import pytest

from gradplane.runs.sweeps.axes import Axis, axes, divided, grid, settings, short_names
from gradplane.runs.sweeps.plan_file import SweepError


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("job.quorum=3,4", (3, 4)),
        ("job.lr=0.1, 1e-2", (0.1, 0.01)),
        ("job.push=thc,uniform_thc", ("thc", "uniform_thc")),
        ('job.push="thc","a,b"', ("thc", "a,b")),
        ("job.sync=true,false", (True, False)),
        ("job.model.hidden=[54],[64, 32]", ([54], [64, 32])),
        (
            'job.push={name="thc", bits=4},{name="topk"}',
            ({"name": "thc", "bits": 4}, {"name": "topk"}),
        ),
        (r'job.name="a\",b",c', ('a",b', "c")),
    ],
)
def test_values_are_toml_values_or_plain_text(text: str, values: tuple[object, ...]) -> None:
    axis = Axis.parse(text)
    assert (axis.key, axis.values) == (text.partition("=")[0], values)


def test_commas_in_brackets_and_quotes_divide_nothing() -> None:
    assert divided("[1, 2],{a = [3, 4]}, 'x,y' ,5") == ["[1, 2]", "{a = [3, 4]}", "'x,y'", "5"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["job.quorum"], "--over job.quorum: expected KEY=V1,V2,..."),
        (["=3"], "--over =3: expected KEY="),
        (["job.quorum="], "--over job.quorum: no values"),
        (["job.quorum=3,3"], "--over job.quorum: 3 is given twice"),
        (["job.lr=1", "job.lr=2"], "--over job.lr: given twice: write all its values behind one"),
        (["seed=1,2"], "--over seed: every point runs under the same seeds: use --seeds N"),
        (["job.0.seed=1,2"], "--over job.0.seed: every point"),
        (["impairment.seed=1,2"], "--over impairment.seed: every point"),
    ],
)
def test_what_is_no_axis_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(SweepError) as refused:
        axes(texts)
    assert str(refused.value).startswith(message)


def test_from_python_values_may_be_arrays() -> None:
    (axis,) = axes({"job.lr": np.array([0.1, 0.2])})
    assert axis.values == (0.1, 0.2) and type(axis.values[0]) is float
    with pytest.raises(SweepError, match="job.push = 'thc': expected a list of values"):
        axes({"job.push": "thc"})


def test_the_last_axis_changes_fastest() -> None:
    points = grid(axes(["a=1,2", "b=3,4"]))
    assert [tuple(point.values()) for point in points] == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert [setting.place for setting in settings(points[0])] == ["--over a=1", "--over b=3"]
    assert grid(()) == [{}]


def test_short_names_tell_keys_apart() -> None:
    keys = ["job.push.bits", "job.pull.bits", "job.lr", "lr", "impairment.0.rate"]
    assert short_names(keys) == ["push.bits", "pull.bits", "job.lr", "lr", "rate"]
