"""An estimate of whether a TNA program fits on a Tofino chip, without its compiler.

From the IR: logical tables and their dependencies, a placement in the stages, containers of packet
header vectors, parser states. What the chip has is in `chip_resources.py`.
"""
