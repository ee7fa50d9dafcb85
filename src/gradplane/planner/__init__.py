"""The planner: choose for each tensor whether, where and how to compress (Espresso, EuroSys 2023).

`plan` makes a plan from three input files (`inputs`). `options` is the tree of what a tensor may
do, `costs` what that takes, `job` both for the tensors of a model. `timeline` says when everything
happens, `compiled` the same quickly, `search` looks for the best strategy. `simple` is the model of
the paper's figures 2 and 9: one link and three options a tensor. This room may import `codecs` and
nothing else of gradplane.
"""
