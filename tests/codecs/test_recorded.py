"""Recorded gradients: their file, the sets that ship, and what codecs do to them."""

import io
from pathlib import Path

import numpy as np
import pytest

from gradplane import codecs
from gradplane.codecs import CodecError, RecordedGradients
from gradplane.studies import recorded
from gradplane.studies.recorded.advice import advise

SETS = ("digits-cnn", "letters-transformer")


def small() -> RecordedGradients:
    values = np.random.default_rng(1).normal(size=(2, 3, 40)).astype(np.float32)
    layers = (values[..., :32].reshape(2, 3, 4, 8), values[..., 32:])
    return RecordedGradients(("a.weight", "a.bias"), (1, 7), (0, 1, 2), layers, "drawn", "none")


def test_a_file_has_what_was_written(tmp_path: Path) -> None:
    made = small()
    made.write(tmp_path / "g.npz")
    found = RecordedGradients.read(tmp_path / "g.npz")
    assert (found.layers, found.steps, found.workers) == (made.layers, made.steps, made.workers)
    assert (found.origin, found.licence) == ("drawn", "none")
    assert found.shapes == ((4, 8), (8,)) and found.sizes == (32, 8)
    assert np.array_equal(found.vector(1, 2), made.vector(1, 2)) and found.vector(0, 0).size == 40
    assert np.array_equal(found.vector(1, 2, 1), made.values[1][1, 2])


def entries(**changed):
    values = np.ones((1, 1, 2), np.float32)
    made = {"version": 1, "layers": np.array(["w"]), "steps": [1], "workers": [0]}
    made |= {"gradient_0": values} | changed
    data = io.BytesIO()
    np.savez(data, **{key: value for key, value in made.items() if value is not None})
    return data.getvalue()


def array():
    data = io.BytesIO()
    np.save(data, np.ones(3, np.float32))
    return data.getvalue()


BAD = {
    b"": "no NumPy archive (.npz): gradplane.torch.record_gradients writes one",
    b"text": "no NumPy archive (.npz): gradplane.torch.record_gradients writes one",
    array(): "no NumPy archive (.npz), but one array (float32 of (3,)): gradplane.torch"
    ".record_gradients writes one",
    entries(steps=None): 'no entry "steps": it has version, layers, workers, gradient_0; see'
    " docs/codecs.md",
    entries(version=2): "version 2: this gradplane reads version 1",
    entries(layers=np.array([1])): 'entry "layers" is int64 of shape (1,); see docs/codecs.md',
    entries(steps=[0]): "steps must increase from 1 or more, got (0,)",
    entries(layers=np.array([], str)): "no gradients: layers, steps and workers need an element"
    " each",
    entries(gradient_0=None): 'no entry "gradient_0", the gradients of layer w',
    entries(gradient_0=np.ones((1, 2, 2), np.float32)): "gradient_0 (w) is float32 of shape"
    " (1, 2, 2): expected float32 of (1 steps, 1 workers, and the layer's shape)",
    entries(gradient_0=np.array([[[1.0, np.nan]]], np.float32)): "gradient_0 (w), step 1,"
    " worker 0: NaN at index 1",
    entries(gradient_0=np.array([None])): 'entry "gradient_0" cannot be read: Object arrays'
    " cannot be loaded when allow_pickle=False",
}


@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_wrong_file_is_refused_with_the_entry(number: int, tmp_path: Path) -> None:
    data, text = list(BAD.items())[number]
    path = tmp_path / "g.npz"
    path.write_bytes(data)
    with pytest.raises(CodecError) as error:
        RecordedGradients.read(path)
    assert str(error.value) == f"{path}: {text}"


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    whole = entries()
    for length in range(0, len(whole), 29):
        path.write_bytes(whole[:length])
        with pytest.raises(CodecError, match="g.npz: "):
            RecordedGradients.read(path)
    for at in range(0, len(whole), 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            RecordedGradients.read(path)
        except CodecError as error:
            assert str(error).startswith(f"{path}: "), error


def test_the_sets_that_ship() -> None:
    assert recorded.names() == list(SETS)
    assert sum(path.stat().st_size for path in recorded.FOLDER.glob("*.npz")) < 2e6
    for name in SETS:
        found = recorded.load(name)
        assert "PyTorch 2.13.0" in found.origin and found.licence and len(found.workers) == 4
    with pytest.raises(CodecError) as error:
        recorded.load("digit-cnn")
    assert str(error.value) == (
        'digit-cnn: neither a file nor shipped gradients: did you mean "digits-cnn"?'
    )


def test_effects_are_those_of_the_codec() -> None:
    """Layer by layer, and on all of them as a job sends them."""
    made = small()
    whole, weight, bias = recorded.effects(codecs.get("topk", fraction=0.25), made)
    assert (whole.layer, weight.layer, bias.layer) == (recorded.WHOLE, *made.layers)
    assert (whole.bytes, weight.bytes, bias.bytes) == (80, 64, 16)
    assert whole.bias == pytest.approx(-whole.nmse)  # what is cut off is missing
    exact = recorded.effects(codecs.get("float32"), made)
    assert {row.nmse for row in exact} == {0.0} == {row.bias for row in exact}
    per_tensor = recorded.effects(codecs.get("onebit"), made)
    assert per_tensor[0].bytes == sum(row.bytes + 4 for row in per_tensor[1:])
    assert per_tensor[0].nmse_of_mean != per_tensor[0].nmse


def test_advice_is_the_smallest_that_is_near_enough() -> None:
    found = advise(recorded.load(SETS[0]))
    chosen = {one.way: one for one in found if one.recommended}
    assert chosen["ps"].codec == "threelc" and chosen["network"].parameters["bound"] >= 8
    assert chosen["switch"].codec in ("terngrad", "thc")
    for one in found:
        near = one.error <= 0.1 and one.risk is None
        assert not near or one.bytes >= chosen[one.way].bytes
    sent = {one.codec: 8 * one.bytes / 9930 for one in found if one.way == "switch"}
    assert {name: round(bits) for name, bits in sent.items()} == {
        "thc": 4, "terngrad": 2, "signsgd": 1, "switchml": 32,
    }  # fmt: skip
    randomk = [one for one in found if one.codec == "randomk"]
    assert randomk[0].risk is not None and randomk[0].error_feedback
