"""Bitpack and bitunpack on arrays, and AWP, which chooses their precision."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane import codecs
from gradplane.codecs import CodecError
from gradplane.codecs.adt import ADT, bitpack, bitunpack
from gradplane.codecs.policies.awp import AWP, Precision, norm


def message(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(CodecError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("keep", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000, 100_001])
def test_unpacked_weights_have_their_low_bytes_cleared(keep: int, n: int) -> None:
    x, out = weights(n), np.full(n, np.nan, np.float32)
    packed = bitpack(x, keep)
    assert packed.tobytes() == codecs.get("adt", keep=keep).encode(x)[0]
    assert bitunpack(packed, keep, out) is out
    mask = np.uint32(0xFFFFFFFF << 8 * (4 - keep) & 0xFFFFFFFF)
    assert np.array_equal(out.view(np.uint32), x.view(np.uint32) & mask)


def test_the_most_significant_byte_comes_first() -> None:
    packed = bitpack(np.array([0x12345678, 0x9ABCDEF0], np.uint32).view(np.float32), 3)
    assert packed.tobytes().hex() == "1234569abcde"


def test_packing_passes_anything_and_fills_what_it_is_given() -> None:
    x, out = np.array([np.nan, -np.inf], np.float32), np.empty(4, np.uint8)
    assert bitpack(x, 2, out) is out and out.tobytes().hex() == "7fc0ff80"
    assert bitunpack(out, 2).view(np.uint32).tolist() == [0x7FC00000, 0xFF800000]


def test_arrays_that_do_not_fit() -> None:
    x = weights(4)
    wanted = "weights must be contiguous float32[n], got "
    assert message(bitpack, x[::2], 2) == wanted + "strided float32 of shape (2,)"
    assert message(bitpack, x.astype(np.float64), 2) == wanted + "float64 of shape (4,)"
    assert message(bitpack, [1.0], 2) == wanted + "list"
    text = "out must be contiguous uint8[8], got uint8 of shape (7,)"
    assert message(bitpack, x, 2, np.empty(7, np.uint8)) == text
    assert message(bitpack, x, 5) == "keep must be from 1 to 4, got 5"
    assert message(ADT, 0) == "keep must be from 1 to 4, got 0"
    assert message(bitunpack, np.empty(7, np.uint8), 2) == "7 bytes are not a multiple of keep = 2"
    text = "out must be contiguous float32[4], got float32 of shape (3,)"
    assert message(bitunpack, np.empty(8, np.uint8), 2, x[:3]) == text


def test_precision_rises_after_interval_batches_that_shrank() -> None:
    policy = AWP(threshold=-0.1, interval=2, step=8, initial=8)
    state = policy.start(2)
    seen = []
    for shrinking in (1.0, 0.8, 0.7, 0.69, 0.6, 0.5):
        state = policy.observe(state, [shrinking, 1.0])
        seen.append((state.bits[0], state.counts[0]))
    # the first batch and the one from 0.7 to 0.69 do not count; the count is cumulative
    assert seen == [(8, 0), (8, 1), (16, 0), (16, 0), (16, 1), (24, 0)]
    assert (state.bits[1], state.counts[1], state.norms) == (8, 0, (0.5, 1.0))


def test_a_rate_equal_to_the_threshold_does_not_count() -> None:
    policy = AWP(threshold=-0.5, interval=1)
    state = policy.observe(policy.observe(policy.start(1), [2.0]), [1.0])
    assert state.bits == (8,)
    assert policy.observe(state, [0.49]).bits == (16,)


def test_bits_stop_at_32() -> None:
    policy = AWP(interval=1, step=20, initial=8)
    state = policy.start(1)
    for i in range(6):
        state = policy.observe(state, [2.0**-i])
    assert state.bits == (32,)


def test_a_zero_norm_before_does_not_count() -> None:
    policy = AWP(threshold=1.0, interval=1)
    state = policy.observe(policy.observe(policy.start(1), [0.0]), [5.0])
    assert state == Precision((8,), (0,), (5.0,))


@given(st.lists(st.floats(0, 1e30), max_size=40), st.integers(1, 5), st.floats(-1, 1))
def test_it_is_algorithm_1(norms: list[float], interval: int, threshold: float) -> None:
    bits, counter, policy = 8, 0, AWP(threshold, interval, step=4)
    state = policy.start(1)
    for i, now in enumerate(norms):
        state = policy.observe(state, [now])
        if i and norms[i - 1] > 0 and (now - norms[i - 1]) / norms[i - 1] < threshold:
            counter += 1
        if counter == interval:
            bits, counter = min(bits + 4, 32), 0
        assert (state.bits, state.counts) == ((bits,), (counter,))


def test_layers_of_any_shape_and_blocks_of_several() -> None:
    layer, block = np.full((3, 4), 2, np.float32), [np.ones((2, 2), np.float32), np.ones(5)]
    block[1] = block[1].astype(np.float32)
    state = AWP().update(AWP().start(2), [layer, block])
    assert state.norms == pytest.approx((math.sqrt(48), 3.0))
    assert norm([]) == 0.0


@pytest.mark.parametrize("bits, keep", [(1, 1), (8, 1), (9, 2), (14, 2), (24, 3), (25, 4), (32, 4)])
def test_as_many_bytes_as_retain_the_bits(bits: int, keep: int) -> None:
    assert AWP().codec(bits) == ADT(keep=keep)


def test_what_awp_refuses() -> None:
    wrong = {
        "threshold": (math.nan, "threshold must be a number that is finite, got nan"),
        "interval": (0, "interval must be at least 1, got 0"),
        "step": (33, "step must be from 1 to 32, got 33"),
        "initial": (0, "initial must be from 1 to 32, got 0"),
    }
    for name, (value, text) in wrong.items():
        assert message(AWP, **{name: value}) == text
    policy = AWP()
    text = "the state has 2 layers, the model 1"
    assert message(policy.observe, policy.start(2), [1.0]) == text
    text = "the norm of layer 0 must be a number from 0, got nan"
    assert message(policy.observe, policy.start(1), [math.nan]) == text
    bad = np.array([1, np.inf], np.float32)
    assert message(policy.update, policy.start(1), [bad]) == "infinity at index 1"
    assert message(policy.update, policy.start(1), [[3]]) == "expected a float32 array, got int"


def test_training_sends_few_bytes_first_and_more_when_norms_shrink() -> None:
    policy, layer = AWP(threshold=-1e-3, interval=3), weights(100)
    state, sizes = policy.start(1), []
    for _ in range(12):
        data, _ = policy.codec(state.bits[0]).encode(layer)
        sizes.append(len(data))
        layer = layer * np.float32(0.99)
        state = policy.update(state, [layer])
    assert sizes == [100] * 4 + [200] * 3 + [300] * 3 + [400] * 2
