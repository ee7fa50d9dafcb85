"""Packet tests in the P4 community's STF format, run on the switch of this package.

`run` tests one program, `main` several with a line for each. The modules explain the commands and
where they follow BMv2's own reader of the format: stf_grammar (the lines and match
values), tester (the commands, names, and the packets that must leave).
"""

from gradplane.switch.stf.stf_grammar import StfError
from gradplane.switch.stf.test_case import StfResult, main, run

__all__ = ["StfError", "StfResult", "main", "run"]
