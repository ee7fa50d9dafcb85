"""While one client attacks, the others are served: each attack of attack.py, for a second.

`make attack` measures how soon: here half of the requests must be in time, and none may fail, so
that another process on the machine fails no test.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("uvicorn")
from attack import ATTACKS, CLIENTS, World, limit

SECONDS = 1.0


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as found:
        yield found


@pytest.mark.parametrize("name", ATTACKS)
def test_others_are_served(world: World, name: str) -> None:
    result = world.result(name, SECONDS)
    assert not result.errors, result.row()
    assert max(result.share(client, 0.5) for client in CLIENTS) < limit(), result.row()
    assert result.memory < 600, "MiB"
