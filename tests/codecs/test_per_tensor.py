"""Vectors of tensors, each with its codec."""

import json

import numpy as np
import pytest

from gradplane import codecs
from gradplane.codecs import CodecError, ErrorFeedback, LocalSteps, PerTensor

X = np.random.default_rng(0).standard_normal((4, 130)).astype(np.float32)
THC, TERN, PLAIN = codecs.get("thc"), codecs.get("terngrad"), codecs.get("float16")
MIXED = PerTensor(((100, THC), (20, TERN), (10, PLAIN)))


def test_each_tensor_is_its_codecs_own() -> None:
    plain = PerTensor(((100, codecs.get("topk")), (30, codecs.get("int8"))))
    data, _ = plain.encode(X[0], state=plain.start(130))
    pieces = [codecs.get("topk").encode(X[0][:100])[0], codecs.get("int8").encode(X[0][100:])[0]]
    assert data == b"".join(len(p).to_bytes(4, "little") + p for p in pieces)
    assert len(data) <= plain.max_size(130)
    expected = [codecs.get("topk").decode(pieces[0], 100), codecs.get("int8").decode(pieces[1], 30)]
    assert np.array_equal(plain.decode(data, 130), np.concatenate(expected))


def test_tensors_have_seeds_of_their_own() -> None:
    twice = PerTensor(((50, TERN), (50, TERN)))
    x = np.tile(X[0][:50], 2)
    y = twice.decode(twice.encode(x, seed=3, state=twice.start(100))[0], 100)
    assert not np.array_equal(y[:50], y[50:])


def test_the_shared_statistic_is_shared_tensor_by_tensor() -> None:
    stats = [MIXED.local(x, MIXED.start(130)) for x in X]
    assert all(stat is not None and stat.size == 2 for stat in stats)
    shared = MIXED.combine([stat for stat in stats if stat is not None])
    data, _ = MIXED.encode(X[0], shared, state=MIXED.start(130))
    first = np.frombuffer(data[4:8], "<f4")[0]
    assert first == max(THC.local(x[:100])[0] for x in X)
    with pytest.raises(CodecError, match="shared statistic must be float32 of shape"):
        MIXED.encode(X[0], shared[:1], state=MIXED.start(130))
    assert PerTensor(((130, PLAIN),)).local(X[0]) is None


def test_states_are_the_tensors_own() -> None:
    fed = MIXED.each(ErrorFeedback)
    state, received = fed.start(130), np.zeros(130)
    for step, x in enumerate(X):
        data, state = fed.encode(x, seed=step, state=state)
        received += fed.decode(data, 130)
    errors = np.concatenate([own.error for own in state])
    np.testing.assert_allclose(received + errors, X.sum(0), atol=1e-5)
    assert np.array_equal(fed.skip(X[0], fed.start(130))[1].error, X[0][100:120])


def test_local_steps_around_it() -> None:
    codec = LocalSteps(PerTensor(((100, PLAIN), (30, codecs.get("float32")))))
    state = codec.start(130)
    first, state = codec.encode(X[0], state=state)
    second, _ = codec.encode(X[1], state=state)
    assert first == b""
    np.testing.assert_allclose(codec.decode(second, 130), X[0] + X[1], atol=4e-3)


def test_its_configuration_is_json() -> None:
    config = json.loads(json.dumps(MIXED.config))
    again = PerTensor(tuple((size, codecs.get(**kind)) for size, kind in config["parts"]))
    assert again == MIXED and MIXED.name == config["name"] == "per_tensor"


def test_what_is_wrong_is_said_by_tensor() -> None:
    data, _ = MIXED.encode(X[0], state=MIXED.start(130))
    cases = [
        (lambda: MIXED.start(131), "the tensors have 130 values, the vector 131"),
        (lambda: MIXED.encode(X[0][:5]), "the tensors have 130 values, the vector 5"),
        (lambda: MIXED.decode(data, 7), "the tensors have 130 values, the vector 7"),
        (lambda: MIXED.decode(data[:2], 130), "truncated: length of tensor 0, 4 bytes"),
        (lambda: MIXED.decode(data[:50], 130), "truncated: bytes of tensor 0, 72 bytes"),
        (lambda: MIXED.decode(data + b"a", 130), "1 bytes too many"),
        (lambda: MIXED.decode(b"\1\0\0\0a" + data[76:], 130), "tensor 0: truncated: statistic"),
        (lambda: PerTensor(((0, PLAIN),)), "a tensor's size must be at least 1, got 0"),
    ]
    for call, text in cases:
        with pytest.raises(CodecError) as caught:
            call()
        assert str(caught.value).startswith(text)
    with pytest.raises(CodecError, match="cannot be summed"):
        _ = MIXED.table
