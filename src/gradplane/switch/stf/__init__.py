"""Packet tests in the P4 community's STF format, run on the switch of this package.

`run` tests one program, `main` several with a line each. The modules document the commands,
and where they follow BMv2's reader of the format.
"""

from gradplane.switch.stf.stf_grammar import StfError
from gradplane.switch.stf.test_case import StfResult, main, run

__all__ = ["StfError", "StfResult", "main", "run"]
