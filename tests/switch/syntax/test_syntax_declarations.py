"""Declarations of types, externs, functions, parsers, controls and packages."""

import pytest


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("const bit<8> X = 1;", "const bit<8> X = 1"),
        ("typedef bit<8> T;", "TypedefDecl(name=T, ref=bit<8>)"),
        ("typedef tuple<bit<8>, bool> T;", "TypedefDecl(name=T, ref=tuple<bit<8>, bool>)"),
        ("type bit<9> Port;", "TypedefDecl(name=Port, ref=bit<9>, new=True)"),
        (
            '@p4runtime_translation("u", 32) type bit<9> Port;',
            "TypedefDecl(name=Port, annotations=[Annotation(name=p4runtime_translation, "
            "body=\"u\" , 32, exprs=['u', 32])], ref=bit<9>, new=True)",
        ),
        (
            "header h { bit<4> a; @x varbit<320> b; } ",
            "StructDecl(name=h, kind=header, fields=[FieldDecl(name=a, ref=bit<4>), "
            "FieldDecl(name=b, annotations=[Annotation(name=x)], ref=varbit<320>)])",
        ),
        ("header h {}", "StructDecl(name=h, kind=header)"),
        (
            "header_union u { h a; }",
            "StructDecl(name=u, kind=header_union, fields=[FieldDecl(name=a, ref=h)])",
        ),
        (
            "struct s<T, U> { T a; U[3] b; error e; s<T, U> c; }",
            "StructDecl(name=s, kind=struct, type_params=[T, U], fields=[FieldDecl(name=a, ref=T), "
            "FieldDecl(name=b, ref=U[3]), FieldDecl(name=e, ref=error), "
            "FieldDecl(name=c, ref=s<T, U>)])",
        ),
        ("enum E { A, B }", "EnumDecl(name=E, members=[(A, None), (B, None)])"),
        ("enum E { A, B, }", "EnumDecl(name=E, members=[(A, None), (B, None)])"),
        (
            "enum bit<8> E { A = 1, B = A + 1, }",
            "EnumDecl(name=E, underlying=bit<8>, members=[(A, 1), (B, (A + 1))])",
        ),
        (
            "typedef bit<8> T; enum T E { A = 1 }",
            "EnumDecl(name=E, underlying=T, members=[(A, 1)])",
        ),
        ("error { A, B }", "ErrorDecl(name=error, members=[(A), (B)])"),
        ("error { A, B, }", "ErrorDecl(name=error, members=[(A), (B)])"),
        ("match_kind { a, b, }", "MatchKindDecl(name=match_kind, members=[(a), (b)])"),
        (
            "bit<8> f<T>(in T x, out bit<8> y, inout bool z, bit<8> w = 5) { return 1; }",
            "FunctionDecl(name=f, result=bit<8>, type_params=[T], params=["
            "Param(name=x, ref=T, direction=in), Param(name=y, ref=bit<8>, direction=out), "
            "Param(name=z, ref=bool, direction=inout), Param(name=w, ref=bit<8>, default=5)], "
            "body={ return 1; })",
        ),
        ("T f<T>(in T x) { T y = x; }", None),
        ("void f() {}", "FunctionDecl(name=f, result=void, body={ })"),
        ("error f() {}", "FunctionDecl(name=f, result=error, body={ })"),
        ("match_kind f() {}", "FunctionDecl(name=f, result=match_kind, body={ })"),
        ("list<bit<8>> f() {}", "FunctionDecl(name=f, result=list<bit<8>>, body={ })"),
        (
            "action a(in bit<8> x, bit<9> p) { x = p; }",
            "ActionDecl(name=a, params=[Param(name=x, ref=bit<8>, direction=in), "
            "Param(name=p, ref=bit<9>)], body={ x = p; })",
        ),
        (
            "extern void f<T>(@optional in T x);",
            "FunctionDecl(name=f, result=void, type_params=[T], params=[Param(name=x, "
            "annotations=[Annotation(name=optional)], ref=T, direction=in)])",
        ),
        ("extern bool f();", "FunctionDecl(name=f, result=bool)"),
        ("extern T f<T>();", "FunctionDecl(name=f, result=T, type_params=[T])"),
        ("extern G<bit<8>> f();", "FunctionDecl(name=f, result=G<bit<8>>)"),
        ("extern tuple<bool> f();", "FunctionDecl(name=f, result=tuple<bool>)"),
        ("extern e {}", "ExternDecl(name=e)"),
        (
            "extern e<T, I> { e(bit<32> n); @x void m(in I i); T g<U>(out U u); "
            "abstract void n(inout T v); e<T, I> copy(); }",
            "ExternDecl(name=e, type_params=[T, I], methods=["
            "FunctionDecl(name=e, params=[Param(name=n, ref=bit<32>)]), "
            "FunctionDecl(name=m, annotations=[Annotation(name=x)], result=void, "
            "params=[Param(name=i, ref=I, direction=in)]), "
            "FunctionDecl(name=g, result=T, type_params=[U], "
            "params=[Param(name=u, ref=U, direction=out)]), "
            "FunctionDecl(name=n, result=void, "
            "params=[Param(name=v, ref=T, direction=inout)], abstract=True), "
            "FunctionDecl(name=copy, result=e<T, I>)])",
        ),
        (
            "package P<H, M>(Q<H> a, R<_, M> b = d());",
            "PackageTypeDecl(name=P, type_params=[H, M], params=[Param(name=a, ref=Q<H>), "
            "Param(name=b, ref=R<_, M>, default=d())])",
        ),
        (
            "parser P<H>(packet_in b, out H h);",
            "ParserTypeDecl(name=P, type_params=[H], params=[Param(name=b, ref=packet_in), "
            "Param(name=h, ref=H, direction=out)])",
        ),
        (
            "@pipeline control C<H>(inout H h);",
            "ControlTypeDecl(name=C, annotations=[Annotation(name=pipeline)], type_params=[H], "
            "params=[Param(name=h, ref=H, direction=inout)])",
        ),
        ("P(a(), b()) main;", "P(a(), b()) main"),
        ("P<bit<8>>(a<bit<8>>(1)) main;", "P<bit<8>>(a<bit<8>>(1)) main"),
        (
            "extern E { E(); abstract void f(in bit<8> x); } "
            "@n E() e = { void f(in bit<8> x) { y = x; } C(1) c; };",
            "@n E() e = [FunctionDecl(name=f, result=void, "
            "params=[Param(name=x, ref=bit<8>, direction=in)], body={ y = x; }), C(1) c]",
        ),
        (";;const int x = 1;;", "const int x = 1"),
    ],
)
def test_a_declaration(tree, text, read):
    expected = read or (
        "FunctionDecl(name=f, result=T, type_params=[T], "
        "params=[Param(name=x, ref=T, direction=in)], body={ T y = x; })"
    )
    assert tree(text) == expected


