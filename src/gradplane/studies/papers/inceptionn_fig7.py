"""INCEPTIONN, figure 7: an iteration when workers and aggregator compress in software."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from gradplane import codecs
from gradplane.codecs import Floats
from gradplane.studies import plot
from gradplane.studies.exchange import Setting, exchange, recorded
from gradplane.studies.papers.inceptionn_fig12 import MODELS
from gradplane.studies.study import NOT_IN_OUR_COPY, Study, StudyOutcome

Milliseconds = Annotated[float, Field(ge=0)]
Pair = tuple[Callable[[Floats], Any], Callable[[Any, int], Any]]
"""Functions that encode float32[n], and decode what that returned to n values."""
MODEL_NAMES = ("AlexNet", "HDR")
EXTRA = "pip install 'gradplane[software]'"


def snappy() -> Pair:
    """Return Google's lossless compressor, in PyArrow's build; ImportError where that is not."""
    arrow = import_module("pyarrow")

    def decode(data: bytes, n: int) -> Any:
        return arrow.decompress(data, 4 * n, codec="snappy", asbytes=True)

    return lambda x: arrow.compress(x.tobytes(), codec="snappy", asbytes=True), decode


def sz(bound: int) -> Pair:
    """Return SZ3 under the absolute error bound 2^-bound; ImportError where pysz is not there."""
    package = import_module("pysz")
    config = package.szConfig()
    config.errorBoundMode = package.szErrorBoundMode.ABS
    config.absErrorBound = 2.0**-bound
    return (
        lambda x: package.sz.compress(x, config)[0],
        lambda data, n: package.sz.decompress(data, np.float32, (n,))[0],
    )


def ours(name: str, **parameters: Any) -> Pair:
    """Return one of gradplane's codecs."""
    codec = codecs.get(name, **parameters)
    return lambda x: codec.encode(x)[0], codec.decode


@dataclass(frozen=True)
class Software:
    """A compressor on the processor: float32 bytes over its own, and ns a value of its own time."""

    name: str
    ratio: float
    encode_ns: float
    decode_ns: float


def measured(name: str, pair: Pair, x: Floats, repetitions: int) -> Software:
    """Measure processor time on one core; the quickest of the repetitions counts."""
    encode, decode = pair
    up: list[float] = []
    down: list[float] = []
    for _ in range(repetitions + 1):  # once more, as something is compiled the first time
        start = time.process_time()
        data = encode(x)
        middle = time.process_time()
        decode(data, x.size)
        up.append(middle - start)
        down.append(time.process_time() - middle)
    size = data.nbytes if isinstance(data, np.ndarray) else len(data)
    return Software(name, x.nbytes / size, 1e9 * min(up) / x.size, 1e9 * min(down) / x.size)


