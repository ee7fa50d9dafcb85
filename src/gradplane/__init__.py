"""gradplane: a network dataplane emulator with a P4 switch, for in-network gradient aggregation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

    from gradplane.experiment.schema import Experiment
    from gradplane.runs.records.summary import Summary
    from gradplane.runs.replayer.replay_run import ReplayResult
    from gradplane.runs.replayer.replay_script import ScriptReplay
    from gradplane.runs.torchrun import Finished

__version__ = "0.1.0"
__all__ = ["__version__", "replay", "resume", "run", "sweep"]


def run(
    experiment: str | Path | Experiment, out: str | Path | None = None, **options: Any
) -> Summary:
    """Run an experiment and return its summary; runner.run_experiment.run has the options."""
    from gradplane.runs import run_experiment

    return run_experiment.run(experiment, out, **options)


def resume(folder: str | Path, **options: Any) -> Summary:
    """Finish a run that was stopped; see gradplane.runs.run_experiment.resume."""
    from gradplane.runs import run_experiment

    return run_experiment.resume(folder, **options)


def replay(
    folder: str | Path, settings: Sequence[str] = (), **options: Any
) -> ReplayResult | Summary | ScriptReplay | Finished:
    """Re-enact a recorded run; see gradplane.runs.replayer.replay_run.replay."""
    from gradplane.runs.replayer import replay_run

    return replay_run.replay(folder, settings, **options)


def sweep(
    experiment: str | Path | Experiment | None = None,
    over: Sequence[str] | Mapping[str, Sequence[Any]] = (),
    out: str | Path | None = None,
    **options: Any,
) -> DataFrame:
    """Run an experiment over a grid and under several seeds; see gradplane.runs.sweeps.sweep.sweep."""
    from gradplane.runs.sweeps import sweep as sweeping

    return sweeping.sweep(experiment, over, out, **options)
