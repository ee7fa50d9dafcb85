"""core.p4 and v1model.p4: the names, widths and signatures that programs rely on."""

import pytest

from gradplane.switch.syntax import ast, parse_text

STANDARD_METADATA = """
bit<9> ingress_port, bit<9> egress_spec, bit<9> egress_port, bit<32> instance_type,
bit<32> packet_length, bit<32> enq_timestamp, bit<19> enq_qdepth, bit<32> deq_timedelta,
bit<19> deq_qdepth, bit<48> ingress_global_timestamp, bit<48> egress_global_timestamp,
bit<16> mcast_grp, bit<16> egress_rid, bit<1> checksum_error, error parser_error, bit<3> priority
"""


@pytest.fixture
def signature(shown):
    def read(d: ast.FunctionDecl) -> str:
        params = [" ".join(filter(None, [p.direction, shown(p.ref), p.name])) for p in d.params]
        types = f"<{', '.join(d.type_params)}>" if d.type_params else ""
        result = f"{shown(d.result)} " if d.result else ""
        return f"{result}{d.name}{types}({', '.join(params)})"

    return read


def _load(name: str, **options) -> list[ast.Decl]:
    return parse_text(f"#include <{name}>\n", **options)[0].declarations


def _named(declarations: list[ast.Decl], kind: type) -> dict[str, ast.Decl]:
    return {d.name: d for d in declarations if isinstance(d, kind)}


def test_core(signature):
    core = _load("core.p4")
    (errors,) = (d for d in core if isinstance(d, ast.ErrorDecl))
    assert [name for name, _ in errors.members] == [
        "NoError",
        "PacketTooShort",
        "NoMatch",
        "StackOutOfBounds",
        "HeaderTooShort",
        "ParserTimeout",
        "ParserInvalidArgument",
    ]
    (kinds,) = (d for d in core if isinstance(d, ast.MatchKindDecl))
    assert [name for name, _ in kinds.members] == ["exact", "ternary", "lpm"]
    externs = _named(core, ast.ExternDecl)
    assert {n: [signature(m) for m in e.methods] for n, e in externs.items()} == {
        "packet_in": [
            "void extract<T>(out T hdr)",
            "void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits)",
            "T lookahead<T>()",
            "void advance(in bit<32> sizeInBits)",
            "bit<32> length()",
        ],
        "packet_out": ["void emit<T>(in T hdr)"],
    }
    assert [signature(d) for d in core if isinstance(d, ast.FunctionDecl)] == [
        "void verify(in bool check, in error toSignal)",
        "bool static_assert(bool check, string message)",
        "bool static_assert(bool check)",
    ]
    assert [d.name for d in core if isinstance(d, ast.ActionDecl)] == ["NoAction"]


def test_v1model_functions(signature):
    functions = [d for d in _load("v1model.p4") if isinstance(d, ast.FunctionDecl)]
    assert sorted(signature(d) for d in functions[3:]) == [
        "void assert(in bool check)",
        "void assume(in bool check)",
        "void clone(in CloneType type, in bit<32> session)",
        "void clone3<T>(in CloneType type, in bit<32> session, in T data)",
        "void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index)",
        "void digest<T>(in bit<32> receiver, in T data)",
        "void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, "
        "in M max)",
        "void log_msg(string msg)",
        "void log_msg<T>(string msg, in T data)",
        "void mark_to_drop()",
        "void mark_to_drop(inout standard_metadata_t standard_metadata)",
        "void random<T>(out T result, in T lo, in T hi)",
        "void recirculate<T>(in T data)",
        "void recirculate_preserving_field_list(bit<8> index)",
        "void resubmit<T>(in T data)",
        "void resubmit_preserving_field_list(bit<8> index)",
        "void truncate(in bit<32> length)",
        "void update_checksum<T, O>(in bool condition, in T data, inout O checksum, "
        "HashAlgorithm algo)",
        "void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum, "
        "HashAlgorithm algo)",
        "void verify_checksum<T, O>(in bool condition, in T data, in O checksum, "
        "HashAlgorithm algo)",
        "void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum, "
        "HashAlgorithm algo)",
    ]


INDEXED = {
    "counter": ["counter(bit<32> size, CounterType type)", "void count(in bit<32> index)"],
    "meter": [
        "meter(bit<32> size, MeterType type)",
        "void execute_meter<T>(in bit<32> index, out T result)",
    ],
    "register": [
        "register(bit<32> size)",
        "void read(out T result, in bit<32> index)",
        "void write(in bit<32> index, in T value)",
    ],
}


