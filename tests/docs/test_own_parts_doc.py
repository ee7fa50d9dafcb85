"""docs/own-parts.md: its files work as they stand, beside an experiment, from another folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradplane.runs.run_experiment import mininet_possible

TEXT = (Path(__file__).parents[2] / "docs" / "own-parts.md").read_text()
FILES = dict(re.findall(r"^```\w+ (\w+\.\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
(USE,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True
    )


MININET, WHY_NOT = mininet_possible()


@pytest.mark.parametrize(
    "net", ["sim", pytest.param("mininet", marks=pytest.mark.skipif(not MININET, reason=WHY_NOT))]
)
def test_the_files_run_from_another_folder(
    mine: Path, tmp_path_factory: pytest.TempPathFactory, net: str
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert set(FILES) == {
        "steps.py", "dumbbell.py", "half.py", "seeded.py", "mine.toml", "losses.csv",
    }  # fmt: skip
    fast = ("--set", "job.epochs=1", "--set", "job.batch=150", "--set", "output.baseline=false")
    command = ("-m", "gradplane", "run", str(mine / "mine.toml"), "--net", net, "--out", "run")
    done = run(elsewhere, *command, *fast)
    assert done.returncode == 0, done.stderr
    assert re.search(r"losses injected +drop 2", done.stdout), done.stdout
    resolved = (elsewhere / "run" / "experiment.toml").read_text()
    assert f'push = {{ name = "{mine}/steps.py", limit = 100 }}' in resolved
    assert 'pull = { name = "float16" }' in resolved
    if net == "sim":  # a replay is the same on either
        replayed = run(elsewhere, "-m", "gradplane", "replay", "run")
        assert replayed.stdout.startswith("equal: "), replayed.stdout + replayed.stderr


def test_the_codec_is_tried_by_itself(mine: Path) -> None:
    done = run(mine, "-c", USE)
    assert done.returncode == 0, done.stderr


def test_a_codec_that_is_a_value_short_is_named(mine: Path) -> None:
    text = FILES["steps.py"].replace("return codes.as", "return codes[1:].as")
    (mine / "steps.py").write_text(text)
    done = run(mine, "-m", "gradplane", "run", "mine.toml", "--net", "sim", "--out", "run")
    assert done.returncode == 1
    first = done.stderr.splitlines()[0]
    assert first.endswith(
        f"codec {mine}/steps.py: _decode(data, 4060) returned float32 of shape (4059,); expected"
        " float32 of shape (4060,)"
    ), done.stderr
    assert "Traceback" not in done.stderr
