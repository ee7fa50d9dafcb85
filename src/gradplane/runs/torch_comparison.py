"""One PyTorch script, one network, several ways to reduce: a row of figures each."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gradplane._toml_documents import nearest
from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load_deployment
from gradplane.runs.records import run_folder, script_run
from gradplane.runs.torchrun import Finished, RankError, torchrun

_ABORT = f"signal {int(signal.SIGABRT)}"


@dataclass(frozen=True)
class Way:
    """A way to reduce: settings of the experiment, or a hook of PyTorch's in its place."""

    name: str
    settings: tuple[str, ...] = ()
    hook: str = ""


REFERENCE = "bf16"
"""The way that the others are compared with: what trainings of today send."""


def _ring(name: str, push: str) -> Way:
    """Return the way of a codec in a ring, where each hop decodes, adds and encodes."""
    return Way(
        f"{name}, ring",
        (
            *("job.aggregation=ring", "job.reliability=retransmit", "job.error_feedback=false"),
            *(f"job.push={push}", "job.sum_order=rotated"),
        ),
    )


WAYS = {
    "gloo": Way("gloo, no compression", hook="allreduce"),
    "fp16": Way("fp16_compress_hook", hook="fp16"),
    "bf16": Way("bfloat16", hook="bf16"),
    "powersgd": Way("PowerSGD_hook", hook="powersgd"),
    "thc": Way("THC in the switch", ("job.aggregation=switch", "job.push=thc")),
    "threelc": Way(
        "3LC, parameter server", ("job.aggregation=ps", "job.push=threelc", "job.pull=threelc")
    ),
    "inceptionn": Way(
        "INCEPTIONN, ring",
        (
            *("job.aggregation=ring", "job.push=inceptionn", "job.reliability=retransmit"),
            "job.sum_order=rotated",
        ),
    ),
    "mxfp8": _ring("MXFP8", '{name="mxfp", element="e4m3"}'),
    "mxfp6": _ring("MXFP6", '{name="mxfp", element="e2m3"}'),
    "mxfp4": _ring("MXFP4", '{name="mxfp", element="e2m1"}'),
    "zeropp8": _ring("ZeRO++ int8", '{name="zeropp", bits=8}'),
    "zeropp4": _ring("ZeRO++ int4", '{name="zeropp", bits=4}'),
    "sdp8bit": _ring("SDP4Bit with 8 bits", '{name="sdp4bit", bits=8}'),
    "sdp4bit": _ring("SDP4Bit", '{name="sdp4bit", bits=4}'),
    "dynamiq": _ring("DynamiQ, 5 bits", "dynamiq"),
    "omnireduce": Way(
        "OmniReduce's nonzero blocks, switch",
        (
            *("job.aggregation=switch", "job.push=switchml", "job.error_feedback=false"),
            *("job.nonzero_blocks=true", "job.reliability=retransmit"),
        ),
    ),
    "optireduce": Way(
        "OptiReduce, bfloat16",
        ("job.aggregation=optireduce", "job.push=bfloat16", "job.reliability=lossy"),
    ),
}
"""The ways by their names in `ways` of compare()."""


@dataclass(frozen=True)
class Row:
    """The figures of one way. Accuracies from 0 to 1, of the ranks' mean; None where unknown.

    link_bytes: on the hosts' links, both directions, everything included. iteration, to_target:
    seconds, from the script's first record on, its evaluations included.
    """

    key: str
    name: str
    test_accuracy: float | None
    link_bytes: int
    iteration: float | None
    to_target: float | None


def compare(
    experiment: str | Path,
    script: Path,
    arguments: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    seed: int | None = None,
    target: float = 0.9,
    ways: Sequence[str] = (),
    on_way: Callable[[str], None] = lambda name: None,
    on_end: Callable[[Path], object] = lambda folder: None,
) -> tuple[Path, list[Row]]:
    """Run the script under each of WAYS, or these of them and the reference; return the folder,
    with a run folder each, and the rows. A way of which a rank is aborted, as gloo's threads may do
    to one that ends, is run once more.

    The script records its step and test accuracy (gradplane.torch.record). target: the accuracy
    whose time is measured. `on_way` is called with the name of each way before it starts, `on_end`
    with its run folder. Raises as torchrun does, and ExperimentError for an unknown way. The
    folder's comparison.json has the rows.
    """
    chosen = {key: WAYS[key] for key in _known(ways)}
    for way in chosen.values():  # none fails after others have taken their time
        deployment = load_deployment(experiment, (*settings, *way.settings), seed)
    folder = run_folder.create(out, f"{deployment.experiment.name}-hooks")
    rows = []
    for key, way in chosen.items():
        on_way(way.name)
        run = partial(
            torchrun,
            *(experiment, script, arguments),
            out=folder / key,
            settings=(*settings, *way.settings),
            seed=seed,
            hook=way.hook,
        )
        try:
            done = run()
        except RankError as error:
            if error.how != _ABORT:
                raise
            (folder / key).rename(folder / f"{key}-aborted")
            on_way(f"{way.name}, again, as a rank was aborted")
            done = run()
        on_end(done.folder)
        rows.append(_row(key, done, target))
    values = {"target": target, "rows": [dataclasses.asdict(row) for row in rows]}
    run_folder.write_json(folder / "comparison.json", values)
    return folder, rows


def _known(ways: Sequence[str]) -> list[str]:
    """Return the ways with the reference, in the order of WAYS; all where none is named."""
    for way in ways:
        if way not in WAYS:
            raise ExperimentError(f'no way "{way}": {nearest(way, WAYS)}')
    return [key for key in WAYS if not ways or key in ways or key == REFERENCE]


def _row(key: str, done: Finished, target: float) -> Row:
    accuracy, iteration, reached = figures(script_run.values(done.folder), target)
    size = int(done.values["link_bytes"]["hosts"])
    return Row(key, WAYS[key].name, accuracy, size, iteration, reached)


def figures(
    ranks: Sequence[Sequence[dict[str, Any]]], target: float
) -> tuple[float | None, float | None, float | None]:
    """Return the last accuracy, seconds an iteration, and seconds until the target.

    ranks: the records of each rank, in order; records of equal place belong together.
    """
    accuracy = reached = None
    together = list(zip(*ranks, strict=False))
    if not together:
        return None, None, None
    begin = together[0]
    for records in together:
        found = [record["test_accuracy"] for record in records if "test_accuracy" in record]
        if found:
            accuracy = sum(found) / len(found)
            if reached is None and accuracy >= target:
                reached = _seconds(begin, records)
    steps = together[-1][0].get("step", 0) - begin[0].get("step", 0)
    iteration = _seconds(begin, together[-1]) / steps if steps else None
    return accuracy, iteration, reached


def _seconds(begin: Sequence[dict[str, Any]], end: Sequence[dict[str, Any]]) -> float:
    first, last = (max(record["at"] for record in records) for records in (begin, end))
    return float(last - first) / 1e9
