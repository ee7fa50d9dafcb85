"""gradplane: a network dataplane emulator with a P4 switch, for in-network gradient aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradplane.replayer import ReplayResult
    from gradplane.schema import Experiment
    from gradplane.summary import Summary

__version__ = "0.1.0"
__all__ = ["__version__", "replay", "run"]


def run(
    experiment: str | Path | Experiment, out: str | Path | None = None, **options: Any
) -> Summary:
    """Run an experiment and return its summary; see gradplane.runner.run for the options."""
    from gradplane import runner

    return runner.run(experiment, out, **options)


def replay(
    folder: str | Path, settings: Sequence[str] = (), **options: Any
) -> ReplayResult | Summary:
    """Re-enact a recorded run; see gradplane.replayer.replay."""
    from gradplane import replayer

    return replayer.replay(folder, settings, **options)
