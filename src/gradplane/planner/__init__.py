"""The planner: choose for each tensor whether, where and how to compress (Espresso, EuroSys 2023).

`plan` makes a plan from three inputs (`planning`, `inputs`). `options` is the tree of what a tensor
may do, `costs` what that takes, `job` both for the tensors of a model. `timeline` says when
everything happens, `compiled` the same quickly, `search` looks for the best strategy. `simple` is
the model of the paper's figures 2 and 9: one link and three options a tensor. This room may import
`codecs` and nothing else of gradplane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane._lazy_names import lazy_names

if TYPE_CHECKING:
    from gradplane.planner.inputs import Compression, Model, PlannerError, System, load
    from gradplane.planner.planning import FP32, Plan, make, plan

__all__ = ["FP32", "Compression", "Model", "Plan", "PlannerError", "System", "load", "make", "plan"]

__getattr__ = lazy_names(
    __name__,
    dict.fromkeys(("Compression", "Model", "PlannerError", "System", "load"), "inputs")
    | dict.fromkeys(("FP32", "Plan", "make", "plan"), "planning"),
)
