"""docs/planner.md: its example runs, and it names all that ships and every constraint."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradplane.planner.inputs import Compression, Model, System, shipped

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "planner.md").read_text()


def test_the_example_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    subprocess.run([sys.executable, "-c", blocks[0]], cwd=ROOT, check=True)


@pytest.mark.parametrize("kind", [Model, Compression, System])
def test_everything_shipped_is_named(kind: type[Model] | type[Compression] | type[System]) -> None:
    assert [name for name in shipped(kind) if f"`{name}`" not in TEXT] == []
