"""While one client attacks, the others are answered in time: each attack of attack.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
sys.path.insert(0, str(Path(__file__).parent))

from attack import ATTACKS, World, limit, succeeded

SECONDS = 1.0


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as found:
        yield found


@pytest.mark.parametrize("name", ATTACKS)
def test_others_are_served(world: World, name: str) -> None:
    result = world.result(name, SECONDS)
    assert not succeeded(result), (result.row(), limit())
    assert result.memory < 600, "MiB"
