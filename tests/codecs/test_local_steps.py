"""Several local steps: the sum is sent in every k-th round, nothing in between."""

import numpy as np
import pytest

from gradplane import codecs
from gradplane.codecs import CodecError, ErrorFeedback, LocalSteps

X = np.random.default_rng(0).standard_normal((12, 300)).astype(np.float32)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_every_kth_round_carries_the_sum(steps: int) -> None:
    codec = LocalSteps(codecs.get("float32"), steps)
    state, total = codec.start(300), np.zeros(300, np.float32)
    for t, x in enumerate(X):
        data, state = codec.encode(x, state=state)
        total += x
        if t % steps == steps - 1:
            assert np.array_equal(codec.decode(data, 300), total)
            total[:] = 0
        else:
            assert data == b"" and not codec.decode(data, 300).any()


def test_it_halves_the_traffic_and_keeps_the_codecs_statistic() -> None:
    inner = codecs.get("thc")
    codec = LocalSteps(inner)
    state = codec.start(300)
    assert codec.local(X[0], state) is None
    first, state = codec.encode(X[0], state=state)
    assert np.array_equal(codec.local(X[1], state), inner.local(X[0] + X[1]))
    second, state = codec.encode(X[1], seed=5, worker=1, state=state)
    assert (first, second) == (b"", inner.encode(X[0] + X[1], seed=5, worker=1)[0])
    assert codec.max_size(300) == len(second) and not codec.summable and codec.name == "thc"
    assert codec.config == inner.config | {"local_steps": 2}


def test_a_skipped_round_keeps_the_beat_and_the_values() -> None:
    codec = LocalSteps(codecs.get("float32"))
    state = codec.start(300)
    for x in X[:2]:
        state = codec.skip(x, state)
    data, state = codec.encode(X[2], state=state)
    assert data == b""
    data, state = codec.encode(X[3], state=state)
    assert np.allclose(codec.decode(data, 300), X[:4].sum(0), atol=1e-6)


def test_error_feedback_inside_keeps_what_was_not_sent() -> None:
    codec = LocalSteps(ErrorFeedback(codecs.get("topk")))
    state, received = codec.start(300), np.zeros(300)
    for x in X:
        data, state = codec.encode(x, state=state)
        received += codec.decode(data, 300)
    np.testing.assert_allclose(received + state.inner.error, X.sum(0), atol=1e-5)


def test_wrong_use() -> None:
    codec = LocalSteps(codecs.get("float32"))
    for state, text in (
        (None, "local steps need the state of start(n) or of the last call"),
        (codec.start(4), "the sum has 4 values, the vector 300"),
    ):
        for call in (codec.encode, codec.local, codec.skip):
            with pytest.raises(CodecError) as caught:
                call(X[0], state=state)
            assert str(caught.value) == text
    with pytest.raises(CodecError) as caught:
        LocalSteps(codec, 0)
    assert str(caught.value) == "steps must be at least 1, got 0"
    with pytest.raises(CodecError) as caught:
        _ = codec.table
    assert str(caught.value) == "the codes of float32 cannot be summed: look at .summable first"
