"""Where the hosts and switches of a topology are, among machines that exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gradplane.controller.plan import ControlServer, TlsFiles


@dataclass(frozen=True)
class HostMachine:
    """The machine of a host: the name of its Dask worker, and the interface that leads to a
    switch."""

    machine: str
    interface: str


@dataclass(frozen=True)
class Cluster:
    """The places of a topology's hosts and switches, by their names in it.

    scheduler: address of Dask's. tls: for connections to it. A host that no run uses may be left
    out.
    """

    scheduler: str
    hosts: Mapping[str, HostMachine]
    switches: Mapping[str, ControlServer]
    tls: TlsFiles | None = None
