"""Packet tests in the P4 community's STF format, run on the switch of this package.

`run` tests one program, `main` several with a line each. What the commands mean, and where that
follows BMv2's own reader of the format, is told in the modules: grammar (the lines), values
(match values), expectations (which packets must leave), tester (the commands).
"""

from gradplane.switch.stf.stf_grammar import StfError
from gradplane.switch.stf.test_case import StfResult, main, run

__all__ = ["StfError", "StfResult", "main", "run"]
