"""docs/codecs.md: its blocks run, every codec is in it, and its new codec works as it says."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradplane import codecs
from gradplane.runs.run_experiment import run

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gradplane"
DOC = ROOT / "docs" / "codecs.md"
TEXT = DOC.read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
NEW = PYTHON[-1]
(VECTORS,) = re.findall(r"^```python vectors\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
(VOTES,) = re.findall(r"^```python votes\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
USE = """
import numpy as np
from gradplane import codecs
from gradplane.runs.run_experiment import run

assert "int16" in codecs.names()
c = codecs.get("int16", limit=1000)
assert c.config == {"name": "int16", "limit": 1000}
for n in (0, 1, 1000):
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)
    data, _ = c.encode(x)
    assert len(data) == c.max_size(n)
    error = np.abs(c.decode(data, n) - x)
    assert np.all(error <= np.abs(x).max(initial=0) / 2000 * (1 + 1e-5))
assert not c.decode(c.encode(np.zeros(5, np.float32))[0], 5).any()
fed = codecs.ErrorFeedback(c)
fed.encode(x, state=fed.start(n))

def message(call, *arguments):
    try:
        call(*arguments)
    except codecs.CodecError as error:
        return str(error)

assert message(c.decode, data[:-1], n)
assert message(c.encode, np.full(3, np.nan, np.float32)) == "NaN at index 0"
assert message(c.decode, data[:4] + b"\\xff\\x7f" + data[6:], n) == (
    "corrupted: a code is beyond 1000"
)
assert message(lambda: codecs.get("int16", limit=0)) == "limit must be from 1 to 32767, got 0"
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of gradplane in it, and the document's codec added."""
    folder: Path = tmp_path_factory.mktemp("package")
    copy = folder / "gradplane"
    shutil.copytree(SOURCE, copy)  # with the cached kernels, which take long to compile
    (copy / "codecs" / "int16.py").write_text(NEW)
    return folder


def _python(package: Path, *arguments: str) -> str:
    env = os.environ | {"PYTHONPATH": str(package), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=package, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_new_codec_is_found_and_keeps_its_promises(package: Path) -> None:
    _python(package, "-c", USE)
    assert "int16" not in codecs.names()  # the tree itself is as it was


def test_the_new_codec_trains(package: Path) -> None:
    (package / "mine.toml").write_text("[topology]\nworkers = 2\n[[job]]\nepochs = 1\n")
    settings = ["job.aggregation=ps", 'job.push={name="int16", limit=1000}']
    settings += ["job.batch=150", "output.baseline=false"]
    flags = [word for setting in settings for word in ("--set", setting)]
    output = _python(package, "-m", "gradplane", "run", "mine.toml", "--net", "sim", *flags)
    assert "test accuracy" in output and "report: " in output


def test_the_new_codecs_vectors_are_written(package: Path) -> None:
    (package / "tests" / "codecs" / "vectors").mkdir(parents=True)
    _python(package, "-c", VECTORS)
    written = json.loads((package / "tests" / "codecs" / "vectors" / "int16.json").read_text())
    shipped = json.loads((ROOT / "tests" / "codecs" / "vectors" / "int8.json").read_text())
    assert written.keys() == shipped.keys()
    assert [case.keys() for case in written["cases"]] == 8 * [shipped["cases"][0].keys()]


def test_a_codec_whose_codes_a_switch_adds_trains_and_has_one_meaning(tmp_path: Path) -> None:
    (tmp_path / "votes.py").write_text(VOTES)
    votes = codecs.get(str(tmp_path / "votes.py"))
    vectors = np.random.default_rng(1).normal(size=(3, 100)).astype(np.float32)
    shared = votes.combine([votes.local(x) for x in vectors])
    sums = sum(votes.codes(x, shared)[0] for x in vectors)
    decoded = [votes.decode(votes.encode(x, shared)[0], 100) for x in vectors]
    np.testing.assert_allclose(votes.decode_sum(sums, 100, 3, shared), votes.merge(decoded), 1e-6)
    (tmp_path / "x.toml").write_text('[[job]]\npush = "votes.py"\nepochs = 2\n')
    done = run(tmp_path / "x.toml", tmp_path / "out", net="sim", settings=["topology.workers=2"])
    assert done.test_accuracy > 0.5


def test_the_other_blocks_run() -> None:
    for block in PYTHON[:-1]:
        subprocess.run([sys.executable, "-c", block], cwd=ROOT, check=True)


def test_every_codec_is_explained() -> None:
    assert [name for name in codecs.names() if f"`{name}`" not in TEXT] == []


def test_links_and_figures_exist() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (DOC.parent / target).exists(), target
    for target in re.findall(r"experiments/[\w-]+\.toml", TEXT):
        assert (ROOT / target).exists(), target
