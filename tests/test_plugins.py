"""Users' objects: named by module or file, loaded, checked at the door, importable elsewhere."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from gradplane import codecs
from gradplane._plugins import LoadError, error_of_own, load, located
from gradplane.aggregations import get as scheme
from gradplane.codecs import CodecError
from gradplane.controller import targets
from gradplane.controller.controller_errors import ControllerError
from gradplane.experiment.loading import ExperimentError, load_deployment
from gradplane.experiment.loading import load as experiment
from gradplane.topologies import TopologyError, build

HALF = """
from dataclasses import dataclass
import numpy as np
from gradplane.codecs import Codec, CodecError

@dataclass(frozen=True)
class Half(Codec):
    wrong: str = ""

    def max_size(self, n):
        return "many" if self.wrong == "most" else 2 * n

    def _encode(self, x, context):
        data = x.astype("<f2").tobytes()
        if self.wrong == "size":
            return data + b"more", None
        if self.wrong == "state":
            return data, context
        return data if self.wrong == "encode" else (data, None)

    def _decode(self, data, n):
        if self.wrong == "damaged":
            raise CodecError("2 bytes too many")
        if self.wrong == "mistake":
            return self.half
        if self.wrong == "finite":
            return np.full(n, np.nan, np.float32)
        found = np.frombuffer(data, "<f2")
        return found if self.wrong == "decode" else found.astype(np.float32)

number = 7
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "half.py").write_text(HALF)
    (tmp_path / "star2.py").write_text("def star2(workers, servers=0): return workers\n")
    (tmp_path / "broken.py").write_text("x = 1\ny = x.z\n")
    (tmp_path / "syntax.py").write_text("def f(:\n")
    (tmp_path / "needs.py").write_text("import no_such_module\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_codec_by_its_file_or_module(folder: Path) -> None:
    import numpy as np

    x = np.arange(5, dtype=np.float32)
    for name in ("half.py", f"{folder}/half.py:Half", "half:Half"):
        codec = codecs.get(name)
        assert codec.config == {"name": name, "wrong": ""}
        assert codec.decode(codec.encode(x)[0], 5).tolist() == x.tolist()
        assert codecs.get(**codec.config) == codec


def test_what_a_codec_returns_is_checked(folder: Path) -> None:
    import numpy as np

    x = np.zeros(3, np.float32)
    wrong = codecs.get("half.py", wrong="decode")
    with pytest.raises(LoadError) as error:
        wrong.decode(wrong.encode(x)[0], 3)
    assert str(error.value) == (
        "codec half.py: _decode(data, 3) returned float16 of shape (3,); expected float32 of shape"
        " (3,)"
    )
    with pytest.raises(LoadError, match=r"codec half.py: _encode returned bytes b'.*'; expected"):
        codecs.get("half.py", wrong="encode").encode(x)
    inside = codecs.ErrorFeedback(codecs.get("half.py", wrong="encode"))
    with pytest.raises(LoadError, match=r"codec half.py: _encode returned bytes b'.*'; expected"):
        inside.encode(x, state=inside.start(3))
    with pytest.raises(LoadError, match=r"_encode, as the new state, returned Context .*; expect"):
        codecs.get("half.py", wrong="state").encode(x)
    most = codecs.get("half.py", wrong="most")
    for codec in (most, codecs.ErrorFeedback(most)):
        with pytest.raises(
            LoadError, match=r"max_size\(3\) returned str 'many'; expected a number"
        ):
            codec.most_bytes(3)
    with pytest.raises(CodecError) as larger:
        codecs.get("half.py", wrong="size").encode(x)
    assert str(larger.value) == (
        "codec half.py: _encode made 10 bytes of 3 values, and max_size(3) is 6"
    )
    with pytest.raises(CodecError, match=r"^codec half.py: _decode\(data, 3\): NaN at index 0"):
        codecs.get("half.py", wrong="finite").decode(bytes(6), 3)
    with pytest.raises(CodecError, match=r'half.py has no parameter "rong", did you mean "wrong"'):
        codecs.get("half.py", rong=1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("frozen=True", "", "expected a frozen dataclass: write @dataclass(frozen=True) before it"),
        ("_decode", "decoded", "Half has no _decode: write def _decode(self, data, n)"),
        ("x, context", "x", "Half._encode(self, x): write def _encode(self, x, context)"),
        (
            'wrong: str = ""',
            "wrong: str",
            "half.py needs wrong: give the parameter, or the field a",
        ),
        (
            'wrong: str = ""',
            "summable = True",
            "Half is summable and has no table: it needs table, sum_bits, partitions, _codes,",
        ),
        (
            'wrong: str = ""',
            "local = None",
            "Half.local is what calls _local, and is not asked everywhere: write def _local(self,",
        ),
    ],
)
def test_a_class_that_is_no_codec(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "half.py").write_text(HALF.replace(old, new))
    with pytest.raises(LoadError) as error:
        codecs.get(f"{folder}/half.py")
    assert message in str(error.value)


