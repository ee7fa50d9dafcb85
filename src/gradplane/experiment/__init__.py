"""Experiment files: read, checked, and resolved into what a run needs.

`loading` reads the TOML text and `--set`; `schema` has the keys and their defaults; `deploying`
resolves an experiment once into a frozen `Deployment` and refuses what cannot work. May import:
switch, codecs, planner, hosts, controller, topologies, aggregations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane._lazy_names import lazy_names

if TYPE_CHECKING:
    from gradplane.experiment.document import ExperimentError
    from gradplane.experiment.loading import load
    from gradplane.experiment.p4_programs import P4Program, find_program
    from gradplane.experiment.schema import Experiment

__all__ = ["Experiment", "ExperimentError", "P4Program", "find_program", "load"]

__getattr__ = lazy_names(
    __name__,
    {
        "Experiment": "schema",
        "ExperimentError": "document",
        "P4Program": "p4_programs",
        "find_program": "p4_programs",
        "load": "loading",
    },
)
