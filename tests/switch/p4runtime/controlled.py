"""A served device, and a stock P4Runtime client (finsy) that controls it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import finsy

from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.server import P4RuntimeServer

Served = tuple[Device, str]
Work = Callable[[finsy.Switch], Coroutine[Any, Any, Any]]


@contextmanager
def serving(**options: Any) -> Iterator[Served]:
    """Provide a device with the options of a switch, and its server's address."""
    device = make_device(SwitchOptions(device_id=1, **options))
    with P4RuntimeServer(device, "127.0.0.1:0") as server:
        yield device, server.address


def control(address: str, work: Work, options: finsy.SwitchOptions | None = None) -> Any:
    """Run a job as a finsy controller; return its result."""

    async def run() -> Any:
        async with finsy.Switch("sw", address, options or finsy.SwitchOptions()) as switch:
            return await asyncio.wait_for(work(switch), 120)

    return asyncio.run(run())


async def read(sw: finsy.Switch, entity: Any) -> list[Any]:
    """Return what is read."""
    return [found async for found in sw.read(entity)]
