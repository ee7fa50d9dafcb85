"""Places of keys, overrides, and TOML written back."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradplane._toml_documents import nearest
from gradplane.experiment.document import Document, ExperimentError, dumps, override, read

TEXT = """\
seed = 1
[a]
x = 1            # a comment
"quoted key" = 2
[[job]]
name = "one"
push = { name = "thc", bits = 4 }
[[job]]
name = "two"
[job.deeper]
y = 3
"""


@pytest.fixture
def document(tmp_path: Path) -> Document:
    path = tmp_path / "e.toml"
    path.write_text(TEXT)
    return read(path)


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("seed",), 1),
        (("a",), 2),
        (("a", "x"), 3),
        (("a", "quoted key"), 4),
        (("a", "missing"), 2),
        (("job", 0), 5),
        (("job", 0, "push"), 7),
        (("job", 0, "push", "bits"), 7),
        (("job", 1), 8),
        (("job", 1, "name"), 9),
        (("job",), 5),
    ],
)
def test_place_of_a_key_is_its_line(document: Document, key: Any, line: int) -> None:
    assert document.place(key) == f"{document.name}:{line}"


def test_place_of_what_is_nowhere_is_the_file(document: Document) -> None:
    assert document.place(("other",)) == document.name


def test_place_in_a_table_that_should_be_an_array_is_the_tables_line(document: Document) -> None:
    assert document.place(("a", 0, "x")) == f"{document.name}:2"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("seed=7", {"seed": 7}),
        ("seed = 7", {"seed": 7}),
        ("a.x=1.5", {"a": {"x": 1.5}}),
        ("a.x=[1, 2]", {"a": {"x": [1, 2]}}),
        ("a.x=plain text", {"a": {"x": "plain text"}}),
        ('a.x="3"', {"a": {"x": "3"}}),
        ("new.y=true", {"new": {"y": True}}),
        ("job.name=n", {"job": [{"name": "n"}, {"name": "n"}]}),
        ("job.1.name=n", {"job": [{"name": "one"}, {"name": "n"}]}),
        ("job.0.push.bits=3", {"job": [{"push": {"name": "thc", "bits": 3}}, {}]}),
        ("job=[]", {"job": []}),
    ],
)
def test_override(document: Document, setting: str, expected: dict[str, Any]) -> None:
    override(document, [setting])
    assert _within(document.values, expected)


def _within(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return all(_within(found[key], value) for key, value in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(_within, found, expected))
    return bool(found == expected)


def test_an_override_is_the_place_of_what_it_sets(document: Document) -> None:
    override(document, ["job.1.push.bits=3", "a.x=2"])
    assert document.place(("job", 1, "push", "bits")) == "--set job.1.push.bits=3"
    assert document.place(("job", 1, "push", "name")) == "--set job.1.push.bits=3"
    assert document.place(("job", 1, "name")) == f"{document.name}:9"
    assert document.place(("a", "x")) == "--set a.x=2"
    assert document.place(("a",)) == f"{document.name}:2"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("seed", "--set seed: expected KEY=VALUE, such as job.quorum=3"),
        ("=3", "--set =3: expected KEY=VALUE, such as job.quorum=3"),
        ("job.5.name=3", "--set job.5.name=3: unknown key job.5: known: job.0, job.1"),
        ("seed.x=3", "--set seed.x=3: seed is a value and has no x"),
    ],
)
def test_a_wrong_override_is_refused(document: Document, setting: str, message: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        override(document, [setting])
    assert str(caught.value) == message


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError) as caught:
        read(tmp_path / "none.toml")
    assert str(caught.value) == f"{tmp_path}/none.toml: No such file or directory"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"x = 1\ny = = 2\n", ":2: not valid TOML: Invalid value, column 5"),
        (
            b"[job]\nquorum = 75 %\n",
            ":2: not valid TOML: Expected newline or end of document after a statement, column 13:"
            " write a share: quorum = 0.75",
        ),
        (
            b"rate = 25mbit # of links\n",
            ":1: not valid TOML: Expected newline or end of document after a statement, column 10:"
            ' text is in quotes: rate = "25mbit"',
        ),
        (
            b"kind = star\n",
            ':1: not valid TOML: Invalid value, column 8: text is in quotes: kind = "star"',
        ),
        (b"[job\n", ":1: not valid TOML: Expected ']' at the end of a table declaration, column 5"),
        (b"x = [1,\n", ": not valid TOML: Invalid value (at end of document)"),
        (b" \n", ": the file is empty"),
        (b"x\xff", ": not valid TOML, which is in UTF-8: byte 0xff at 1: invalid start byte"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_line(
    tmp_path: Path, text: bytes, message: str
) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(text)
    with pytest.raises(ExperimentError) as caught:
        read(path)
    assert str(caught.value) == f"{path}{message}"


def test_nearest() -> None:
    assert nearest("qorum", ["quorum", "slots"]) == 'did you mean "quorum"?'
    assert nearest("zzz", ["quorum", "slots"]) == "known: quorum, slots"


_SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
_KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True), _VALUES, max_size=4))
def test_what_is_written_reads_back(values: dict[str, Any]) -> None:
    assert tomllib.loads(dumps(values)) == values


def test_tables_are_written_as_people_write_them() -> None:
    values = {"a": {"x": 1, "none": None}, "seed": 1, "job": [{"p": {"name": "thc"}}, {"q": []}]}
    assert dumps(values) == (
        'seed = 1\n\n[a]\nx = 1\n\n[[job]]\np = { name = "thc" }\n\n[[job]]\nq = []\n'
    )
