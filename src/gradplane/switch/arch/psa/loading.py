"""Loading a PSA program: its preparation for both engines, and the rules that refuse it."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane.switch.arch import portable_rules
from gradplane.switch.arch.load_checks import direct_calls
from gradplane.switch.ir import nodes as ir
from gradplane.switch.source import Diagnostic

PLACES = {
    "ingress.ip": "the ingress parser",
    "ingress.ig": "the ingress control",
    "ingress.id": "the ingress deparser",
    "egress.ep": "the egress parser",
    "egress.eg": "the egress control",
    "egress.ed": "the egress deparser",
}
_DIRECT = {"direct_counter": "psa_direct_counter", "direct_meter": "psa_direct_meter"}


PREPARE = (portable_rules.checksum_states,)


def direct_resources(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse calls of a direct counter or meter outside the actions of its table."""
    return direct_calls(program, _DIRECT)


RULES = (*portable_rules.RULES, direct_resources)
