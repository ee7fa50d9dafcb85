"""A user's codec whose codes are summed: what it returns is checked wherever it comes in."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gradplane import codecs
from gradplane._plugins import LoadError
from gradplane.cli.app import app
from gradplane.codecs import CodecError
from gradplane.codecs._own_sums import try_sums

SIGNS = """
from dataclasses import dataclass
import numpy as np
from gradplane.codecs import Codec, Partition

@dataclass(frozen=True)
class Signs(Codec):
    block: int = 4
    summable = True
    table = (0, 1)

    def partitions(self, n):
        b = self.block
        return tuple(Partition(i, min(i + b, n), i, min(b, n - i)) for i in range(0, n, b))

    def sum_bits(self, workers):
        return workers.bit_length()

    def _local(self, x, state):
        return np.array([abs(x[p.start : p.stop]).max() for p in self.partitions(x.size)], "f4")

    def _codes(self, x, context):
        return (x >= 0).astype(np.uint8), context.state

    def decode_sum(self, sums, n, count, shared, seed=0):
        scale = np.repeat(shared, self.block)[:n]
        return (scale * (2 * sums.astype(np.int64) - count) / np.maximum(count, 1)).astype("f4")

    def max_size(self, n):
        return 8 * n

    def _encode(self, x, context):
        return context.shared.tobytes() + self._codes(x, context)[0].tobytes(), context.state

    def _decode(self, data, n):
        scale = np.repeat(np.frombuffer(data[:-n], "f4"), self.block)[:n]
        return scale * (2 * np.frombuffer(data[-n:], np.uint8).astype("f4") - 1)
"""

X = np.linspace(-1, 1, 10).astype(np.float32)
PARTITIONS = "Partition(i, min(i + b, n), i, min(b, n - i))"
WRONG = [
    (
        PARTITIONS,
        "Partition(i, min(b, n - i), i, min(b, n - i))",
        "partitions(10)[1] is Partition(start=4, stop=4, lane=4, lanes=4); expected start=4, stop"
        " from 5 to 10, lane=4, lanes from 1 on",
    ),
    (PARTITIONS, "Partition(i, min(i + b - 1, n), i, min(b, n - i))", "expected start=3, stop"),
    (PARTITIONS, "Partition(i, min(i + 2 * b, n), i, min(b, n - i))", "expected start=8, stop"),
    (PARTITIONS, "Partition(i, min(i + b, n), i, min(i + b, n))", "stop from 9 to 10, lane=12"),
    (PARTITIONS, "Partition(i, i + b, i, b)", "partitions(10)[2] is Partition(start=8, stop=12"),
    (PARTITIONS, "Partition(i, min(i + b, n), i, 0)", "lane=0, lanes from 1 on"),
    (PARTITIONS, "(i, min(i + b, n))", "; expected a tuple of Partition"),
    ("range(0, n, b)", "range(0, n + b, b)", "expected none more, as the others have all values"),
    ("range(0, n, b)", "range(0, n - b, b)", "partitions(10) covers 8 of the 10 values"),
    ("b = self.block", "b = -(-n // 3)", "partitions(2) is (Partition(start=0, stop=1,"),
    ("(0, 1)", "(0, 1, 1)", "; expected a tuple of int, strictly increasing"),
    ("(0, 1)", "(1, 2)", "expected a tuple of int, strictly increasing from 0"),
    ("(0, 1)", "[0, 1]", "table returned list [0, 1]"),
    ("workers.bit_length()", "1", "sum_bits(2) returned int 1; expected the bits of 2 * 1, 2"),
    ("(x >= 0)", "(2 + (x >= 0))", "returned the code 2; expected codes below 2, the length of"),
    (", context.state\n\n    def decode", "\n\n    def decode", "expected (codes, state), such"),
    (", context.state\n\n    def decode", ", context\n\n    def decode", "as the new state"),
    ("(x >= 0).astype(np.uint8)", "x >= 0", "_codes returned bool of shape (4,); expected uint8"),
    ("[abs(x[p", "[1.0, *(abs(x[p", "_local of 4 values returned float32 of shape (2,)"),
    ("np.maximum(count, 1)).astype('f4')", "1)", "decode_sum(sums, 4) returned float64"),
    ("np.maximum(count, 1)", "np.nan", "decode_sum(sums, 4): NaN at index 0"),
]  # fmt: skip


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    monkeypatch.chdir(tmp_path)

    def write(old: str = "", new: str = "") -> None:
        text = SIGNS.replace(old, new) if old else SIGNS
        text = (
            text.replace(".partitions(x.size)], ", ".partitions(x.size))], ")
            if "*(" in new
            else text
        )
        (tmp_path / "signs.py").write_text(text)

    return write


def test_a_right_codec_passes(written: Callable[..., None]) -> None:
    written()
    codec = codecs.get("signs.py")
    try_sums(codec, X)
    feedback = codecs.ErrorFeedback(codec)
    codes, _ = feedback.codes(X, state=feedback.start(10))
    assert codes.tolist() == [0] * 5 + [1] * 5
    assert codec.partitions(n=8) == codec.partitions(8) and codec.partitions(0) == ()


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_what_a_summable_codec_returns_is_checked(
    written: Callable[..., None], old: str, new: str, message: str
) -> None:
    written(old.replace("'", '"'), new)
    with pytest.raises((CodecError, LoadError), match=f"^codec signs.py: .*{re.escape(message)}"):
        try_sums(codecs.get("signs.py"), X)


def test_error_feedback_and_the_bench_find_it_too(written: Callable[..., None]) -> None:
    written(", context.state\n\n    def decode", "\n\n    def decode")
    feedback = codecs.ErrorFeedback(codecs.get("signs.py"))
    with pytest.raises(LoadError, match=r"^codec signs.py: _codes returned uint8 of shape \(10,\)"):
        feedback.codes(X, state=feedback.start(10))
    found = CliRunner().invoke(app, ["codecs", "bench", "signs.py", "--values", "100"])
    assert isinstance(found.exception, LoadError) or "_codes returned" in found.output
