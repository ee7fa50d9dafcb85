"""The Tofino Native Architecture, TNA and T2NA: Tofino 1 and Tofino 2.

Names, widths and meanings follow Intel's public "Tofino Native Architecture" document and the
definitions in p4lang/p4c. `chips.py` has what differs between the two chips.
"""

from __future__ import annotations

from gradplane.switch.arch.architecture import Architecture, Implementation
from gradplane.switch.ir.nodes import HIDDEN_REGISTER, LEARN_ACTIONS, REGISTER_ACTION, InstanceKind


def _load() -> Implementation:
    from gradplane.switch.arch.tna.desugaring import REPLACED
    from gradplane.switch.arch.tna.externs import EXTERNS
    from gradplane.switch.arch.tna.loading import PLACES, PREPARE, RULES
    from gradplane.switch.arch.tna.pipe_scopes import combine, device, place
    from gradplane.switch.arch.tna.woven_path import path
    from gradplane.switch.machine.externs.direct_resources import ON_CALL

    return Implementation(
        EXTERNS, ON_CALL, PLACES, path, PREPARE, RULES, replaced=REPLACED, device=device,
        place=place, combine=combine,
    )  # fmt: skip


_COLOURS = {"red": "red", "yellow": "yellow", "green": "green"}
_REGISTER_ACTIONS = tuple(
    f"{name}{count}"
    for name in ("RegisterAction", "DirectRegisterAction", "MinMaxAction", LEARN_ACTIONS)
    for count in ("", 2, 3, 4)
)

ARCHITECTURE = Architecture(
    name="tna",
    package="Switch",
    other_packages=("MultiParserSwitch",),
    instances={
        "Register": InstanceKind("register", ("size", "initial")),
        "DirectRegister": InstanceKind("direct_register", ("initial",)),
        "RegisterParam": InstanceKind("register", ("initial",)),
        **{name: InstanceKind(REGISTER_ACTION) for name in _REGISTER_ACTIONS},
        "SelectorAction": InstanceKind(REGISTER_ACTION),
        HIDDEN_REGISTER: InstanceKind("register"),
        "Counter": InstanceKind("counter", ("size", "unit", "true accounting")),
        "DirectCounter": InstanceKind("direct_counter", ("unit", "true accounting")),
        "Meter": InstanceKind("meter", named={"size": "size", "type": "unit", **_COLOURS}),
        "DirectMeter": InstanceKind("direct_meter", named={"type": "unit", **_COLOURS}),
        "ActionProfile": InstanceKind("action_profile", ("size",)),
        "ActionSelector": InstanceKind(
            "action_selector",
            named={
                "action_profile": "size",
                "size": "size",
                "hash": "algorithm",
                "max_group_size": "most",
                "mode": "mode",
            },
        ),
        "Digest": InstanceKind("digest", ("condition",)),
        "Mirror": InstanceKind("mirror", ("condition",)),
        "Resubmit": InstanceKind("resubmit", ("condition",)),
        "Random": InstanceKind("random"),
        "MathUnit": InstanceKind("math_unit"),
        "Lpf": InstanceKind("lpf", ("size",)),
        "Wred": InstanceKind("wred", ("size", "drop", "keep")),
        "DirectLpf": InstanceKind("direct_lpf"),
        "DirectWred": InstanceKind("direct_wred", ("drop", "keep")),
        "Hash": InstanceKind("hash", ("algorithm", "polynomial")),
        "CRCPolynomial": InstanceKind(
            "crc_polynomial", ("coefficients", "reversed", "msb", "extended", "init", "xor")
        ),
        "Checksum": InstanceKind("checksum"),
        "ParserCounter": InstanceKind("parser_counter"),
        "ParserPriority": InstanceKind("parser_priority"),
        "Alpm": InstanceKind("table_algorithm", ("partitions", "subtrees")),
        "Atcam": InstanceKind("table_algorithm", ("partitions",)),
        "IdleTimeout": InstanceKind("idle_timeout"),
        "Pktgen": InstanceKind("packet_generator"),
    },
    load=_load,
    ports=512,
    sessions=1 << 10,
    table_size=512,
    pkginfo=("TNA", "T2NA"),
)
