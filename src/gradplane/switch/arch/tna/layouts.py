"""The pipelines of a program, and the destinations that it gives the traffic manager."""

from __future__ import annotations

from gradplane.switch.ir import nodes as ir

PORT, GROUPS = "ucast_egress_port", ("mcast_grp_a", "mcast_grp_b")
"""The destinations that a program gives the traffic manager. 0 is one, so each has a flag."""


def is_set(destination: str) -> str:
    """Return the name of the flag that says that the program has set a destination."""
    return f"{destination}_is_set"


def pipelines(program: ir.Program) -> list[ir.Package]:
    """Return the different pipelines of a program, in order; a single one is for all pipes."""
    found = [program.package.args.get(f"pipe{i}") for i in range(4)]
    return list(dict.fromkeys(p for p in found if isinstance(p, ir.Package)))
