"""One battery over all codecs: adding a codec adds its cases, and its vectors file must exist."""

import inspect
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradplane import codecs
from gradplane.codecs import Codec, CodecError
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


@pytest.mark.parametrize("n", [0, 1, 2, 3, 63, 64, 65, 1000])
def test_decode_gives_n_finite_float32_within_max_size(codec: Codec, n: int) -> None:
    data, _ = codec.encode(NORMAL[:n], state=codec.start(n))
    y = codec.decode(data, n)
    assert (y.dtype, y.shape, bool(np.isfinite(y).all())) == (np.float32, (n,), True)
    assert len(data) <= codec.max_size(n)


def test_zeros_stay_zeros(codec: Codec) -> None:
    data, _ = codec.encode(np.zeros(100, np.float32), state=codec.start(100))
    assert not codec.decode(data, 100).any()


@pytest.mark.parametrize("scale", [1e-45, 1e-40, 1e-30, 6e4, 1e30])
def test_tiny_and_huge_values_decode_to_their_magnitude(codec: Codec, scale: float) -> None:
    x = np.float32(scale) * np.sign(NORMAL[:64])
    try:
        data, _ = codec.encode(x, state=codec.start(64))
    except CodecError as error:
        assert "beyond" in str(error)
        return
    assert np.abs(codec.decode(data, 64).astype(np.float64)).max() <= 10 * scale


def test_equal_arguments_give_equal_bytes_and_leave_x_alone(codec: Codec) -> None:
    x = NORMAL.copy()
    runs = [codec.encode(x, seed=5, worker=2, state=codec.start(x.size))[0] for _ in range(2)]
    assert runs[0] == runs[1]
    assert np.array_equal(x, NORMAL)


def test_decode_needs_only_the_bytes(codec: Codec) -> None:
    data, _ = codec.encode(NORMAL, seed=99, worker=7, state=codec.start(NORMAL.size))
    again = codecs.get(**codec.config)
    assert np.array_equal(codec.decode(data, NORMAL.size), again.decode(bytearray(data), 5000))


def test_strided_input_is_as_good_as_contiguous(codec: Codec) -> None:
    strided, _ = codec.encode(NORMAL[::7], state=codec.start(NORMAL[::7].size))
    copied, _ = codec.encode(NORMAL[::7].copy(), state=codec.start(NORMAL[::7].size))
    assert strided == copied


@pytest.mark.parametrize(
    "value, text",
    [
        (np.nan, "NaN at index 17"),
        (np.inf, "infinity at index 17"),
        (-np.inf, "-infinity at index 17"),
    ],
)
def test_values_that_are_not_finite_are_refused(codec: Codec, value: float, text: str) -> None:
    x = NORMAL[:32].copy()
    x[17:] = value
    for call in (codec.encode, codec.local):
        with pytest.raises(CodecError) as caught:
            call(x, state=codec.start(32))
        assert str(caught.value) == text


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


def test_truncated_and_oversized_bytes_are_refused(codec: Codec) -> None:
    data, _ = codec.encode(NORMAL[:100], state=codec.start(100))
    for length in (0, 1, 5, len(data) // 2, len(data) - 1):
        with pytest.raises(CodecError, match="^truncated: "):
            codec.decode(data[:length], 100)
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


def test_random_bytes_never_decode_to_anything_but_finite_values(codec: Codec) -> None:
    rng = np.random.default_rng(3)
    for size in (codec.max_size(20), 8, 0):
        for _ in range(200):
            try:
                y = codec.decode(rng.bytes(size), 20)
            except CodecError:
                continue
            assert np.isfinite(y).all() and y.shape == (20,)


@pytest.mark.parametrize("n", [2**31, 2**32, 2**40, 2**62])
@pytest.mark.parametrize("data", [b"", bytes(64), bytes(range(250)) * 4], ids=len)
def test_a_claimed_size_that_the_bytes_do_not_hold_allocates_nothing(
    codec: Codec, data: bytes, n: int
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CodecError):
            codec.decode(data, n)
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_what_does_not_fit_into_memory_is_refused() -> None:
    one = codecs.get("topk", k=1).encode(NORMAL)[0]
    with pytest.raises(CodecError, match="^4611686018427387904 values do not fit into memory$"):
        codecs.get("topk", k=1).decode(one, 2**62)


def test_configuration_makes_an_equal_codec_and_cannot_change(codec: Codec) -> None:
    again = codecs.get(**json.loads(json.dumps(codec.config)))
    assert again == codec and hash(again) == hash(codec) and repr(again) == repr(codec)
    with pytest.raises(AttributeError):
        codec.bits = 3


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


def test_feedback_keeps_exactly_what_the_receiver_lacks(wrapped: Codec) -> None:
    state, received, given = wrapped.start(500), np.zeros(500), np.zeros(500)
    for step in range(6):
        x = NORMAL[500 * step :][:500]
        given += x
        data, state = wrapped.encode(x, seed=step, state=state)
        received += wrapped.decode(data, 500)
    np.testing.assert_allclose(received + state.error, given, atol=2e-5)


def test_feedback_after_silence_holds_the_whole_vector(wrapped: Codec) -> None:
    state = wrapped.skip(NORMAL, wrapped.start(NORMAL.size))
    assert np.array_equal(state.error, NORMAL)
    assert np.array_equal(wrapped.skip(NORMAL, state).error, 2 * NORMAL)
