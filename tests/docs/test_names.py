"""The page of stable names is what each room's `__all__` says."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import stable_names  # noqa: E402

NAMES = stable_names.stable_names()


def test_the_page_is_as_the_rooms_say() -> None:
    """`python scripts/stable_names.py --write` writes it; a name that goes is a change to tell."""
    assert stable_names.PAGE.read_text("utf-8") == stable_names.page()


@pytest.mark.parametrize("package", NAMES)
def test_every_name_exists(package: str) -> None:
    if package == "gradplane.torch" and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    module = import_module(package)
    for name in NAMES[package]:
        assert hasattr(module, name), name