def test_errors_of_a_users_code_name_it(folder: Path) -> None:
    damaged, mistake = (codecs.get("half.py", wrong=wrong) for wrong in ("damaged", "mistake"))
    with pytest.raises(CodecError) as error:
        damaged.decode(bytes(6), 3)
    assert str(error.value) == "codec half.py: _decode(data, 3): 2 bytes too many"
    with pytest.raises(AttributeError) as mistaken:
        mistake.decode(bytes(6), 3)
    text = error_of_own(mistaken.value)
    assert text is not None
    first, _, place, code, *_, last = text.splitlines()
    assert first == f"an error in {folder}/half.py"
    assert place.startswith(f'  File "{folder}/half.py", line ') and code.strip() == (
        "return self.half"
    )
    assert last == "AttributeError: 'Half' object has no attribute 'half'"
    with pytest.raises(TypeError) as ours:
        codecs.get("half.py", **{1: 2})  # type: ignore[arg-type]
    assert error_of_own(ours.value) is None


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("none.py", "codec none.py: there is no file none.py"),
        ("halve.py", "codec halve.py: there is no file halve.py; did you mean half.py?"),
        ("none:X", "codec none:X: cannot import none (No module named 'none'); is its folder"),
        ("half:Halb", "codec half:Halb: half has no Halb; did you mean Half?"),
        ("half:number", "codec half:number: found int 7; expected a class derived from"
         " gradplane.codecs.Codec"),
        ("star2.py", "codec star2.py: found none derived from gradplane.codecs.Codec; expected"),
        ("broken.py", "AttributeError: 'int' object has no attribute 'z'"),
        ("broken.py", "/broken.py:2: "),
        ("syntax.py", "codec syntax.py: SyntaxError: invalid syntax (syntax.py, line 1)"),
        ("needs:X", "/needs.py:1: ModuleNotFoundError: No module named 'no_such_module'"),
        (":x", 'codec ":x": write module:object, such as mymodels:Net, or a file'),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_named(folder: Path, reference: str, message: str) -> None:
    with pytest.raises(LoadError) as error:
        codecs.get(reference)
    assert message in str(error.value)


def test_the_other_kinds_are_checked_too(folder: Path) -> None:
    with pytest.raises(LoadError, match=r"topology star2.py: the call with workers returned int 3"):
        build("star2.py", workers=3)
    (folder / "few.py").write_text(
        "from gradplane.topologies import build\ndef few(workers, servers=0): return build('star',"
        " workers=2)\n"
    )
    with pytest.raises(TopologyError) as few:
        build("few.py", workers=2, servers=1)
    assert str(few.value) == "topology few.py has 2 hosts: workers = 2 and servers = 1 need 3"
    with pytest.raises(TopologyError, match=r'topology star2.py has no option "rate"'):
        build("star2.py", workers=3, rate="1Mbit")
    with pytest.raises(LoadError, match=r"aggregation half.py: found none derived from gradplane"):
        scheme("half.py")
    (folder / "target.py").write_text(
        "from gradplane.controller import Target\nclass T(Target):\n    batch = 1\n"
    )
    with pytest.raises(LoadError, match=r"target target.py: T lacks command, pipeline"):
        targets.get("target.py")


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (
            "defaults(self): return {'pulll': 1}",
            'defaults has the key "pulll": did you mean "pull"?',
        ),
        (
            "defaults(self): return ['pull']",
            "defaults returned list ['pull']; expected a table of keys",
        ),
        (
            "aggregators(self, placed): return 's1'",
            "aggregators returned str 's1'; expected a list of names of switches",
        ),
        ("check(self, job): return ()", "check takes (self, job): too many positional arguments"),
        (
            "check(self, placed, others): return None",
            "check returned None; expected pairs of a key",
        ),
        (
            "streams(self, placed, config, values): return [('h1', 5)]",
            "streams returned list [('h1',",
        ),
        (
            "streams(self, placed, config, values): return [('h1', 'h9', 5)]",
            'streams has the host "h9": known: h1, h2, h3',
        ),
    ],
)
def test_what_a_scheme_returns_is_checked(folder: Path, method: str, message: str) -> None:
    (folder / "sum.py").write_text(
        "from gradplane.aggregations import ServerScheme\n"
        f"class Sum(ServerScheme):\n    def {method}\n"
    )
    text = '[topology]\nworkers = 2\n[[job]]\naggregation = "sum.py"\npush = "float32"\n'
    (folder / "x.toml").write_text(text)
    with pytest.raises((LoadError, ExperimentError)) as error:
        load_deployment("x.toml")
    assert f"aggregation {folder / 'sum.py'}: {message}" in str(error.value)


def test_the_receivers_of_marked_transfers_are_hosts(folder: Path) -> None:
    (folder / "sum.py").write_text(
        "from gradplane.aggregations import ServerScheme\n"
        "class Sum(ServerScheme):\n    def marked_receivers(self, placed): return ('h1',)\n"
    )
    with pytest.raises(LoadError, match=r"marked_receivers returned \(str 'h1'\); expected a tup"):
        scheme("sum.py").marked_receivers(None)


