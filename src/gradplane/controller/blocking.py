"""The controller for scripts: blocking calls, no asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from gradplane.controller.connection import Pipeline
from gradplane.controller.controller import Controller, Counters, Credentials
from gradplane.controller.plan import EPOCHS, ControlServer, JobPlan, Setup, check
from gradplane.controller.targets import Target

T = TypeVar("T")
Address = str | ControlServer
"""HOST:PORT of a switch's control server, or all that is needed for a connection."""

# grpc.aio has one queue of events for a whole process: event loops of several threads that use it
# at the same time get each other's events ("Event loop is closed").
_ONE_LOOP = threading.Lock()


def configure(
    address: Address,
    pipeline: Pipeline,
    setup: Setup,
    target: str | Target = "embedded",
    credentials: Credentials | None = None,
    anew: bool = False,
    kept: bool = False,
) -> tuple[JobPlan, ...]:
    """Load the program and install the setup; return the jobs' plans as they are installed.

    All jobs are checked before the first is installed. anew: the jobs start at their first round,
    so that each gets an epoch that nothing on the switch has (`Controller.begin_job`): its workers
    need that of the plan returned. Otherwise what is installed already stays as it is, if the
    switch was started for this, or is to be `kept` as it is. Raises ControllerError.
    """
    session = Controller(address, None, target, credentials)
    return _run(_configure(session, pipeline, setup, anew, kept))


def begin_anew(
    addresses: Mapping[str, Address],
    pipelines: Mapping[str, Pipeline],
    setups: Mapping[str, Setup],
    target: str | Target = "embedded",
    kept: bool = False,
) -> int:
    """Configure the switches of one job, whose workers begin at its first round, under an epoch
    that nothing on them has; return that, which the workers need. See `configure`."""
    epoch, anew = EPOCHS[0], True
    for name, setup in setups.items():
        if not anew:  # the first of its switches has chosen
            setup = replace(setup, jobs=[replace(plan, epoch=epoch) for plan in setup.jobs])
        where = addresses[name], pipelines[name], setup, target
        for plan in configure(*where, anew=anew, kept=kept):
            epoch, anew = plan.epoch, False
    return epoch


def restore(
    switch: str,
    addresses: Mapping[str, Address],
    pipelines: Mapping[str, Pipeline],
    setups: Mapping[str, Setup],
    target: str | Target = "embedded",
) -> dict[str, Setup]:
    """Configure a switch that has lost its state, and give its jobs their next epoch on all
    switches that sum them; return the setups as they are from now on, by switch.

    A job that owns no slots keeps its epoch: its workers send its server what was in them.
    All of them shut the jobs out before one has the new epoch, as an entry at a time gets it. The
    caller tells the jobs' workers their new epochs. Raises ControllerError."""
    lost = {plan.number for plan in setups[switch].jobs if plan.server is None}
    for name, setup in setups.items():
        if shut := lost & {plan.number for plan in setup.jobs} if name != switch else set():
            _run(_shut_out(Controller(addresses[name], None, target), pipelines[name], shut))
    found = {}
    for name, setup in setups.items():
        plans = [plan.raised() if plan.number in lost else plan for plan in setup.jobs]
        found[name] = replace(setup, jobs=plans)
        if name == switch or found[name] != setup:
            kept = name != switch
            configure(addresses[name], pipelines[name], found[name], target, kept=kept)
    return found


def set_bound(
    address: Address,
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
    address: Address, target: str | Target = "embedded", credentials: Credentials | None = None
) -> Counters:
    """Return the counters that are not 0: name, index, {"packets": ..., "bytes": ...}."""
    return _run(_read_counters(Controller(address, None, target, credentials)))


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new thread: the caller may be in an event loop, as in a notebook."""
    with _ONE_LOOP, ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


async def _configure(
    session: Controller, pipeline: Pipeline, setup: Setup, anew: bool, kept: bool
) -> tuple[JobPlan, ...]:
    async with session as controller:
        await (controller.load if kept else controller.start)(pipeline)
        if setup.jobs:
            check(setup.jobs, controller.capacity)
        await controller.install_entries(setup.entries)
        await controller.install_routes(setup.routes)
        if controller.aggregates:
            await controller.install_local(setup.ip, setup.mac)
        plans = setup.jobs
        if anew:
            plans = [await controller.begin_job(plan) for plan in setup.jobs]
        else:
            for plan in plans:
                await controller.install_job(plan)
        if setup.compression is not None:
            await controller.install_compression(setup.compression)
    return tuple(plans)


async def _shut_out(session: Controller, pipeline: Pipeline, jobs: Iterable[int]) -> None:
    async with session as controller:
        await controller.load(pipeline)
        for number in jobs:
            await controller.shut_out(number)


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
