"""One row for each of Triton's kernels: what it computes, and the codec's own for comparison.

Tests, `selfcheck`, the check of the machine code and the table in docs/pytorch.md come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from gradplane import codecs
from gradplane.codecs import Codec
from gradplane.codecs._grid import GridCodec
from gradplane.codecs.switchml import SwitchML
from gradplane.torch import kernels, triton_codecs, triton_formats, triton_launch, triton_thc

WORKER = 2
DIVIDE = {"_centre_rows", "_digit_means", "_octets", "_from_octets", "_steps"}
"""The launches that divide: exactly, though machine code makes a division of a reciprocal and fused
corrections."""


@dataclass(frozen=True)
class Case:
    """A vector of a codec, and what the codec makes of it on the CPU.

    count: of workers whose codes are summed; 0: another one for each value."""

    codec: Any
    n: int
    device: torch.device
    count: int = 1

    @cached_property
    def random(self) -> np.random.Generator:
        """The generator of the case."""
        return np.random.default_rng((self.n, self.count))

    @cached_property
    def x(self) -> Any:
        """float32[n] of magnitudes that differ from place to place, some of them 0."""
        stretches = -(-self.n // 40)
        size = 10.0 ** self.random.uniform(-9, 1, stretches)
        size *= self.random.random(stretches) > 0.3
        values: Any = np.repeat(size.astype(np.float32), 40)[: self.n]
        values *= self.random.standard_normal(self.n, np.float32)
        return values

    @cached_property
    def view(self) -> torch.Tensor:
        """x on the device, not aligned."""
        return torch.from_numpy(np.concatenate([self.x[:1], self.x])).to(self.device)[1:]

    @property
    def seed(self) -> int:
        """The seed of the reduce."""
        return self.n + 2**40

    @cached_property
    def shared(self) -> Any:
        """The workers' statistic, or None."""
        return self.codec.local(self.x)

    @cached_property
    def norm(self) -> torch.Tensor:
        """The workers' statistic as a tensor of the CPU's."""
        return torch.from_numpy(self.shared)

    @cached_property
    def codes(self) -> Any:
        """The codec's codes."""
        return self.codec.codes(self.x, self.shared, self.seed, worker=WORKER)[0]

    @cached_property
    def data(self) -> Any:
        """The codec's bytes."""
        return self.encoded[0]

    @cached_property
    def first_state(self) -> Any:
        """The codec's state after x, if it has any."""
        state = self.codec.start(self.n)
        return None if state is None else self._encoded(self.x, state)[1]

    @cached_property
    def encoded(self) -> Any:
        """The codec's bytes and state of x; with a state, of x backwards, after x."""
        backwards = self.first_state is not None
        return self._encoded(self.x[::-1] if backwards else self.x, self.first_state)

    def _encoded(self, x: Any, state: Any) -> Any:
        return self.codec.encode(x, self.shared, self.seed, state, WORKER)

    @cached_property
    def counts(self) -> Any:
        """The workers of a sum, one number or int64[lanes]; the lanes of a value have equally
        many."""
        lanes = self.codec.lanes(self.n)
        if self.count:
            return self.count
        each = lanes // self.n if isinstance(self.codec, SwitchML) else 1
        return np.repeat(self.random.integers(0, 8, lanes // each), each)

    @cached_property
    def sums(self) -> Any:
        """int32[lanes]: possible sums."""
        most = self.codec.granularity * np.asarray(self.counts)
        lanes = self.codec.lanes(self.n)
        return self.random.integers(0, most + 1, lanes, dtype=np.int32)

    def given(self, values: Any) -> Any:
        """Return an array, or bytes, on the device; a number as it is."""
        if isinstance(values, bytes):
            values = np.frombuffer(bytearray(values), np.uint8)
        return values if isinstance(values, int) else torch.from_numpy(values).to(self.device)


class Row(NamedTuple):
    """A kernel, or several in a row that make one result.

    prepare: returns a function of no arguments that runs it, and returns a tensor, or bytes and
    a state. expected: the codec's own result.
    counts: those of the cases."""

    name: str
    codecs: tuple[Any, ...]
    prepare: Callable[[Case], Callable[[], Any]]
    expected: Callable[[Case], Any]
    counts: tuple[int, ...] = (1,)

    def cases(self, sizes: tuple[int, ...], device: torch.device) -> Iterator[Case]:
        """Yield the cases of some sizes."""
        for codec in self.codecs:
            for n in sizes:
                for count in self.counts:
                    yield Case(codec, n, device, count)


def equal(row: Row, case: Case) -> bool:
    """Return whether the kernel's bytes are the codec's: -0 is not 0."""
    made = row.prepare(case)()
    parts = [each for each in (made if isinstance(made, tuple) else (made,)) if each is not None]
    found = b"".join(each.cpu().numpy().tobytes() for each in parts)
    return bool(found == np.asarray(row.expected(case)).tobytes())


def moved(row: Row, case: Case) -> tuple[int, float]:
    """Return the launches of a kernel, and the bytes that they read and write for each value."""
    seen: list[int] = []

    def watch(kernel: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
        tensors = (each for each in arguments if isinstance(each, torch.Tensor))
        seen.append(sum(each.numel() * each.element_size() for each in tensors))
        return True

    run = row.prepare(case)
    with triton_launch.watched(watch):
        run()
    return len(seen), sum(seen) / case.n


def _thc(*widths: int) -> tuple[GridCodec, ...]:
    made = [codecs.get("thc", bits=bits, granularity=2**bits + 14) for bits in widths]
    return tuple(codec for codec in made if isinstance(codec, GridCodec))


def _run_codes(case: Case, packed: bool) -> Callable[[], torch.Tensor]:
    given = case.codec, case.view, case.norm, case.seed, WORKER
    return lambda: triton_thc.codes(*given, packed=packed)


def _packed(case: Case) -> Any:
    return kernels.pack(torch.from_numpy(case.codes), case.codec._field_bits).numpy()


def _run_mean(case: Case) -> Callable[[], torch.Tensor]:
    given = case.codec, case.given(case.sums), case.n, case.given(case.counts), case.norm
    return lambda: triton_thc.mean(*given, case.seed)


def _mean(case: Case) -> Any:
    given = case.sums, case.n, case.counts, case.shared, case.seed
    return case.codec.decode_sum(*given)


def _run_rotated(case: Case) -> Callable[[], torch.Tensor]:
    given = case.view, case.seed
    return lambda: triton_thc.rotated(*given)


def _run_unrotated(case: Case) -> Callable[[], torch.Tensor]:
    given = case.given(codecs.rotated(case.x, case.seed)), case.n, case.seed
    return lambda: triton_thc.unrotated(*given)


def _unrotated(case: Case) -> Any:
    return codecs.unrotated(codecs.rotated(case.x, case.seed), case.n, case.seed)


def _run_digit_means(case: Case) -> Callable[[], torch.Tensor]:
    given = case.codec, case.given(case.sums), case.n, case.given(case.counts), case.norm
    return lambda: triton_formats.switchml_mean(*given)


def _run_digits(case: Case) -> Callable[[], torch.Tensor]:
    case.norm  # noqa: B018 -- is not part of what is timed
    return lambda: triton_formats.switchml_codes(case.codec, case.view, case.norm)


def _run_values(case: Case) -> Callable[[], torch.Tensor]:
    given = case.given(_packed(case)), case.n, case.norm
    return lambda: triton_formats.switchml_values(case.codec, *given)


def _run_encode(case: Case) -> Callable[[], Any]:
    """Encode; with memory, after the codec's first vector the same backwards."""
    shared = None if case.shared is None else case.norm
    view, state = case.view, case.first_state
    if state is not None:
        view, state = view.flip(0), case.given(state.error)

    def run() -> Any:
        made = triton_codecs.encode(case.codec, view, shared, case.seed, state, WORKER)
        assert made is not None, case.codec
        return made

    return run


def _encoded(case: Case) -> Any:
    data, state = case.encoded
    return np.frombuffer(data + (b"" if state is None else state.error.tobytes()), np.uint8)


def _run_decode(case: Case) -> Callable[[], torch.Tensor]:
    data = case.given(case.data)

    def run() -> torch.Tensor:
        found = triton_codecs.decode(case.codec, data, case.n)
        assert found is not None, case.codec
        return found

    return run


def _decoded(case: Case) -> Any:
    return case.codec.decode(case.data, case.n)


def _bytes_of(name: str, *made: Codec) -> tuple[Row, Row]:
    """Return the rows of a codec's encoder and decoder, for several parameters."""
    return (
        Row(f"{name}, encode", made, _run_encode, _encoded),
        Row(f"{name}, decode", made, _run_decode, _decoded),
    )


def _mx(*elements: str) -> tuple[Codec, ...]:
    return tuple(codecs.get("mxfp", element=element) for element in elements)


def _switchml(*workers: int) -> tuple[Codec, ...]:
    return tuple(codecs.get("switchml", workers=number) for number in workers)


def _each(name: str, **values: Any) -> tuple[Codec, ...]:
    """Return a codec with each of some values of one parameter."""
    return tuple(codecs.get(name, **{key: one}) for key, some in values.items() for one in some)


ROWS = (
    Row(
        "THC, norms", _thc(4),
        lambda c: lambda: triton_thc.norms(c.codec, c.view), lambda c: c.shared,
    ),
    Row("THC, codes", _thc(4, 1, 3, 8), lambda c: _run_codes(c, False), lambda c: c.codes),
    Row("THC, packed codes", _thc(4, 1, 3, 8), lambda c: _run_codes(c, True), _packed),
    Row("THC, means", _thc(4, 8), _run_mean, _mean, (3, 1, 2, 5, 6, 7)),
    Row("THC, means, workers missing", _thc(4), _run_mean, _mean, (0,)),
    *_bytes_of(
        "THC", *_thc(4, 3), *_each("thc", version=(1, 2)), codecs.get("uniform_thc", bits=2)
    ),
    Row("rotation", _thc(4), _run_rotated, lambda c: codecs.rotated(c.x, c.seed)),
    Row("rotation, undone", _thc(4), _run_unrotated, _unrotated),
    Row(
        "SwitchML, statistic", _switchml(64),
        lambda c: lambda: triton_formats.switchml_statistic(c.codec, c.view), lambda c: c.shared,
    ),
    Row("SwitchML, packed codes", _switchml(64, 3), _run_digits, _packed),
    Row("SwitchML, means", _switchml(64), _run_digit_means, _mean, (3, 7, 0)),
    Row("SwitchML, values of packed codes", _switchml(64), _run_values, _decoded),
    *_bytes_of("SwitchML", *_switchml(64, 3)),
    *_bytes_of("float16", codecs.get("float16")),
    *_bytes_of("bfloat16", codecs.get("bfloat16")),
    *_bytes_of("int8", codecs.get("int8")),
    *_bytes_of("MXFP8", *_mx("e4m3", "e5m2")),
    *_bytes_of("MXFP6", *_mx("e2m3", "e3m2")),
    *_bytes_of("MXFP4", *_mx("e2m1")),
    *_bytes_of("ZeRO++, 8 bits", *_each("zeropp", bits=(8, 5))),
    *_bytes_of("ZeRO++, 4 bits", *_each("zeropp", block=(256, 1000))),
    *_bytes_of("SDP4Bit, 8 bits", *_each("sdp4bit", bits=(8,))),
    *_bytes_of("SDP4Bit, 4 bits", *_each("sdp4bit", block=(128, 2048))),
    *_bytes_of("INCEPTIONN", *_each("inceptionn", bound=(10, 8, 6))),
    *_bytes_of(
        "3LC", codecs.get("threelc"), codecs.get("threelc", s=1.7, zero_runs=False),
        codecs.get("threelc", parts=3),
    ),
    *_bytes_of("3LC without error feedback", codecs.get("threelc", accumulate=False)),
    *_bytes_of("TopK", *_each("topk", fraction=(0.1, 0.5))),
)  # fmt: skip
"""A row is timed with its first codec and its first number of workers."""
