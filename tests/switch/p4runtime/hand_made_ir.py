"""A small v1model program, written as IR by hand: tables of every match kind, externs, headers."""

from __future__ import annotations

from itertools import count

from gradplane.switch.arch.v1model import ARCHITECTURE
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Annotation, Bits, Bool, Field, Header, Struct, Type

HEADERS = Struct(
    "headers",
    (
        Field(
            "ipv4",
            Header(
                "ipv4_t",
                (
                    Field("dst", Bits(32)),
                    Field("src", Bits(32)),
                    Field("dport", Bits(16)),
                    Field("kind", Bits(8)),
                    Field("flag", Bits(1)),
                ),
            ),
        ),
    ),
)
_ids = count(1)


def note(name: str, *values: int | str, body: str = "") -> Annotation:
    text = ", ".join(f'"{v}"' if isinstance(v, str) else str(v) for v in values)
    return Annotation(name, values, body=body or text)


def var(name: str, t: Type, *annotations: Annotation, type_name: str = "") -> ir.Var:
    return ir.Var(t, name, next(_ids), annotations, type_name)


def field(hdr: ir.Var, name: str) -> ir.Expr:
    header = HEADERS.fields[0].type
    assert isinstance(header, Header)
    index = header.index(name)
    assert index is not None
    base = ir.FieldOf(header, hdr, 0, "ipv4")
    return ir.FieldOf(header.fields[index].type, base, index, name)


def extern(kind: str, name: str, *args: int | str, of: tuple[Type, ...] = ()) -> ir.ExternInstance:
    roles = ARCHITECTURE.instances[kind].roles
    return ir.ExternInstance(kind, name, list(of), list(args), kind=kind, roles=roles)


def table(name: str, keys: list[ir.Key], actions: list[ir.Action], **more: object) -> ir.Table:
    given: dict[str, object] = {
        "key_setup": [],
        "actions": [ir.TableAction(a) for a in actions],
        "default": ir.ActionCall(len(actions) - 1, []),
        "const_default": False,
        "entries": [],
        "const_entries": False,
        "size": 1024,
    }
    return ir.Table(name=name, keys=keys, **(given | more))  # type: ignore[arg-type]


def program(**more: object) -> ir.Program:
    hdr = var("hdr", HEADERS)
    no_action = ir.Action("NoAction", [], [], (note("noWarn", "unused"),))
    drop = ir.Action("MyIngress.drop", [], [])
    forward = ir.Action(
        "MyIngress.ipv4_forward",
        [var("dstAddr", Bits(48)), var("port", Bits(9), type_name="PortId_t")],
        [],
    )
    mark = ir.Action("MyIngress.mark", [var("value", Bits(12)), var("on", Bool())], [])
    hits = extern("direct_counter", "MyIngress.hits", "packets_and_bytes")
    lpm = table(
        "MyIngress.ipv4_lpm",
        [ir.Key("hdr.ipv4.dst", field(hdr, "dst"), "lpm")],
        [forward, drop, no_action],
        counter=hits,
    )
    acl = table(
        "MyIngress.acl",
        [
            ir.Key("hdr.ipv4.src", field(hdr, "src"), "ternary"),
            ir.Key("hdr.ipv4.dport", field(hdr, "dport"), "range"),
            ir.Key("hdr.ipv4.kind", field(hdr, "kind"), "optional", (note("id", 9),)),
            ir.Key("flag", field(hdr, "flag"), "exact"),
        ],
        [mark, drop, no_action],
        size=4,
        annotations=(note("id", 0x02000077), note("brief", "who may pass")),
    )
    fixed = table(
        "MyEgress.fixed",
        [ir.Key("hdr.ipv4.kind", field(hdr, "kind"), "exact")],
        [mark, no_action],
        const_default=True,
        const_entries=True,
        entries=[
            ir.Entry([ir.MatchValue(ir.Const(Bits(8), 6))], ir.ActionCall(0, [5, True])),
        ],
    )
    control = ir.Control("MyIngress", [ir.Param("hdr", "inout", hdr)], [], [])
    given: dict[str, object] = {
        "package": ir.Package("V1Switch", {"ig": control}, parameters=ARCHITECTURE.parameters),
        "errors": ["NoError"],
        "tables": [lpm, acl, fixed],
        "actions": [drop, forward, mark, no_action],
        "externs": [
            hits,
            extern("counter", "MyIngress.seen", 8, "packets"),
            extern("register", "MyIngress.acc", 16, of=(Bits(32),)),
            extern("meter", "MyIngress.rate", 4, "bytes"),
        ],
        "value_sets": [],
        "types": {"PortId_t": ir.TypeInfo("PortId_t", 9, "p4.org/PortId_t", 32)},
        "controller_headers": [
            Header(
                "packet_in_header_t",
                (Field("ingress_port", Bits(9)), Field("_pad", Bits(7))),
                (note("controller_header", "packet_in"),),
            ),
            Header(
                "packet_out_header_t",
                (Field("egress_port", Bits(9)), Field("_pad", Bits(7))),
                (note("controller_header", "packet_out"),),
            ),
        ],
    }
    made = ir.Program(**(given | more))  # type: ignore[arg-type]
    control.body = [ir.ApplyTable(t) for t in made.tables]
    return made
