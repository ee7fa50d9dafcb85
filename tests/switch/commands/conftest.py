"""A switch with one of each of what commands write."""

import pytest
from one_of_each import SOURCE

from gradplane.switch import Switch


@pytest.fixture
def sw() -> Switch:
    return Switch("all.p4", text=SOURCE)
