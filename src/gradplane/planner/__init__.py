"""The planner: choose for each tensor whether, where and how to compress (Espresso, EuroSys 2023).

`simple` is the model of the paper's figures 2 and 9: one link and three options a tensor. This room
may import `codecs` and nothing else of gradplane.
"""
