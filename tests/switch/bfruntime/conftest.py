"""A switch that runs the test program, in either engine, served over BFRuntime."""

from collections.abc import Callable, Iterator

import pytest
from bfrt_client import Client
from bfrt_served import PROGRAM, Served

from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions


@pytest.fixture(params=["interpreter", "jit"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    """The device and a client that is bound to its program, in both engines."""
    yield from _served(request.param)


@pytest.fixture
def interpreted(request: pytest.FixtureRequest) -> Iterator[Served]:
    """The same in the interpreter, for tests without packets."""
    yield from _served("interpreter")


@pytest.fixture
def make_client(interpreted: Served) -> Callable[..., Client]:
    return lambda **options: Client(interpreted[1].address, **options)


def _served(engine: str) -> Iterator[Served]:
    device = make_device(SwitchOptions(program=PROGRAM, engine=engine))
    with (
        BfRuntimeServer(device, "127.0.0.1:0") as server,
        Client(server.address, learn=True, idletimeout=True, entry_active=True,
               port_status_change=True, selector_update_change=True) as client,
    ):  # fmt: skip
        yield device, client
