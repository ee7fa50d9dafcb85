"""codecs.get() and names(): what a user mistypes is answered with what exists."""

import subprocess
import sys

import pytest

from gradplane import codecs
from gradplane._plugins import OWN
from gradplane.codecs import CodecError


def message(name: str, **params: object) -> str:
    with pytest.raises(CodecError) as caught:
        codecs.get(name, **params)
    return str(caught.value)


def test_names_are_the_files() -> None:
    assert codecs.names() == sorted(codecs.names())
    assert {"float16", "float32", "thc", "uniform_thc"} <= set(codecs.names())


def test_unknown_name() -> None:
    listed = ", ".join(codecs.names())
    assert message("thx") == f'no codec "thx", did you mean "thc"? there are {listed}, {OWN}'
    for paper, ours in (("3LC", "threelc"), ("bf16", "bfloat16"), ("int32", "switchml")):
        assert message(paper).startswith(f'no codec "{paper}", did you mean "{ours}"?')
    assert message("_hadamard") == f'no codec "_hadamard"; there are {listed}, {OWN}'


def test_unknown_parameter() -> None:
    assert message("thc", granularty=3) == (
        'thc has no parameter "granularty", did you mean "granularity"? '
        "its parameters: bits, granularity, p, version"
    )
    assert message("float32", bits=3) == 'float32 has no parameter "bits"; it has none'


@pytest.mark.parametrize(
    "params, text",
    [
        ({"bits": 0}, "bits must be from 1 to 8, got 0"),
        ({"bits": "4"}, "bits must be an integer from 1 to 8, got '4'"),
        ({"bits": True}, "bits must be an integer from 1 to 8, got True"),
        ({"granularity": 14}, "granularity must be from 15 to 4095, got 14"),
        ({"granularity": 4096}, "granularity must be from 15 to 4095, got 4096"),
        ({"granularity": 30.0}, "granularity must be an integer from 15 to 4095, got 30.0"),
        ({"p": 0}, "p must be a number above 0 and below 1, got 0"),
        ({"p": 1.0}, "p must be a number above 0 and below 1, got 1.0"),
        ({"p": "1/32"}, "p must be a number above 0 and below 1, got '1/32'"),
        ({"p": float("nan")}, "p must be a number above 0 and below 1, got nan"),
    ],
)
def test_wrong_values_are_refused_at_construction(params: dict[str, object], text: str) -> None:
    assert message("thc", **params) == text


def test_uniform_thc_checks_its_own() -> None:
    assert message("uniform_thc", rotate=1) == "rotate must be True or False, got 1"


def test_import_compiles_and_loads_no_kernel() -> None:
    code = "import sys, gradplane.codecs as c; c.names(); print('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
