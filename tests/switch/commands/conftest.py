"""Makes this folder's modules importable: pytest's importlib mode does not."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from one_of_each import SOURCE

from gradplane.switch import Switch


@pytest.fixture
def sw() -> Switch:
    return Switch("all.p4", text=SOURCE)
