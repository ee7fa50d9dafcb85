"""Tables: each property where it belongs."""

import pytest


@pytest.fixture
def table(declarations, shown):
    def read(properties: str):
        program = f"control C() {{ table t {{ {properties} }} apply {{}} }}"
        return declarations(program)[0].locals[0]

    return read


def test_keys(table, shown):
    read = table('key = { h.a : exact; h.b[3:0] + 1 : lpm @name("k") @x; f(x) : selector; }')
    assert [shown(k) for k in read.key] == [
        "KeyElement(expr=h.a, match_kind=exact)",
        "KeyElement(expr=(h.b[3:0] + 1), match_kind=lpm, annotations="
        "[Annotation(name=name, body=\"k\", exprs=['k']), Annotation(name=x)])",
        "KeyElement(expr=f(x), match_kind=selector)",
    ]
    assert str(read.key[1].span) == "t.p4:1:46"


def test_actions(table, shown):
    read = table("actions = { a; @defaultonly b; c(); d(x, y = 1); .e; }")
    assert [shown(a) for a in read.actions] == [
        "ActionRef(name=a)",
        "ActionRef(name=b, annotations=[Annotation(name=defaultonly)])",
        "ActionRef(name=c)",
        "ActionRef(name=d, args=[x, y = 1])",
        "ActionRef(name=e, dot=True)",
    ]
    assert [a.args for a in read.actions[:3]] == [None, None, []]


@pytest.mark.parametrize("const", [False, True])
def test_default_action(table, shown, const):
    read = table("const " * const + "default_action = a(1);")
    assert shown(read.default_action) == "ActionRef(name=a, args=[1])"
    assert read.const_default is const
    assert read.properties == []


def test_no_default_action(table):
    assert table("actions = { }").default_action is None


@pytest.mark.parametrize("const", [False, True])
def test_entries(table, shown, const):
    read = table(
        "const " * const
        + """entries = {
            1 : a;
            (2, _) : b(3) @name("x");
            const priority = 10 : 4 &&& 5 : c();
            priority = (N + 1) : 6 .. 7 : .d;
            const default : e;
        }"""
    )
    assert read.const_entries is const
    assert [shown(e) for e in read.entries] == [
        "TableEntry(keyset=1, action=ActionRef(name=a))",
        "TableEntry(keyset=tuple(2, default), action=ActionRef(name=b, args=[3]), "
        "annotations=[Annotation(name=name, body=\"x\", exprs=['x'])])",
        "TableEntry(keyset=(4 &&& 5), action=ActionRef(name=c), const=True, priority=10)",
        "TableEntry(keyset=(6 .. 7), action=ActionRef(name=d, dot=True), priority=(N + 1))",
        "TableEntry(keyset=default, action=ActionRef(name=e), const=True)",
    ]


def test_other_properties(table, shown):
    read = table(
        "size = 1024; @x const largest_priority_first = false; "
        "implementation = action_selector(HashAlgorithm.crc16, 32w1024, 32w14); apply = {1};"
    )
    assert [shown(p) for p in read.properties] == [
        "TableProperty(name=size, value=1024)",
        "TableProperty(name=largest_priority_first, value=false, const=True, "
        "annotations=[Annotation(name=x)])",
        "TableProperty(name=implementation, "
        "value=action_selector(HashAlgorithm.crc16, 32w1024, 32w14))",
        "TableProperty(name=apply, value={1})",
    ]


def test_the_name_and_its_annotations(declarations):
    program = "control C() { @hidden\n table acl { actions = { } } apply {} }"
    read = declarations(program)[0].locals[0]
    assert (read.name, [a.name for a in read.annotations]) == ("acl", ["hidden"])
    assert (str(read.span), str(read.name_span)) == ("t.p4:2:2", "t.p4:2:8")
