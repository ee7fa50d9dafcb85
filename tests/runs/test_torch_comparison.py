"""The figures that a comparison of hooks takes from scripts' records."""

import pytest

from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load_deployment
from gradplane.runs import torch_comparison
from gradplane.runs.torch_comparison import REFERENCE, WAYS, compare, figures
from gradplane.runs.torchrun import Finished, RankError


def rank(*lines):
    return [dict(zip(("at", "step", "test_accuracy"), line, strict=False)) for line in lines]


def test_figures_are_of_all_ranks():
    """An accuracy is the ranks' mean, and its time that of the last rank."""
    first = rank((1e9, 0), (3e9, 10, 0.8), (5e9, 20, 0.9))
    second = rank((2e9, 0), (3e9, 10, 0.9), (6e9, 20, 1.0))
    assert figures([first, second], 0.85) == (0.95, 0.2, 1.0)
    assert figures([first, second], 0.93) == (0.95, 0.2, 4.0)
    assert figures([first, second], 0.99) == (0.95, 0.2, None)


def test_scripts_that_record_nothing_have_no_figures():
    assert figures([], 0.9) == figures([[], []], 0.9) == (None, None, None)
    assert figures([rank((1e9,), (2e9,))], 0.9) == (None, None, None)


@pytest.mark.parametrize("key", WAYS)
def test_every_way_is_an_experiment(key):
    load_deployment("thc-star", ("job.by_tensor=false", *WAYS[key].settings))


def test_an_unknown_way_is_named(tmp_path):
    assert REFERENCE in WAYS
    with pytest.raises(ExperimentError, match=r'^no way "mxfp5": did you mean "mxfp'):
        compare("thc-star", tmp_path / "train.py", out=tmp_path / "out", ways=["mxfp5"])


def test_a_way_that_is_aborted_is_run_once_more(tmp_path, monkeypatch):
    """By whatever hook of PyTorch's: gloo's threads may end a rank that is done."""
    ended, told = [], []

    def torchrun(experiment, script, arguments, *, out, hook, **others):
        out.mkdir()
        ended.append(hook)
        if ended.count(hook) <= aborts:
            raise RankError("rank 1 ended with signal 6", 1, how)
        return Finished(out, {"link_bytes": {"hosts": 5}})

    monkeypatch.setattr(torch_comparison, "torchrun", torchrun)
    for number, (aborts, how) in enumerate(((1, "signal 6"), (2, "signal 6"), (1, "status 6"))):
        keys = {"out": tmp_path / str(number), "ways": ["bf16"], "on_way": told.append}
        if (aborts, how) == (1, "signal 6"):
            assert [
                row.link_bytes for row in compare("thc-star", tmp_path / "x.py", **keys)[1]
            ] == [5]
            assert told == ["bfloat16", "bfloat16, again, as a rank was aborted"]
            assert (tmp_path / "0" / "bf16-aborted").is_dir()
        else:
            with pytest.raises(RankError):
                compare("thc-star", tmp_path / "x.py", **keys)
        ended.clear()
