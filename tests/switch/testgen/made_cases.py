"""Small programs of which tests are made. A line with `// never` is not reached."""

from __future__ import annotations

from pathlib import Path

from gradplane.switch.compiler import compile_source
from gradplane.switch.testgen.explorer import Limits
from gradplane.switch.testgen.generate import Generated, generate

FORWARD = """
    action to(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
"""


def table(key: str, name: str = "t", rest: str = "default_action = drop();") -> str:
    return f"table {name} {{ key = {{ {key} }} actions = {{ to; drop; }} {rest} }}"


CASES: dict[str, dict[str, str]] = {
    "branches": {
        "ingress": """
            if (h.a.x > 100) {
                if (h.a.x < 50) {
                    s.egress_spec = 7;  // never
                } else {
                    s.egress_spec = 3;
                }
            } else if (h.a.x + h.a.y == 9 && h.a.z[3:0] == 4) {
                s.egress_spec = 4;
            }""",
    },
    "states": {
        "parser": """pkt.extract(h.a); transition select(h.a.kind, h.a.x) {
            (1, _): one;
            (2 .. 5, 0x80 &&& 0xC0): two;
            default: accept;
        }""",
        "states": """
            state one {
                verify(h.a.y != 3, error.NoMatch);
                transition two;
            }
            state two {
                m.unused = 1;
                transition accept;
            }
            state three {
                m.unused = 2;  // never
                transition accept;
            }""",
        "ingress": """
            if (s.parser_error != error.NoError) {
                s.egress_spec = 2;
            } else if (m.unused == 1) {
                s.egress_spec = 3;
            }""",
    },
    "lookups": {
        "ingress_locals": FORWARD
        + table("h.a.kind : exact;")
        + table("h.a.x : lpm; h.a.y : exact;", "l")
        + table("h.a.x : ternary; h.a.z : range; h.a.y : optional;", "w"),
        "ingress": """
            if (t.apply().hit) {
                switch (l.apply().action_run) {
                    to: { h.a.x = 1; }
                    drop: { h.a.x = 2; }
                }
            } else {
                w.apply();
            }""",
    },
    "entries": {
        "ingress_locals": FORWARD
        + table(
            "h.a.x : ternary; h.a.y : lpm;",
            rest="""const default_action = drop(); const entries = {
                (0x10 &&& 0xF0, 0x80 &&& 0xC0): to(2);
                (0x11, _): to(3);
                (_, 7): drop();
            }""",
        ),
        "ingress": "s.egress_spec = 5; t.apply();",
    },
    "defaults": {
        "ingress_locals": FORWARD
        + """
            action mark() { h.a.z = 9; }
            table keyless { actions = { to; drop; } default_action = drop(); }
            table only {
                key = { h.a.x : exact; }
                actions = { to; @defaultonly mark; @defaultonly NoAction; }
                default_action = NoAction();
            }""",
        "ingress": "keyless.apply(); only.apply();",
    },
    "value set": {
        "parser_locals": "value_set<bit<8>>(4) known;",
        "parser": "pkt.extract(h.a); transition select(h.a.kind) { known: one; _: accept; }",
        "states": """
            state one {
                m.unused = 1;
                transition accept;
            }""",
        "ingress": "s.egress_spec = (bit<9>) m.unused + 1;",
    },
    "registers": {
        "ingress_locals": "register<bit<8>>(256) last; bit<8> before;",
        "ingress": """
            last.read(before, (bit<32>) h.a.kind);
            last.write((bit<32>) h.a.kind, h.a.x);
            s.egress_spec = 1;
            if (before != 0 && h.a.x > before) {
                s.egress_spec = 2;
                if (before == 77) {
                    h.a.z = 5;
                }
            }""",
    },
    "contents": {
        "ingress_locals": "register<bit<16>>(4) seen; register<int<8>>(1) low; bit<16> times;"
        " int<8> least;",
        "ingress": """
            s.egress_spec = 1;
            seen.read(times, 2);
            times = times + 1;
            seen.write(2, times);
            if (times == 500) {
                low.read(least, 0);
                if (least == -3 && h.a.x == times[7:0]) {
                    s.egress_spec = 2;
                }
            }""",
    },
    "arrays": {
        "types": "header more_t { bit<8>[4] v; }",
        "headers": "more_t more;",
        "parser": "pkt.extract(h.a); pkt.extract(h.more); transition accept;",
        "ingress_locals": """
            action all(bit<8>[2] some) { h.more.v[0] = some[1]; }
            table t { key = { h.more.v[3] : exact; } actions = { all; NoAction; } }""",
        "ingress": """
            s.egress_spec = 1;
            bit<8>[3] known = {1, 2, h.more.v[1]};
            t.apply();
            if (h.more.v[h.a.kind] == 77) {
                s.egress_spec = 2;
            }
            if (known[h.a.x] == 99) {
                s.egress_spec = 3;
            }""",
    },
    "again": {
        "ingress": """
            s.egress_spec = 1;
            if (s.instance_type == 4) {
                if (h.a.x == 44) {
                    s.egress_spec = 2;
                }
            } else if (h.a.kind == 6) {
                resubmit_preserving_field_list(0);
            }
            if (s.instance_type == 6) {
                h.a.y = 1;
            }""",
        "egress": """
            if (s.instance_type == 0 && h.a.kind == 5) {
                h.a.kind = 0;
                h.a.x = h.a.y ^ 0x5A;
                recirculate_preserving_field_list(0);
            }""",
    },
    "rounds": {
        "ingress": """
            s.egress_spec = 1;
            if (h.a.x == 0 && h.a.y == 3) {
                s.egress_spec = 2;
            }""",
        "egress": """
            if (h.a.x != 0) {
                h.a.x = h.a.x - 1;
                recirculate_preserving_field_list(0);
            }""",
    },
    "copies": {
        "ingress_locals": "action flood(bit<16> group) { s.mcast_grp = group; }\n"
        + "table groups { key = { h.a.x : exact; } actions = { flood; } }",
        "ingress": """
            s.egress_spec = 1;
            if (h.a.kind == 1) {
                clone(CloneType.I2E, 9);
            } else if (h.a.kind == 2) {
                groups.apply();
            }""",
        "egress": """
            if (s.instance_type == 1) {
                h.a.z = 1;
            } else if (s.egress_rid == 2) {
                h.a.z = 2;
            } else if (s.instance_type == 5 && s.egress_port == s.ingress_port) {
                mark_to_drop(s);
            }""",
    },
    "checksum": {
        "types": "header c_t { bit<16> sum; bit<16> data; }",
        "headers": "c_t c;",
        "parser": "pkt.extract(h.a); pkt.extract(h.c); transition accept;",
        "verify": "verify_checksum(h.a.kind == 1, {h.a.x, h.a.y, h.c.data}, h.c.sum,"
        " HashAlgorithm.csum16);",
        "ingress": """
            if (s.parser_error == error.NoError && s.checksum_error == 0 && h.a.kind == 1
                    && h.c.data > 900) {
                s.egress_spec = 2;
            }""",
    },
    "sums": {
        "types": "header c_t { bit<16> sum; bit<24> data; bit<16> other; }",
        "headers": "c_t c;",
        "parser": "pkt.extract(h.a); pkt.extract(h.c); transition accept;",
        "verify": "verify_checksum(true, {h.a.kind, h.a.x}, h.c.other, HashAlgorithm.csum16);",
        "ingress_locals": "bit<16> check = 1; bit<32> at;",
        "ingress": """
            if (h.c.isValid()) {
                hash(check, HashAlgorithm.csum16, 16w0, { h.a, h.c.sum, h.c.data }, 32w65536);
                hash(at, HashAlgorithm.csum16, 32w100, { h.c.data, h.a.z }, 32w50);
                if (check == 0 && s.checksum_error == 0 && h.c.data == 0x123456 && h.a.kind == 7) {
                    s.egress_spec = 2;
                    if (at == 131) {
                        s.egress_spec = 3;
                    }
                }
            }""",
        "compute": "update_checksum(h.a.kind == 7, {h.a.x, h.a.y}, h.c.sum, HashAlgorithm.csum16);",
    },
    "behind the parser": {
        "types": "header b_t { bit<8> size; bit<8> left; }",
        "headers": "b_t b; b_t c;",
        "metadata": "bit<2> which; bit<8> twice;",
        "parser": """pkt.extract(h.a); transition select(s.instance_type, h.a.kind) {
            (4, _): back;
            (_, 3): sized;
            default: accept;
        }""",
        "states": """
            state back {
                m.which = 3;  // never
                transition accept;
            }
            state sized {
                pkt.extract(h.b);
                m.which = 1;
                transition select(h.b.size) {
                    1 .. 9: accept;
                    10: reject;
                    default: other;
                }
            }
            state other {
                verify(false, error.NoMatch);
                transition accept;
            }""",
        "ingress": """
            s.egress_spec = 1;
            if (m.which == 2) {
                s.egress_spec = 2;  // never
            }
            if (h.c.isValid()) {
                s.egress_spec = 3;  // never
            }
            if (s.parser_error != error.NoError) {
                s.egress_spec = 4;
            } else if (m.which == 1 && h.b.size == 11) {
                s.egress_spec = 5;  // never
            } else if (m.which == 1 && h.b.size == 10) {
                s.egress_spec = 6;
            }
            m.twice = m.twice + 1;""",
        "egress": """
            if (m.which == 3 || h.b.isValid() && m.which == 0) {
                recirculate_preserving_field_list(0);  // never
            }
            if (m.twice == 1) {
                h.a.y = 1;
            }""",
    },
    "lengths": {
        "types": "header v_t { varbit<64> rest; } header s_t { bit<8> v; }",
        "headers": "v_t v; s_t[3] s;",
        "parser": """pkt.extract(h.a); transition select(h.a.kind) {
            1: options; 2: stack; 3: jump; default: accept;
        }""",
        "states": """
            state options {
                pkt.extract(h.v, (bit<32>) h.a.x);
                transition accept;
            }
            state stack {
                pkt.extract(h.s.next);
                transition select(h.s.last.v, pkt.lookahead<bit<8>>()) {
                    (0, _): accept;
                    (_, 9): jump;
                    default: stack;
                }
            }
            state jump {
                pkt.advance((bit<32>) h.a.y);
                transition accept;
            }""",
        "ingress": """
            s.egress_spec = 1;
            if (s.parser_error == error.StackOutOfBounds) {
                s.egress_spec = 2;
            } else if (s.parser_error == error.HeaderTooShort) {
                s.egress_spec = 3;
            } else if (s.parser_error == error.PacketTooShort && s.packet_length > 6) {
                s.egress_spec = 4;
            }""",
    },
    "signed": {
        "types": "header n_t { int<8> v; int<16> w; }",
        "headers": "n_t n;",
        "parser": "pkt.extract(h.a); pkt.extract(h.n); transition accept;",
        "ingress_locals": FORWARD + table("h.n.v : range; h.n.w : exact;"),
        "ingress": """
            t.apply();
            if (h.n.v < -100) {
                h.n.w = h.n.w |-| 20000;
                if (h.n.w == -32768) {
                    h.a.z = 1;
                }
            } else if (h.n.v >> 2 == -3) {
                h.a.z = 2;
            }""",
    },
    "random": {
        "ingress_locals": "bit<8> drawn;",
        "ingress": """
            random(drawn, 0, 255);
            h.a.y = drawn;
            s.egress_spec = 1;
            if (h.a.x == 0) {
                s.egress_spec = 2;
            }""",
    },
    "profile": {
        "ingress_locals": FORWARD
        + "action_profile(8) members;"
        + table("h.a.x : exact;", rest="implementation = members;"),
        "ingress": "t.apply();",
    },
}


def made(
    tmp_path: Path, text: str, shown: list[tuple[int, int, float]] | None = None, **limits: int
) -> tuple[Path, Generated]:
    file = tmp_path / "made.p4"
    file.write_text(text)
    program = compile_source(file, (), None).program
    limited = Limits(seconds=600, **{"runs": 1500, **limits})
    progress = None if shown is None else lambda *args: shown.append(args)
    return file, generate(program, limited, progress)
