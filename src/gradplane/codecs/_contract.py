"""The contract of every codec, as checks that can be run on any: `gradplane codecs check` runs
them on a user's, the tests on all.

A check takes a codec and raises `Broken` with what was found where another thing was expected.
"""

import json
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np

from gradplane.codecs._base import Codec, CodecError, Floats
from gradplane.codecs._feedback import ErrorFeedback

LENGTHS = (0, 1, 2, 3, 63, 64, 65, 1000)
SCALES = (1e-45, 1e-40, 1e-30, 6e4, 1e30)
_MOST_SCRATCH = 4e6  # bytes, to refuse a size that the bytes do not hold


class Broken(Exception):
    """A codec breaks a rule; the message says how."""


def _expect(kept: bool, text: str) -> None:
    if not kept:
        raise Broken(text)


def normal(count: int) -> Floats:
    """Return normal values, always the same."""
    return np.random.default_rng(1).standard_normal(count).astype(np.float32)


def encoded(codec: Codec, x: Floats, seed: int = 0, worker: int = 0) -> bytes:
    """Return the bytes of a vector that is the first one."""
    return codec.encode(x, seed=seed, worker=worker, state=codec.start(x.size))[0]


def sizes(codec: Codec) -> None:
    """Check that n finite float32 come back for n, from no more bytes than max_size says."""
    for n in LENGTHS:
        data = encoded(codec, normal(n))
        y = codec.decode(data, n)
        found = f"{n} values came back as {y.dtype} of shape {y.shape}"
        _expect(y.dtype == np.float32 and y.shape == (n,), found)
        _expect(bool(np.isfinite(y).all()), f"{n} values came back with some that are not finite")
        most = codec.max_size(n)
        _expect(len(data) <= most, f"{n} values took {len(data)} bytes; max_size says {most}")


def zeros(codec: Codec) -> None:
    """Zeros stay zeros."""
    y = codec.decode(encoded(codec, np.zeros(100, np.float32)), 100)
    _expect(not y.any(), f"100 zeros came back with {np.count_nonzero(y)} other values")


def magnitudes(codec: Codec) -> None:
    """Tiny and huge values keep their magnitude, or are refused as beyond what the codec takes."""
    for scale in SCALES:
        try:
            data = encoded(codec, np.float32(scale) * np.sign(normal(64)))
        except CodecError as error:
            _expect("beyond" in str(error), f"values of {scale}: {error}")
            continue
        most = np.abs(codec.decode(data, 64).astype(np.float64)).max()
        _expect(most <= 10 * scale, f"values of {scale} came back as {most}")


def repeats(codec: Codec) -> None:
    """Equal arguments give equal bytes, and the vector is left as it was."""
    x = normal(5000)
    first, second = (encoded(codec, x, seed=5, worker=2) for _ in range(2))
    _expect(first == second, "equal arguments gave other bytes: draw from seed and worker only")
    _expect(np.array_equal(x, normal(5000)), "encode changed the vector that it was given")


def independence(codec: Codec) -> None:
    """The bytes are all that decode needs: no memory of the encoder's."""
    data = encoded(codec, normal(5000), seed=99, worker=7)
    config = {name: value for name, value in codec.config.items() if name != "name"}
    same = np.array_equal(codec.decode(data, 5000), type(codec)(**config).decode(data, 5000))
    _expect(same, "another codec of equal parameters decodes the bytes to other values")


def strides(codec: Codec) -> None:
    """A strided vector is as good as a copy of it."""
    strided = normal(5000)[::7]
    same = encoded(codec, strided) == encoded(codec, strided.copy())
    _expect(same, "a strided vector gave other bytes than its copy")


def not_finite(codec: Codec) -> None:
    """NaN and infinities are refused, with their place."""
    for value, name in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")):
        x = normal(32)
        x[17:] = value
        for call in (codec.encode, codec.local):
            try:
                call(x, state=codec.start(32))
            except CodecError as error:
                _expect(str(error) == f"{name} at index 17", f"{name} at index 17: {error}")
            else:
                raise Broken(f"{name} at index 17 was taken")


def damage(codec: Codec) -> None:
    """Bytes that are cut, too many or random are refused with CodecError, or give finite values."""
    data = encoded(codec, normal(100))
    for wrong in (*(data[:n] for n in (0, 1, 5, len(data) // 2, len(data) - 1)), data + b"abc"):
        taken = _refusal(codec, wrong, 100) is None
        _expect(not taken, f"{len(wrong)} bytes were taken where {len(data)} are right")
    rng = np.random.default_rng(3)
    for size in (codec.max_size(20), 8, 0):
        for _ in range(200):
            _refusal(codec, rng.bytes(size), 20)


def claims(codec: Codec) -> None:
    """A number of values that the bytes do not hold is refused before memory is taken for it."""
    tracemalloc.start()
    try:
        for data in (b"", bytes(64), bytes(range(250)) * 4):
            for n in (2**31, 2**32, 2**40, 2**62):
                said = _refusal(codec, data, n)
                _expect(said is not None, f"{len(data)} bytes were taken for {n} values")
        most = tracemalloc.get_traced_memory()[1]
        _expect(most < _MOST_SCRATCH, f"{most:,} bytes of memory were taken to refuse a size")
    finally:
        tracemalloc.stop()


def configuration(codec: Codec) -> None:
    """The parameters are plain values, of which an equal codec is made."""
    config = json.loads(json.dumps({k: v for k, v in codec.config.items() if k != "name"}))
    again = type(codec)(**config)
    _expect(again == codec and hash(again) == hash(codec), f"{again!r} is not equal to {codec!r}")


def feedback(codec: Codec) -> None:
    """Check that with error feedback all arrives in the end, but for the residual."""
    wrapped, step = ErrorFeedback(codec), 500
    state, received, given = wrapped.start(step), np.zeros(step), np.zeros(step)
    for number, x in enumerate(normal(6 * step).reshape(6, step)):
        given += x
        data, state = wrapped.encode(x, seed=number, state=state)
        received += wrapped.decode(data, step)
    off = np.abs(received + state.error - given)
    _expect(bool((off <= 2e-5 + 1e-7 * np.abs(given)).all()), f"up to {off.max()} was lost")


def _refusal(codec: Codec, data: bytes, n: int) -> str | None:
    """Return why bytes are refused; None if they are taken, for n finite values."""
    try:
        y = codec.decode(data, n)
    except CodecError as error:
        return str(error)
    except Exception as error:
        kind = type(error).__name__
        raise Broken(f"{len(data)} wrong bytes for {n} values: {kind}: {error}") from error
    right = y.shape == (n,) and bool(np.isfinite(y).all())
    _expect(right, f"{len(data)} random bytes gave values that are not {n} finite ones")
    return None


CHECKS: dict[str, Callable[[Codec], None]] = {
    check.__name__.replace("_", " "): check
    for check in (
        sizes, zeros, magnitudes, repeats, independence, strides, not_finite, damage, claims,
        configuration, feedback,
    )
}  # fmt: skip
"""The checks by name; the docstring of each is its rule."""


def check(codec: Codec) -> Iterator[tuple[str, str, str]]:
    """Yield of each check its name, its rule, and what breaks it; empty if nothing does.

    An error that is none of the codec's own, such as an IndexError, breaks the rule, too."""
    for name, rule in CHECKS.items():
        problem = ""
        try:
            rule(codec)
        except Broken as error:
            problem = str(error)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        yield name, (rule.__doc__ or "").strip(), problem
