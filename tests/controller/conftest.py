"""A running embedded switch with p4/thc.p4, and jobs for it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from controller_cases import Server, thc_pipeline  # noqa: E402


@pytest.fixture(scope="session")
def pipeline():
    return thc_pipeline()


@pytest.fixture
def server():
    """Provide a switch without a program, as `gradplane switch -- --grpc-server-addr ...` starts
    it."""
    with Server() as running:
        yield running
