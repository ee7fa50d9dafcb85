"""Checks of a driver that the user has started: its program, its ports and the ways to them."""

from __future__ import annotations

import socket

from gradplane.controller.blocking import check_running
from gradplane.controller.controller_errors import ControllerError
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.document import ExperimentError
from gradplane.runs import isolation


def check_driver(deployment: Deployment) -> None:
    """Check that the experiment can use the driver as it is now; nothing is changed.

    Raises ExperimentError where it cannot.
    """
    target = deployment.target
    about = f'target = "{target.name}"'
    if not isolation.isolated():
        raise ExperimentError(
            f"{about}: a run outside a lab has namespaces of its own, where the driver and its"
            " interfaces are not: start both from one script, gradplane lab SCRIPT.py"
            " (docs/tofino.md)"
        )
    there = {name for _, name in socket.if_nameindex()}
    for host, (_, interface) in target.attachments.items():
        if interface not in there:
            raise ExperimentError(
                f"{about}: ports: {host}: no interface {interface} here; there are"
                f" {', '.join(sorted(there))}"
            )
    try:
        check_running(deployment.pipeline, target)
    except ControllerError as error:
        raise ExperimentError(f"{about} cannot be used: {error}") from error
