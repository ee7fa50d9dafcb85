"""gradplane: a network dataplane emulator with a P4 switch, for in-network gradient aggregation."""

from __future__ import annotations

import sys

if sys.argv[:1] == ["-m"] and "gradplane" in sys.orig_argv and not sys.flags.safe_path:
    # `python -m gradplane` puts the current folder first, where a file may have the name of a
    # module that we need.
    del sys.path[0]

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradplane._version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

    from gradplane.experiment.schema import Experiment
    from gradplane.runs.records.summary import Summary
    from gradplane.runs.replayer.replay_run import ReplayResult
    from gradplane.runs.replayer.replay_script import ScriptReplay
    from gradplane.runs.torchrun import Finished

__all__ = ["__version__", "replay", "resume", "run", "sweep"]


def run(
    experiment: str | Path | Experiment,
    out: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    seed: int | None = None,
    **options: Any,
) -> Summary:
    """Run an experiment, write its report, and return its summary.

    The options are those of gradplane.runs.run_experiment.run."""
    from gradplane.switch.garbage_pause import collections_paused

    with collections_paused():  # what is loaded is kept
        from gradplane.experiment.loading import load_deployment

        deployment = load_deployment(experiment, settings, seed)  # before what only a run needs
    from gradplane.pages.report import page
    from gradplane.runs import run_experiment

    summary = run_experiment.run_deployed(deployment, out, **options)
    page.write_wanted(summary.folder)
    return summary


def resume(folder: str | Path, **options: Any) -> Summary:
    """Finish a run that was stopped; see gradplane.runs.run_experiment.resume."""
    from gradplane.pages.report import page
    from gradplane.runs import run_experiment

    summary = run_experiment.resume(folder, **options)
    page.write_wanted(summary.folder)
    return summary


def replay(
    folder: str | Path, settings: Sequence[str] = (), **options: Any
) -> ReplayResult | Summary | ScriptReplay | Finished:
    """Re-enact a recorded run; see gradplane.runs.replayer.replay_run.replay."""
    from gradplane.pages.report import page
    from gradplane.runs.replayer import replay_run

    result = replay_run.replay(folder, settings, **options)
    if settings:  # then it is a run of its own
        page.write_wanted(result.folder)
    return result


def sweep(
    experiment: str | Path | Experiment | None = None,
    over: Sequence[str] | Mapping[str, Sequence[Any]] = (),
    out: str | Path | None = None,
    **options: Any,
) -> DataFrame:
    """Run an experiment over a grid and several seeds; see gradplane.runs.sweeps.sweep.sweep."""
    from gradplane.pages.report import sweep_page
    from gradplane.runs.sweeps import sweep as sweeping

    return sweeping.sweep(experiment, over, out, pages=sweep_page.PAGES, **options)
