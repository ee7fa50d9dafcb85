"""3LC: quantisation and its bound, base-3^5, runs of zeros, accumulation, the parallel form."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_reference import ThreeLC, from_runs, to_digits, to_groups, to_runs

from gradplane import codecs
from gradplane.codecs import CodecError, ErrorFeedback, _base3, _zero_runs

MULTIPLIERS = (1.0, 1.5, 1.75, 1.9, 1.999)
each_s = pytest.mark.parametrize("s", MULTIPLIERS)
sparse_groups = st.lists(st.sampled_from([121, 121, 121, 121, 0, 242, 120]), max_size=90)


def message(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(CodecError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def bytes_of(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint8)


def normal(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([n, seed]).standard_normal(n).astype(np.float32)


def inputs() -> dict[str, np.ndarray]:
    return {
        "normal": normal(100_000),
        "one": normal(1),
        "equal": np.full(1000, -0.3, np.float32),
        "tiny": np.float32(1e-45) * np.arange(-7, 8, dtype=np.float32),
        "denormal": (1e-40 * normal(999)).astype(np.float32),
        "huge": (1e38 * np.clip(normal(999), -1.6, 1.6)).astype(np.float32),
    }


@each_s
@pytest.mark.parametrize("name", inputs())
def test_error_is_at_most_half_of_m(s: float, name: str) -> None:
    x, codec = inputs()[name], codecs.get("threelc", s=s)
    data, state = codec.encode(x, state=codec.start(x.size))
    m = np.frombuffer(data, "<f4", 1)[0]
    y = codec.decode(data, x.size)
    assert m == np.float32(np.abs(x).max() * np.float32(s))
    assert 2 * np.abs(x.astype(np.float64) - y).max() <= m
    assert np.array_equal(state.error, x - y)
    assert set(np.unique(np.abs(y))) <= {0, m}


@settings(max_examples=60)
@given(st.integers(0, 300), st.sampled_from(MULTIPLIERS), st.booleans(), st.integers(0, 99))
def test_several_steps_are_the_references(n: int, s: float, zero_runs: bool, seed: int) -> None:
    codec, reference = codecs.get("threelc", s=s, zero_runs=zero_runs), ThreeLC(s, zero_runs)
    state = codec.start(n)
    for step in range(4):
        x = normal(n, seed + step) ** 3
        data, state = codec.encode(x, state=state)
        assert data == reference.encode(x.tolist())
        assert state.error.tolist() == reference.error


def test_accumulation_sends_all_in_the_end() -> None:
    codec, x = codecs.get("threelc", s=1.5), normal(2000)
    state, received = codec.start(2000), np.zeros(2000)
    for _ in range(200):
        data, state = codec.encode(x, state=state)
        received += codec.decode(data, 2000)
    np.testing.assert_allclose(received + state.error, 200.0 * x, atol=0.01)
    assert np.linalg.norm(received / 200 - x) < 0.03 * np.linalg.norm(x)


def test_without_accumulation_there_is_no_state() -> None:
    codec, x = codecs.get("threelc", accumulate=False), normal(50)
    assert codec.start(50) is None and codec.skip(x) is None
    assert codec.encode(x)[1] is None
    assert codecs.get("threelc").memoryless == codec


def test_error_feedback_around_it_feeds_the_error_back_once() -> None:
    codec, wrapped = codecs.get("threelc"), ErrorFeedback(codecs.get("threelc"))
    state, outer = codec.start(300), wrapped.start(300)
    for step in range(5):
        x = normal(300, step)
        if step == 2:
            state, outer = codec.skip(x, state), wrapped.skip(x, outer)
            continue
        data, state = codec.encode(x, state=state)
        again, outer = wrapped.encode(x, state=outer)
        assert data == again and np.array_equal(state.error, outer.error)
        assert outer.inner is None


def test_state_that_does_not_fit() -> None:
    codec, x = codecs.get("threelc"), normal(4)
    for call in (codec.encode, codec.skip):
        text = "threelc needs the state of start(n) or of the last call"
        assert message(call, x, state=None) == text
        text = "the residual has 3 values, the vector 4"
        assert message(call, x, state=codec.start(3)) == text


@each_s
def test_a_larger_s_takes_fewer_bytes(s: float) -> None:
    x = normal(50_000)
    sizes = [len(codecs.get("threelc", s=v, accumulate=False).encode(x)[0]) for v in (1.0, s)]
    assert sizes[1] <= sizes[0] < codecs.get("threelc").max_size(50_000) / 2


def test_m_beyond_float32_is_refused() -> None:
    x = np.array([0, -3e38], np.float32)
    text = "m = 3e+38 x 1.5 is beyond float32: scale the vector down"
    codec = codecs.get("threelc", s=1.5)
    assert message(codec.encode, x, state=codec.start(2)) == text
    state = codecs.get("threelc").skip(x, codec.start(2))
    assert message(codec.encode, x, state=state) == "-infinity at index 1"


@given(st.lists(st.integers(0, 2), max_size=70))
def test_base_3_to_the_5(digits: list[int]) -> None:
    groups = _base3.pack(bytes_of(digits))
    assert groups.tolist() == to_groups(digits)
    assert _base3.unpack(groups, len(digits)).tolist() == digits


@pytest.mark.parametrize("n", [4096 * 5 - 1, 4096 * 5, 4096 * 5 + 1, 100_003])
def test_base_3_to_the_5_over_blocks(n: int) -> None:
    digits = np.random.default_rng(n).integers(0, 3, n).astype(np.uint8)
    groups = _base3.pack(digits)
    assert groups.tolist() == to_groups(digits.tolist())
    assert np.array_equal(_base3.unpack(groups, n), digits)


def test_every_group_is_five_digits() -> None:
    groups = np.arange(243, dtype=np.uint8)
    assert _base3.unpack(groups, 1215).tolist() == to_digits(groups.tolist(), 1215)
    assert _base3.pack(np.ones(5, np.uint8)).tolist() == [121]


@pytest.mark.parametrize(
    "run, coded",
    [
        (1, [121]),
        (2, [243]),
        (14, [255]),
        (15, [255, 121]),
        (16, [255, 243]),
        (28, [255, 255]),
        (29, [255, 255, 121]),
    ],
)
def test_runs_are_cut_into_fourteens(run: int, coded: list[int]) -> None:
    groups = bytes_of([7] + [121] * run + [120])
    assert _zero_runs.encode(groups).tolist() == [7, *coded, 120]
    assert _zero_runs.encode(bytes_of([121] * run)).tolist() == coded


@given(sparse_groups, st.integers(1, 9), st.integers(1, 9))
def test_runs_and_their_parallel_form(groups: list[int], parts: int, others: int) -> None:
    serial = _zero_runs.encode(bytes_of(groups))
    assert serial.tobytes() == to_runs(groups)
    parallel = _zero_runs.encode(bytes_of(groups), parts)
    assert from_runs(parallel.tobytes()) == groups
    assert len(serial) <= len(parallel) <= len(serial) + parts
    for coded in (serial, parallel):
        decoded, used = _zero_runs.decode(coded, len(groups), others)
        assert decoded.tolist() == groups and used == coded.size


@pytest.mark.parametrize(
    "left, right, joined",
    [
        ([5, 121], [121, 6], [5, 243, 6]),
        ([121], [255], [121, 255]),
        ([254], [121], [255]),
        ([248], [248, 1], [255, 1]),
        ([249], [248], [249, 248]),
        ([120], [121], [120, 121]),
        ([242], [243], [242, 243]),
        ([], [121], [121]),
    ],
)
def test_borders_are_joined_where_one_byte_can_stand_for_both(
    left: list[int], right: list[int], joined: list[int]
) -> None:
    assert _zero_runs.join([bytes_of(left), bytes_of(right)]).tolist() == joined


def test_three_parts_can_become_one_byte() -> None:
    assert _zero_runs.join([bytes_of([243]), bytes_of([121]), bytes_of([121])]).tolist() == [245]


@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_any_number_of_parts_decodes_to_the_same(parts: int) -> None:
    x, one = normal(30_001), codecs.get("threelc", accumulate=False)
    several = codecs.get("threelc", accumulate=False, parts=parts)
    for codec, other in ((one, several), (several, one), (several, several)):
        data, _ = codec.encode(x)
        assert np.array_equal(other.decode(data, x.size), one.decode(one.encode(x)[0], x.size))
        assert len(data) <= codec.max_size(x.size)


@pytest.mark.parametrize("parts", [1, 3])
def test_damaged_bytes(parts: int) -> None:
    codec = codecs.get("threelc", parts=parts)
    one = b"\0\0\x80\x3f"
    cases = {
        b"\0\0": "truncated: m, 4 bytes from byte 0 on, 2 left",
        b"\0\0\xc0\x7f" + bytes(2): "corrupted: m = nan is not a magnitude",
        b"\0\0\x80\xbf" + bytes(2): "corrupted: m = -1.0 is not a magnitude",
        one + b"\xf3": "truncated: 1 bytes hold 2 of 3 groups",
        one + b"\xf3\xf3": "corrupted: a run of zeros ends at group 4 of 3",
        one + b"\xf4\x01": "1 bytes too many: 5 expected, got 6",
        one + bytes([1, 121, 121]): "corrupted: digits beyond the 11 of the vector are not 0",
    }
    for data, text in cases.items():
        assert message(codec.decode, data, 11) == text
    plain = codecs.get("threelc", zero_runs=False)
    text = "truncated: 3 groups of 5 values, 3 bytes from byte 4 on, 2 left"
    assert message(plain.decode, one + b"12", 11) == text
    text = "corrupted: byte 243 at group 1 is above 242"
    assert message(plain.decode, one + b"\x01\xf3\x01", 11) == text


@settings(max_examples=300)
@given(st.integers(1, 200), st.integers(1, 3), st.booleans(), st.data())
def test_no_damage_does_more_than_change_values_or_raise(
    n: int, parts: int, zero_runs: bool, data: st.DataObject
) -> None:
    codec = codecs.get("threelc", accumulate=False, parts=parts, zero_runs=zero_runs)
    sent = bytearray(codec.encode(normal(n))[0])
    for _ in range(data.draw(st.integers(1, 4))):
        sent[data.draw(st.integers(0, len(sent) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        y = codec.decode(bytes(sent), n)
    except CodecError:
        return
    assert np.isfinite(y).all() and y.shape == (n,)


@pytest.mark.parametrize(
    "params, text",
    [
        ({"s": 2}, "s must be a number from 1 to below 2, got 2"),
        ({"s": 0.99}, "s must be a number from 1 to below 2, got 0.99"),
        ({"s": "1"}, "s must be a number from 1 to below 2, got '1'"),
        ({"zero_runs": 1}, "zero_runs must be True or False, got 1"),
        ({"accumulate": None}, "accumulate must be True or False, got None"),
        ({"parts": 0}, "parts must be from 1 to 64, got 0"),
    ],
)
def test_wrong_parameters(params: dict[str, Any], text: str) -> None:
    assert message(codecs.get, "threelc", **params) == text