def test_a_typedef_may_declare_its_struct(declarations, shown):
    assert [shown(d) for d in declarations("typedef struct S { bool a; } T;")] == [
        "StructDecl(name=S, kind=struct, fields=[FieldDecl(name=a, ref=bool)])",
        "TypedefDecl(name=T, ref=S)",
    ]


def test_a_parser(tree):
    text = """
    parser P<H>(packet_in b, out H h)(bit<8> n) {
        const bit<8> c = 1;
        bit<8> v = c;
        Sub(n) sub;
        @size(4) value_set<bit<16>>(4) ports;
        value_set<tuple<bit<8>, H>>(c) pairs;
        state start {
            b.extract(h);
            bit<8> x = 1;
            if (x == v) { sub.apply(b); }
            transition select(x, h.a) {
                (1, 2 &&& 3) : next;
                (_, 4 .. 5) : accept;
                ports : next;
                default : reject;
            }
        }
        @y state next { transition accept; }
        state state { @z { } }
    }
    """
    assert tree(text) == (
        "ParserDecl(name=P, type_params=[H], params=[Param(name=b, ref=packet_in), "
        "Param(name=h, ref=H, direction=out)], ctor_params=[Param(name=n, ref=bit<8>)], "
        "locals=[const bit<8> c = 1, bit<8> v = c, Sub(n) sub, "
        "ValueSetDecl(name=ports, annotations=[Annotation(name=size, body=4, exprs=[4])], "
        "ref=bit<16>, size=4), ValueSetDecl(name=pairs, ref=tuple<bit<8>, H>, size=c)], "
        "states=[ParserState(name=start, body=[b.extract(h);, bit<8> x = 1;, "
        "if ((x == v)) { sub.apply(b); }], transition=Select(exprs=[x, h.a], "
        "cases=[SelectCase(keyset=tuple(1, (2 &&& 3)), state=next), "
        "SelectCase(keyset=tuple(default, (4 .. 5)), state=accept), "
        "SelectCase(keyset=ports, state=next), SelectCase(keyset=default, state=reject)])), "
        "ParserState(name=next, annotations=[Annotation(name=y)], transition=accept), "
        "ParserState(name=state, body=[@z { }])])"
    )


def test_a_control(tree):
    text = """
    control C<H>(inout H h)(bit<8> n) {
        const bit<8> c = 1;
        bit<8> v;
        @name("r") Reg<bit<8>>(n) r;
        action a() { v = c; }
        @hidden table t { actions = { a; } }
        bit<8> apply;
        @w apply { t.apply(); }
    }
    """
    assert tree(text) == (
        "ControlDecl(name=C, type_params=[H], params=[Param(name=h, ref=H, direction=inout)], "
        "ctor_params=[Param(name=n, ref=bit<8>)], locals=[const bit<8> c = 1, bit<8> v, "
        '@name("r") Reg<bit<8>>(n) r, ActionDecl(name=a, body={ v = c; }), '
        "TableDecl(name=t, annotations=[Annotation(name=hidden)], "
        "actions=[ActionRef(name=a)], lists_actions=True), bit<8> apply], body=@w { t.apply(); })"
    )


def test_names_of_types_are_scoped(statements, declarations):
    """A type parameter is a type in its declaration only."""
    generic = declarations("void f<T>(in T x) { y = (T) - x; } void g() { y = (T) - x; }")
    assert [d.body.body[0].value.__class__.__name__ for d in generic] == ["Cast", "Binary"]


def test_declarations_know_their_place(declarations):
    text = "@a\nheader\n  h { bit<8> f; }\nstruct s { h\n x; }\nenum bit<8> E { A = 1,\n B = 2 }"
    header, struct, enum = declarations(text)
    places = [header.span, header.name_span, struct.span, struct.fields[0].span, enum.span]
    assert [(str(p), p.end) for p in places] == [
        ("t.p4:3:3", 4),
        ("t.p4:3:3", 4),
        ("t.p4:4:1", 9),
        ("t.p4:5:2", 3),
        ("t.p4:6:1", 14),
    ]
    assert [str(span) for _, _, span in enum.members] == ["t.p4:6:17", "t.p4:7:2"]
