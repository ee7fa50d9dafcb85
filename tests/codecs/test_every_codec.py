"""One battery over all codecs: adding a codec adds its cases, and its vectors file must exist."""

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradplane import codecs
from gradplane.codecs import Codec, CodecError
from gradplane.codecs._contract import CHECKS, encoded
from gradplane.codecs._grid import GridCodec

VECTORS = Path(__file__).parent / "vectors"
NORMAL = np.random.default_rng(1).standard_normal(5000).astype(np.float32)


def contents(name: str) -> dict[str, Any]:
    path = VECTORS / f"{name}.json"
    assert path.exists(), f"{path} is missing: docs/codecs.md shows how to write a codec's vectors"
    return json.loads(path.read_text())


def cases() -> list[Any]:
    return [
        pytest.param(name, case, id=f"{name}-{case['params']}-{case['n']}")
        for name in codecs.names()
        for case in contents(name)["cases"]
    ]


def floats(text: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(text), "<f4").astype(np.float32)


@pytest.fixture(params=codecs.names())
def codec(request: pytest.FixtureRequest) -> Codec:
    return codecs.get(request.param)


@pytest.fixture(params=codecs.names())
def wrapped(request: pytest.FixtureRequest) -> Codec:
    return codecs.ErrorFeedback(codecs.get(request.param))


@pytest.mark.parametrize("name, case", cases())
def test_golden_vectors(name: str, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GridCodec, "_max_partition", case.get("partition", 2**20))
    monkeypatch.setattr(GridCodec, "_block", case.get("block", 2**10))
    codec = codecs.get(name, **case["params"])
    x = floats(case["x"])
    shared = floats(case["shared"]) if "shared" in case else None
    chance = {k: case[k] for k in ("seed", "worker") if k in case}
    data, _ = codec.encode(x, shared, state=codec.start(x.size), **chance)
    assert data.hex() == case["data"]
    assert codec.decode(data, case["n"]).tobytes() == floats(case["decoded"]).tobytes()


def test_error_of_a_normal_vector_is_within_the_codecs_bound(codec: Codec) -> None:
    data, _ = codec.encode(NORMAL, state=codec.start(NORMAL.size))
    error = codec.decode(data, NORMAL.size) - NORMAL
    bound = contents(codec.name)["nmse_of_normal_vector"]
    assert np.dot(error, error) <= bound * np.dot(NORMAL, NORMAL)


@pytest.mark.parametrize("rule", CHECKS)
def test_it_keeps_the_contract(codec: Codec, rule: str) -> None:
    """A codec without a row of its own here does, too; `gradplane codecs check` runs the same."""
    CHECKS[rule](codec)


def test_its_name_makes_an_equal_codec_whose_parameters_cannot_change(codec: Codec) -> None:
    again = codecs.get(**json.loads(json.dumps(codec.config)))
    assert again == codec and repr(again) == repr(codec)
    with pytest.raises(AttributeError):
        codec.bits = 3


@pytest.mark.parametrize(
    "x, text",
    [
        ([1.0], "expected a float32 array, got list"),
        (np.zeros(3), "expected float32 of shape (n,), got float64 of shape (3,)"),
        (
            np.zeros((2, 2), np.float32),
            "expected float32 of shape (n,), got float32 of shape (2, 2)",
        ),
        (np.zeros(3, ">f4"), "expected float32 of shape (n,), got >f4 of shape (3,)"),
    ],
)
def test_other_than_a_float32_vector_is_refused(codec: Codec, x: Any, text: str) -> None:
    with pytest.raises(CodecError) as caught:
        codec.encode(x)
    assert str(caught.value) == text


def test_truncated_and_oversized_bytes_are_called_so(codec: Codec) -> None:
    data = encoded(codec, NORMAL[:100])
    with pytest.raises(CodecError, match="^truncated: "):
        codec.decode(data[: len(data) // 2], 100)
    with pytest.raises(CodecError) as caught:
        codec.decode(data + b"abc", 100)
    assert str(caught.value) == f"3 bytes too many: {len(data)} expected, got {len(data) + 3}"


def test_decode_refuses_other_than_bytes_and_a_count(codec: Codec) -> None:
    with pytest.raises(CodecError) as caught:
        codec.decode("00", 1)
    assert str(caught.value) == "expected bytes, got str"
    with pytest.raises(CodecError) as caught:
        codec.decode(b"", -1)
    assert str(caught.value) == "n must be at least 0, got -1"


def test_what_does_not_fit_into_memory_is_refused() -> None:
    one = codecs.get("topk", k=1).encode(NORMAL)[0]
    with pytest.raises(CodecError, match="^4611686018427387904 values do not fit into memory$"):
        codecs.get("topk", k=1).decode(one, 2**62)


def test_every_codec_says_in_its_docstring_what_it_is(codec: Codec) -> None:
    assert inspect.getdoc(inspect.getmodule(type(codec))) and type(codec).__doc__


NOT_SUMMABLE = [name for name in codecs.names() if not codecs.get(name).summable]


@pytest.mark.parametrize("name", NOT_SUMMABLE)
def test_a_codec_that_cannot_be_summed_says_so(name: str) -> None:
    codec = codecs.get(name)
    calls = {
        "table": lambda: codec.table,
        "sum_bits": lambda: codec.sum_bits(4),
        "partitions": lambda: codec.partitions(4),
        "lanes": lambda: codec.lanes(4),
        "codes": lambda: codec.codes(NORMAL),
        "decode_sum": lambda: codec.decode_sum(np.zeros(4, int), 4, 1, None),
    }
    for call in calls.values():
        with pytest.raises(CodecError) as caught:
            call()
        text = f"the codes of {codec.name} cannot be summed: look at .summable first"
        assert str(caught.value) == text


def test_feedback_after_silence_holds_the_whole_vector(wrapped: Codec) -> None:
    state = wrapped.skip(NORMAL, wrapped.start(NORMAL.size))
    assert np.array_equal(state.error, NORMAL)
    assert np.array_equal(wrapped.skip(NORMAL, state).error, 2 * NORMAL)
