"""Programs around a few statements and declarations, and the reports on them."""

from pathlib import Path

from gradplane.fit.analysis import FitReport, fit
from gradplane.fit.chip_resources import CHIPS
from gradplane.switch.compiler import compile_program

PROGRAMS = Path(__file__).parent / "programs"
CONTROL = """#define METADATA bit<16> a; bit<16> b; bit<32> s; bit<32> t;
#include "frame.p4"
control Ingress(INGRESS_ARGS) {{
    action set_a(bit<16> v) {{ md.a = v; }}
    action set_b(bit<16> v) {{ md.b = v; }}
    action use_a() {{ hdr.ip.id = md.a; }}
    action write_ports() {{ hdr.ports.src = 7; }}
    {declarations}
    apply {{
        {body}
    }}
}}
#include "frame_end.p4"
"""
TABLE = (
    "table {name} {{ key = {{ {key} : exact; }} actions = {{ {action}; NoAction; }}"
    " const default_action = NoAction(); size = 512; }}"
)


def table(name: str, key: str, action: str) -> str:
    return TABLE.format(name=name, key=key, action=action)


def report(declarations: str, body: str, chip: str = "tofino", before: str = "") -> FitReport:
    text = before + CONTROL.format(declarations=declarations, body=body)
    number = str(list(CHIPS).index(chip) + 1)
    path = PROGRAMS / "generated.p4"
    compiled = compile_program(path, defines={"__TARGET_TOFINO__": number}, text=text)
    return fit(compiled, CHIPS[chip], "generated.p4")
