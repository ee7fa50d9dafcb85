"""The controller for scripts: one call, no asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from gradplane.controller.connection import Pipeline
from gradplane.controller.controller import Controller, Counters
from gradplane.controller.plan import JobPlan, Route, check


@dataclass(frozen=True)
class Setup:
    """All that a switch is told: its own address, routes, jobs."""

    ip: str
    mac: str
    routes: Sequence[Route]
    jobs: Sequence[JobPlan]


def configure(address: str, pipeline: Pipeline, setup: Setup, target: str = "embedded") -> None:
    """Load the program and install the setup. All jobs are checked before the first is installed.

    Raises ControllerError. To be called where no event loop runs.
    """
    asyncio.run(_configure(address, pipeline, setup, target))


def read_counters(address: str, target: str = "embedded") -> Counters:
    """All counters of the switch that are not 0: name, index, {"packets": ..., "bytes": ...}."""
    return asyncio.run(_read_counters(address, target))


async def _configure(address: str, pipeline: Pipeline, setup: Setup, target: str) -> None:
    async with Controller(address, target=target) as controller:
        await controller.load(pipeline)
        check(setup.jobs, controller.capacity)
        await controller.install_routes(setup.routes)
        await controller.install_local(setup.ip, setup.mac)
        for plan in setup.jobs:
            await controller.install_job(plan)


async def _read_counters(address: str, target: str) -> Counters:
    async with Controller(address, target=target) as controller:
        return await controller.counters()