class Fig7(Study):
    """Workers encode their gradients at once, the aggregator decodes all, one after another, and
    answers with float32. compute_ms has a time for AlexNet and for the perceptron HDR."""

    name: Literal["inceptionn-fig7"] = "inceptionn-fig7"
    workers: int = Field(default=4, ge=2, le=16)
    values: int = Field(default=648_010, ge=256, le=10**6)
    bound: Literal[6, 8, 10] = 10
    rate: str = "10Gbit"
    compute_ms: tuple[Milliseconds, Milliseconds] = Field(default=(50.0, 1.0), strict=False)
    reduce_ns_per_value: float = Field(default=0.5, ge=0)
    repetitions: int = Field(default=3, ge=1)

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model, without compression and with each compressor."""
        setting = Setting(self.rate, self.bound, self.reduce_ns_per_value, "sim", seed)
        gradient = recorded(self.values, seed)
        found, missing = self._measured(gradient)
        plain = exchange(setting, "WA", self.workers, gradient)
        rows = [
            row
            for model, computing in zip(MODEL_NAMES, self.compute_ms, strict=True)
            for row in self._rows(model, computing, plain.communication, plain.reduce, found)
        ]
        return StudyOutcome(
            title=f"INCEPTIONN, figure 7: software compression, {self.workers} workers",
            head=("model", "compressor", "ratio", "codec, ms", "network", "all", "of none"),
            rows=tuple(_cells(row) for row in rows),
            notes=self._notes(missing),
            values=rows,
            figure=plot.panels(
                {
                    model: {
                        part: [row[part] / _none(rows, model)["all"] for row in rows
                               if row["model"] == model]
                        for part in ("computing", "codec", "network")
                    }
                    for model in MODEL_NAMES
                },
                [str(n) for n in range(1 + len(found))],
                "time of an iteration, none = 1",
            ),
        )  # fmt: skip

    def _measured(self, gradient: Floats) -> tuple[list[Software], list[str]]:
        """Return the compressors that are installed, measured, and the names of the others."""
        makers: dict[str, Callable[[], Pair]] = {
            "Snappy": snappy,
            f"SZ 2^-{self.bound}": lambda: sz(self.bound),
            "16 bits cut": lambda: ours("truncation", drop=16),
            "24 bits cut": lambda: ours("truncation", drop=24),
            "bf16": lambda: ours("bfloat16"),
            f"INCEPTIONN 2^-{self.bound}": lambda: ours("inceptionn", bound=self.bound),
        }
        found, missing = [], []
        for name, maker in makers.items():
            try:
                pair = maker()
            except ImportError:
                missing.append(name)
            else:
                found.append(measured(name, pair, gradient, self.repetitions))
        return found, missing

    def _rows(
        self,
        model: str,
        computing: float,
        communication: float,
        adding: float,
        found: list[Software],
    ) -> list[dict[str, Any]]:
        factor = MODELS[model] / self.values
        rows: list[dict[str, Any]] = []
        for one in (Software("none", 1.0, 0.0, 0.0), *found):
            codec = MODELS[model] * (one.encode_ns + self.workers * one.decode_ns) / 1e6
            network = 1e3 * factor * communication * (1 + 1 / one.ratio) / 2
            added = 1e3 * factor * adding
            rows.append(
                {
                    "model": model,
                    "compressor": one.name,
                    "ratio": one.ratio,
                    "encode_ns": one.encode_ns,
                    "decode_ns": one.decode_ns,
                    "computing": computing + added,
                    "codec": codec,
                    "network": network,
                    "all": computing + added + codec + network,
                    "paper": None,
                }
            )
        return [row | {"of_none": row["all"] / rows[0]["all"]} for row in rows]

    def _notes(self, missing: list[str]) -> tuple[str, ...]:
        absent = f" Not installed: {', '.join(missing)} ({EXTRA})." if missing else ""
        return (
            "The codecs' times are measured as the study runs, in processor time of one core of"
            f" this machine, on {self.values:,} values of recorded gradients. A worker's encoding"
            " and the aggregator's decoding of all workers' gradients come one after another, and"
            " nothing overlaps. WA's exchange without compression is emulated packet by packet;"
            " half of it, the way up, shrinks by the ratio." + absent,
            "The paper says that Snappy, whose ratio is low, and a lossy compressor in software"
            " make trainings longer by a factor, and that truncation, simple as it is, shortens"
            " them only slightly, as packing takes away much of what it saves; its numbers are"
            f" {NOT_IN_OUR_COPY}.",
            "Where they would differ: the processor's speed beside the links' decides, and the"
            " lossy compressor's name is lost, too: SZ3 is a later version of what we believe it"
            " to be.",
        )


def _none(rows: list[dict[str, Any]], model: str) -> dict[str, Any]:
    return next(row for row in rows if row["model"] == model)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    times = (f"{row[part]:,.1f}" for part in ("codec", "network", "all"))
    return (
        *(row["model"], row["compressor"], f"{row['ratio']:.2f}", *times),
        f"{row['of_none']:.0%}",
    )
