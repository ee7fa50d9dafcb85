"""BMv2's JSON (p4lang/behavioral-model, docs/JSON_format.md) from the intermediate representation.

`compile_text` makes the file that simple_switch loads or, for a PSA program, psa_switch. `storage`
lays the program's variables out as headers and fields, `expressions` and `actions` translate code,
`control_flow` cuts controls into tables, conditions and actions; `parsers`, `externs`, `sections`,
`v1model` and `psa` do what their names say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from gradplane.switch.backends.bmv2 import psa
from gradplane.switch.backends.bmv2.p4info import p4info_for
from gradplane.switch.backends.bmv2.v1model import to_json
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.source import refuse

__all__ = ["MACROS", "compile_text", "p4info_for", "to_json"]

MACROS = {"__TARGET_BMV2__": "1"}
"""The macro that p4c defines, too, when it compiles for BMv2."""


def compile_text(arch: str, program: ir.Program, digests: Mapping[Type, str]) -> str:
    """Return a program that its architecture has checked as BMv2's JSON: for simple_switch, or, of
    a PSA program, for psa_switch.

    digests: the names in P4Info of digests, by the type of their data. Raises CompileError for what
    BMv2 cannot do, with the place in the source.
    """
    if arch not in ("v1model", "psa"):
        text = f"BMv2's JSON is made of v1model and PSA programs, not of {arch}"
        raise refuse(program.package.span, text)
    found = psa.to_json(program) if arch == "psa" else to_json(program, digests)
    return json.dumps(found, indent=1) + "\n"