@pytest.mark.parametrize(
    ("version", "index", "parameters"),
    [
        (None, "bit<32>", {"counter": [], "meter": [], "register": ["T"]}),
        (20180101, "bit<32>", {"counter": [], "meter": [], "register": ["T"]}),
        (20200408, "I", {"counter": ["I"], "meter": ["I"], "register": ["T", "I"]}),
    ],
)
def test_v1model_objects(signature, version, index, parameters):
    """From 20200408 on, the index of counters, meters and registers has a type of its own."""
    v1model = _load("v1model.p4", defines={"V1MODEL_VERSION": version} if version else None)
    externs = _named(v1model, ast.ExternDecl)
    expected = {
        "direct_counter": ["direct_counter(CounterType type)", "void count()"],
        "direct_meter": ["direct_meter(MeterType type)", "void read(out T result)"],
        "action_profile": ["action_profile(bit<32> size)"],
        "action_selector": [
            "action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth)"
        ],
        "Checksum16": ["Checksum16()", "bit<16> get<D>(in D data)"],
    }
    for name, methods in INDEXED.items():
        expected[name] = [m.replace("in bit<32> i", f"in {index} i") for m in methods]
    found = {name: [signature(m) for m in e.methods] for name, e in externs.items()}
    assert {name: found[name] for name in expected} == expected
    assert {name: externs[name].type_params for name in parameters} == parameters


def test_v1model_types(shown):
    v1model = _load("v1model.p4")
    (metadata,) = (d for d in v1model if isinstance(d, ast.StructDecl))
    fields = [f"{shown(f.ref)} {f.name}" for f in metadata.fields]
    assert fields == STANDARD_METADATA.replace("\n", " ").strip().split(", ")
    assert [a.name for a in metadata.annotations] == ["metadata", "name"]
    aliases = {f.name: a.body for f in metadata.fields for a in f.annotations}
    assert aliases["mcast_grp"] == '"intrinsic_metadata.mcast_grp"'
    assert aliases["enq_qdepth"] == '"queueing_metadata.enq_qdepth"'
    assert len(aliases) == 9
    enums = _named(v1model, ast.EnumDecl)
    assert {n: [m for m, _, _ in e.members] for n, e in enums.items()} == {
        "CounterType": ["packets", "bytes", "packets_and_bytes"],
        "MeterType": ["packets", "bytes"],
        "HashAlgorithm": [
            "crc32",
            "crc32_custom",
            "crc16",
            "crc16_custom",
            "random",
            "identity",
            "csum16",
            "xor16",
        ],
        "CloneType": ["I2E", "E2E"],
    }
    kinds = [name for d in v1model if isinstance(d, ast.MatchKindDecl) for name, _ in d.members]
    assert kinds == ["exact", "ternary", "lpm", "range", "optional", "selector"]


def test_v1model_ports_from_20200408_on(shown):
    v1model = _load("v1model.p4", defines=["V1MODEL_VERSION=20200408"])
    (metadata,) = (d for d in v1model if isinstance(d, ast.StructDecl))
    assert [shown(f.ref) for f in metadata.fields[:4]] == ["PortId_t"] * 3 + ["bit<32>"]
    assert shown(_named(v1model, ast.TypedefDecl)["PortId_t"].ref) == "bit<9>"


def test_v1model_blocks(shown):
    v1model = _load("v1model.p4")
    blocks = (ast.ParserTypeDecl, ast.ControlTypeDecl, ast.PackageTypeDecl)
    params = {d.name: [shown(p.ref) for p in d.params] for d in v1model if isinstance(d, blocks)}
    assert params == {
        "Parser": ["packet_in", "H", "M", "standard_metadata_t"],
        "VerifyChecksum": ["H", "M"],
        "Ingress": ["H", "M", "standard_metadata_t"],
        "Egress": ["H", "M", "standard_metadata_t"],
        "ComputeChecksum": ["H", "M"],
        "Deparser": ["packet_out", "H"],
        "V1Switch": [
            "Parser<H, M>",
            "VerifyChecksum<H, M>",
            "Ingress<H, M>",
            "Egress<H, M>",
            "ComputeChecksum<H, M>",
            "Deparser<H>",
        ],
    }


def test_both_may_be_included_in_any_order_and_number():
    one = len(_load("v1model.p4"))
    text = "#include <core.p4>\n#include <v1model.p4>\n#include <core.p4>\n#include <v1model.p4>"
    assert len(parse_text(text)[0].declarations) == one


def test_meter_colours_are_macros(declarations):
    text = "#include <v1model.p4>\nconst bit<2> x = V1MODEL_METER_COLOR_RED;"
    assert declarations(text)[-1].value.value == 2
