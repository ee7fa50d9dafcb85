"""A running embedded switch with p4/thc.p4, and jobs for it."""

import pytest
from controller_cases import Server, thc_pipeline


@pytest.fixture(scope="session")
def pipeline():
    return thc_pipeline()


@pytest.fixture
def server():
    """Provide a switch without a program, as `gradplane switch -- --grpc-server-addr ...` starts
    it."""
    with Server() as running:
        yield running
