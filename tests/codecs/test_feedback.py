"""Error feedback: the part that was not sent is sent later, by bytes and by codes."""

import numpy as np
import pytest

from gradplane import codecs
from gradplane.codecs import CodecError, ErrorFeedback

X = np.random.default_rng(0).standard_normal(300).astype(np.float32)


def test_codes_and_bytes_leave_the_same_residual() -> None:
    codec = ErrorFeedback(codecs.get("thc"))
    state = codec.skip(X, codec.start(300))
    shared = 2 * codec.local(X, state)
    codes, by_codes = codec.codes(X, shared, 3, state, worker=2)
    data, by_bytes = codec.encode(X, shared, 3, state, worker=2)
    assert np.array_equal(by_codes.error, by_bytes.error)
    assert np.array_equal(2 * X - codec.decode(data, 300), by_bytes.error)
    assert codes.shape == (512,)


@pytest.mark.parametrize("name", ["thc", "signsgd", "terngrad"])
def test_a_combined_vector_has_the_same_codes_and_leaves_the_same_residual(name: str) -> None:
    codec = ErrorFeedback(codecs.get(name))
    state = codec.skip(X, codec.start(300))
    total, combined = codec.combined(X, state)
    shared = codec.local(X, state)
    assert np.array_equal(codec.local(total, combined), shared)
    codes, left = codec.codes(X, shared, 3, state, worker=2)
    again, same = codec.codes(total, shared, 3, combined, worker=2)
    assert np.array_equal(again, codes) and np.array_equal(same.error, left.error)
    assert np.array_equal(codec.skip(total, combined).error, codec.skip(X, state).error)


def test_the_statistic_is_of_gradient_and_residual() -> None:
    codec = ErrorFeedback(codecs.get("thc"))
    state = codec.skip(X, codec.start(300))
    assert codec.local(X, state) == codecs.get("thc").local(X + X)


def test_clamping_is_made_good_in_later_rounds() -> None:
    codec = ErrorFeedback(codecs.get("thc", p=0.5))
    state, sent = codec.start(300), np.zeros(300)
    for step in range(40):
        data, state = codec.encode(X, seed=step, state=state)
        sent += codec.decode(data, 300)
    assert np.linalg.norm(sent / 40 - X) < 0.1 * np.linalg.norm(X)


def test_it_sums_as_the_codec_inside_does() -> None:
    inner = codecs.get("thc")
    codec = ErrorFeedback(inner)
    assert codec.summable and codec.table == inner.table and codec.name == "thc"
    assert (codec.sum_bits(8), codec.lanes(300), codec.max_size(300)) == (8, 512, 264)
    assert codec.partitions(300) == inner.partitions(300)
    assert codec.config == inner.config | {"error_feedback": True}
    assert codec == ErrorFeedback(codecs.get("thc"))


@pytest.mark.parametrize(
    "state, text",
    [
        (None, "error feedback needs the state of start(n) or of the last call"),
        (ErrorFeedback(codecs.get("thc")).start(4), "the residual has 4 values, the vector 300"),
    ],
)
def test_wrong_state(state: object, text: str) -> None:
    codec = ErrorFeedback(codecs.get("thc"))
    for call in (codec.encode, codec.codes, codec.local, codec.skip):
        with pytest.raises(CodecError) as caught:
            call(X, state=state)
        assert str(caught.value) == text


def test_a_residual_that_overflows_is_refused() -> None:
    codec = ErrorFeedback(codecs.get("float32"))
    x = np.full(3, 3e38, np.float32)
    state = codec.skip(x, codec.start(3))
    with pytest.raises(CodecError) as caught:
        codec.encode(x, state=state)
    assert str(caught.value) == "infinity at index 0"
