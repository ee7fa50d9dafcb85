"""AdaptiveADT: tensors at the precision of their layers, which the policy raises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane import codecs
from gradplane.codecs.policies.awp import AWP

TENSORS = ((6, 0), (2, -1), (4, 1), (1, -1), (3, 1))
N = 16


def adaptive(**policy: object) -> codecs.AdaptiveADT:
    return codecs.AdaptiveADT(AWP(**policy), TENSORS)


@given(st.integers(1, 32), st.integers(0, 2**32 - 1))
def test_each_tensor_is_what_adt_makes_of_it(bits: int, seed: int) -> None:
    codec = adaptive(initial=bits)
    x = np.random.default_rng(seed).normal(size=N).astype(np.float32)
    data, _ = codec.encode(x, state=codec.start(N))
    keep = -(-bits // 8)
    assert codec.precision(data) == (keep, 4, keep, 4, keep)
    assert len(data) == codec.encoded_size(codec.precision(data)) <= codec.max_size(N)
    decoded = codec.decode(data, N)
    start = 0
    for size, layer in TENSORS:
        piece = x[start : start + size]
        adt = codecs.get("adt", keep=keep if layer >= 0 else 4)
        expected = adt.decode(adt.encode(piece)[0], size)
        assert np.array_equal(decoded[start : start + size], expected)
        start += size


def test_a_layer_gains_precision_when_its_norm_no_longer_grows() -> None:
    codec = adaptive(threshold=0.5, interval=2)
    x, state, kept = np.ones(N, np.float32), codec.start(N), []
    for _ in range(5):
        data, state = codec.encode(x, state=state)
        kept.append(codec.precision(data))
        x[:6] *= 2  # layer 0 doubles each time, layer 1 stays
    assert [keeps[0] for keeps in kept] == [1] * 5
    assert [keeps[2] for keeps in kept] == [keeps[4] for keeps in kept] == [1, 1, 2, 2, 3]


def test_damage_and_misuse_are_named() -> None:
    codec = adaptive()
    data, _ = codec.encode(np.ones(N, np.float32), state=codec.start(N))
    with pytest.raises(codecs.CodecError, match=r"^corrupted: 9 bytes of a value"):
        codec.decode(b"\x09" + data[1:], N)
    with pytest.raises(codecs.CodecError, match=r"^truncated: 3 values"):
        codec.decode(data[:-1], N)
    with pytest.raises(codecs.CodecError, match=r"^1 bytes too many"):
        codec.decode(data + b"\0", N)
    with pytest.raises(codecs.CodecError, match=r"^the tensors have 16 values, the vector 15"):
        codec.start(15)
    with pytest.raises(codecs.CodecError, match=r"^adt with a policy needs the state"):
        codec.encode(np.ones(N, np.float32))