def test_what_a_target_returns_is_checked(folder: Path) -> None:
    (folder / "words.py").write_text(
        "from gradplane.controller import Embedded\n"
        "class Words(Embedded):\n"
        "    def command(self, start): return None\n"
        "    def options(self, *given): return '--seed 7'\n"
    )
    made = targets.get("words.py")
    with pytest.raises(LoadError, match=r"target words.py: command returned None; expected a list"):
        made.command(None)
    with pytest.raises(LoadError, match=r"target words.py: options returned str '--seed 7'; expec"):
        made.options("jit", 1, None)
    assert targets.get("words.py").port(3, "h3") == 3


@pytest.mark.parametrize(
    "line, hint",
    [
        ("from . import scales", "is imported by its name alone: import NAME"),
        ("from random import to_codes", "this is Python's random, not {}/random.py: give that"),
        ("import random; random.to_codes", "this is Python's random, not {}/random.py: give that"),
        ("from random import no_such_thing; import helper", None),
    ],
)
def test_imports_that_find_another_module_than_the_one_beside_the_file(
    folder: Path, line: str, hint: str | None
) -> None:
    (folder / "mine.py").write_text(f"{line}\n{HALF}")
    if hint is not None:
        (folder / "random.py").write_text("def to_codes(): pass\n")
    with pytest.raises(LoadError) as error:
        load("codec", f"{folder}/mine.py")
    assert hint.format(folder) in str(error.value) if hint else "; " not in str(error.value)


def test_a_refusal_of_an_unknown_name_says_how_to_add_one(folder: Path) -> None:
    own = r'or your own: "module:object", or "file.py" \(docs/own-parts.md\)'
    with pytest.raises(CodecError, match=own):
        codecs.get("halb")
    with pytest.raises(TopologyError, match=own):
        build("star3", workers=1)
    with pytest.raises(ControllerError, match=own):
        targets.get("tofino9")
    (folder / "x.toml").write_text('[[job]]\naggregation = "sum"\n')
    with pytest.raises(ExperimentError, match=own):
        experiment("x.toml")
    (folder / "x.toml").write_text('[[job]]\naggregation = "half.py"\n')
    with pytest.raises(ExperimentError, match=r"x.toml:2: aggregation .*half.py: found none"):
        experiment("x.toml")


def test_files_beside_the_experiment_are_near_names(folder: Path) -> None:
    with pytest.raises(CodecError, match=r'own-parts.md\); did you mean "half.py"\?$'):
        codecs.get("halb")
    inside = folder / "inside"
    inside.mkdir()
    (inside / "dumbbell.py").touch()
    lines = ["[topology]", 'kind = "dumbell"', "[[job]]", 'aggregation = "halve"']
    (inside / "x.toml").write_text("\n".join(lines))
    with pytest.raises(ExperimentError) as error:
        experiment(inside / "x.toml")
    kind, aggregation = str(error.value).splitlines()
    assert kind.endswith('did you mean "dumbbell.py"?')
    assert aggregation.endswith('did you mean "half.py"?')


def test_the_only_fitting_object_of_a_file_is_meant(folder: Path) -> None:
    text = (
        "from gradplane.topologies import *\nfrom gradplane.topologies import build\n"
        "def other(n): pass\ndef two(workers, servers=0): return build('star', workers=workers)\n"
    )
    (folder / "mine.py").write_text(text)
    assert len(build("mine.py", workers=3).hosts) == 3
    (folder / "both.py").write_text(text + "def three(workers, servers=0): pass\n")
    with pytest.raises(LoadError) as several:
        build("both.py", workers=3)
    assert str(several.value) == (
        "topology both.py: found three, two taking workers, servers; expected both, or one that"
        " takes them, or write both.py:OBJECT"
    )
    base = HALF.replace("class Half(", "class Part(")
    (folder / "parts.py").write_text(f"{base}\nclass Whole(Part):\n    pass\n")
    assert type(codecs.get("parts.py")).__name__ == "Whole"


def test_an_error_in_a_users_topology_has_its_line(folder: Path) -> None:
    (folder / "far.py").write_text(
        "from gradplane.topologies import Link\n"
        "def far(workers, servers=0):\n    return Link('h1', 's1', 0, 600)\n"
    )
    with pytest.raises(TopologyError) as error:
        build("far.py", workers=1)
    assert str(error.value) == (
        f"{folder}/far.py:3: link h1-s1: b_port = 600: expected a whole number from 0 to 510"
    )


def test_the_class_of_a_file_can_be_imported_by_another_process(folder: Path) -> None:
    """A deployment is pickled into the process that is isolated."""
    text = pickle.dumps(codecs.get(f"{folder}/half.py"))
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).wrong == '')"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], input=text, capture_output=True, cwd="/"
    )
    assert done.stdout == b"True\n", done.stderr


def test_where_files_are_looked_for(folder: Path) -> None:
    assert located("half.py", folder) == f"{folder}/half.py"
    assert located("half:Half", folder) == f"{folder}/half.py:Half"
    assert located("half", folder) == "half"
    assert located("other:Half", folder) == "other:Half"
    assert load("thing", f"{folder}/half.py:number") == 7
