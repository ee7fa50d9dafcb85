"""The controller for scripts: blocking calls, no asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from gradplane.controller.compression import Compression
from gradplane.controller.connection import Pipeline
from gradplane.controller.controller import Controller, Counters, Credentials
from gradplane.controller.plan import JobPlan, Route, check
from gradplane.controller.targets import Target

T = TypeVar("T")

# grpc.aio has one queue of events for a whole process: event loops of several threads that use it
# at the same time get each other's events ("Event loop is closed").
_ONE_LOOP = threading.Lock()


@dataclass(frozen=True)
class Setup:
    """The configuration of a switch: its own address, routes and jobs, and its compression.

    compression: None for a program without it.
    """

    ip: str
    mac: str
    routes: Sequence[Route]
    jobs: Sequence[JobPlan]
    compression: Compression | None = None


def configure(
    address: str,
    pipeline: Pipeline,
    setup: Setup,
    target: str | Target = "embedded",
    credentials: Credentials | None = None,
) -> None:
    """Load the program and install the setup.

    All jobs are checked before the first is installed. Raises ControllerError.
    """
    _run(_configure(Controller(address, None, target, credentials), pipeline, setup))


def set_bound(
    address: str,
    prefix: str,
    length: int,
    k: int | None,
    target: str | Target = "embedded",
    credentials: Credentials | None = None,
) -> None:
    """Change an error bound while traffic runs; see Controller.set_bound."""
    _run(_set_bound(Controller(address, None, target, credentials), prefix, length, k))


def check_running(pipeline: Pipeline, target: Target) -> None:
    """Check that the target's driver runs this program, has the ports, and can be configured.

    Nothing is changed there. Raises ControllerError.
    """
    _run(_check_running(Controller(target.address, None, target), pipeline, target))


def read_counters(
    address: str, target: str | Target = "embedded", credentials: Credentials | None = None
) -> Counters:
    """Return the counters that are not 0: name, index, {"packets": ..., "bytes": ...}."""
    return _run(_read_counters(Controller(address, None, target, credentials)))


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new thread: the caller may be in an event loop, as in a notebook."""
    with _ONE_LOOP, ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


async def _configure(session: Controller, pipeline: Pipeline, setup: Setup) -> None:
    async with session as controller:
        await controller.start(pipeline)
        if setup.jobs:
            check(setup.jobs, controller.capacity)
        await controller.install_routes(setup.routes)
        if controller.aggregates:
            await controller.install_local(setup.ip, setup.mac)
        for plan in setup.jobs:
            await controller.install_job(plan)
        if setup.compression is not None:
            await controller.install_compression(setup.compression)


async def _check_running(session: Controller, pipeline: Pipeline, target: Target) -> None:
    async with session as controller:
        await controller.load(pipeline)
        await controller.check_ports(place.port for place in target.attachments.values())


async def _set_bound(session: Controller, prefix: str, length: int, k: int | None) -> None:
    async with session as controller:
        await controller.set_bound(prefix, length, k)


async def _read_counters(session: Controller) -> Counters:
    async with session as controller:
        return await controller.counters()
